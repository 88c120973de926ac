/* The guestbook: requests and replies in, commands and pages out. */
#include "guestbook.h"
#include "unit.h"

TestSuite(guestbook, .timeout = 30, .init = guestbook_start);

static struct guestbook book; /* each test's own */
static struct redis_command ask;

static void expect_command(const char *about, const char *const words[4])
{
    for (int i = 0; i < 4; i++)
        expect_span(about, ask.words[i], words[i]);
}

#define EXPECT_COMMAND(about, ...) expect_command(about, (const char *const[4]){__VA_ARGS__})

/* Feeds one reply. */
static int feed_bytes(const char *bytes, size_t len)
{
    redisReply *reply = reply_of(bytes, len);
    int status = guestbook_reply(&book, reply, &ask);
    freeReplyObject(reply);
    return status;
}

#define FEED(literal) feed_bytes((literal), sizeof(literal) - 1)

static int view(const char *query)
{
    return guestbook_view(&book, query ? span_of(query) : (struct span){0}, &ask);
}

/* ---- viewing ------------------------------------------------------------------------------- */

Test(guestbook, pages_count_from_the_newest_entry)
{
    static const struct {
        const char *query, *first, *last;
    } rows[] = {
        {NULL, "-21", "-1"},
        {"", "-21", "-1"},
        {"page=1", "-21", "-1"},
        {"page=2", "-41", "-21"},
        {"page=3", "-61", "-41"},
        {"page=0010", "-201", "-181"},
        {"page=100000000", "-2000000001", "-1999999981"},
        {"x=1&page=2", "-41", "-21"},
        {"page=2&page=3", "-41", "-21"},
        {"pages=9&xpage=8", "-21", "-1"},
        {"&&", "-21", "-1"},
        {"Page=2", "-21", "-1"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *about = rows[i].query ? rows[i].query : "no query";
        book = (struct guestbook){0};
        expect_number(about, view(rows[i].query), 0);
        FEED(":1\r\n");
        FEED("$1\r\n1\r\n");
        EXPECT_COMMAND(about, "LRANGE", "guestbook:entries", rows[i].first, rows[i].last);
    }
}

/* ---- posting ------------------------------------------------------------------------------- */

static struct buffer entry;
static char request_bytes[200 + HTTP_MAX_BODY];

/* Posts a form at 2026-11-21T02:45:37Z. */
static int post(const char *body)
{
    struct http_parser parser = {0};
    struct http_request request;
    size_t len = (size_t)snprintf(request_bytes, sizeof(request_bytes),
                                  "POST /guestbook HTTP/1.1\r\nHost: a\r\n"
                                  "Content-Type: application/x-www-form-urlencoded\r\n"
                                  "Content-Length: %zu\r\n\r\n%s",
                                  strlen(body), body);
    cr_assert(http_parse(&parser, request_bytes, &len, &request) > 0);
    book = (struct guestbook){0};
    entry.len = 0;
    return guestbook_post(&book, &request, 1795229137, &entry, &ask);
}

/* What it makes of each text is in servers/guestbook.c. */
Test(guestbook, stores_what_was_typed_and_nothing_else)
{
    static const struct {
        const char *about, *form, *stored;
    } rows[] = {
        {"the other way round", "guest-remarks=hi&guest-name=Ada", "Ada\nhi"},
        {"other fields are ignored", "a=b&guest-name=Ada&c&guest-remarks=hi&=&d=%41", "Ada\nhi"},
        {"empty parts are ignored", "&&guest-name=Ada&&guest-remarks=hi&&", "Ada\nhi"},
        {"field names are decoded", "guest%2Dname=Ada&guest-%72emarks=hi", "Ada\nhi"},
        {"a value may hold an equals sign", "guest-name=A=B&guest-remarks==", "A=B\n="},
        {"UTF-8 that is not escaped", "guest-name=\xc3\x84&guest-remarks=\xe2\x82\xac",
         "\xc3\x84\n\xe2\x82\xac"},
        {"spaces around are kept", "guest-name=+Ada+&guest-remarks=+hi+", " Ada \n hi "},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char expected[200];
        snprintf(expected, sizeof(expected), "2026-11-21T02:45:37Z\n%s", rows[i].stored);
        expect_number(rows[i].about, post(rows[i].form), 0);
        EXPECT_COMMAND(rows[i].about, "RPUSH", "guestbook:entries", expected);
    }
}

Test(guestbook, refuses_a_form_that_a_person_can_mend)
{
    static const struct {
        const char *about, *form, *error;
    } rows[] = {
        {"nothing", "", "lacks the name"},
        {"no remarks", "guest-name=Ada", "lacks the remarks"},
        {"no name", "guest-remarks=hi", "lacks the name"},
        {"the name twice", "guest-name=Ada&guest-remarks=hi&guest-name=Ada", "the name twice"},
        {"the remarks twice", "guest-name=Ada&guest-remarks=&guest-remarks=hi",
         "the remarks twice"},
        {"twice, once in disguise", "guest-name=A&guest%2dname=B&guest-remarks=hi",
         "the name twice"},
        {"a bad escape", "guest-name=A%4&guest-remarks=hi", "broken escape"},
        {"a bad escape in another field", "guest-name=A&guest-remarks=hi&x=%", "broken escape"},
        {"a bad escape in a field's name", "guest-name=A&guest-remarks=hi&%zz=1", "broken escape"},
        {"other case", "Guest-Name=A&guest-remarks=hi", "lacks the name"},
        {"an empty name", "guest-name=&guest-remarks=hi", "enter your name"},
        {"a name without a value", "guest-name&guest-remarks=hi", "enter your name"},
        {"a blank name", "guest-name=++&guest-remarks=hi", "enter your name"},
        {"empty remarks", "guest-name=Ada&guest-remarks=", "into the remarks"},
        {"blank remarks", "guest-name=Ada&guest-remarks=+%0D%0A%09%0A", "into the remarks"},
        {"a line feed in the name", "guest-name=A%0Ab&guest-remarks=hi", "name holds"},
        {"a paragraph separator", "guest-name=Ada&guest-remarks=%E2%80%A9", "remarks hold"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        expect_number(rows[i].about, post(rows[i].form), 400);
        cr_assert(book.error, "%s", rows[i].about);
        expect_part(rows[i].about, book.error, rows[i].error);
        expect_number(rows[i].about, entry.len, 0);
    }
}

/* How many of the texts that begin and go on with these bytes hold no control character, and are
 * UTF-8. */
static long count_texts(int first, int last, int len, char end, bool lines)
{
    long count = 0;
    for (int head = first; head <= last; head++)
        for (int i = 0; i < 1 << 16; i++) {
            char text[] = {(char)head, (char)(i >> 8), (char)i, end};
            count += text_count_characters((struct span){text, (size_t)len}, lines) > 0;
        }
    return count;
}

/* The Unicode Standard, table 3-7. */
Test(guestbook, as_many_texts_are_utf_8_as_unicode_says)
{
    const long one = 0x7f - 0x20, two = 0x800 - 0xa0, three = 0x10000 - 0x800 - 0x800 - 2;
    expect_number("three bytes", count_texts(0, 255, 3, 0, false),
                  one * one * one + 2 * one * two + three);
    expect_number("two, with lines", count_texts(0, 255, 2, 0, true),
                  ((one + 2) * (one + 2) + two) << 8);
    for (size_t i = 0; i < 4; i++)
        expect_number("four", count_texts(0xf0, 0xff, 4, "\x7f\x80\xbf\xc0"[i], false),
                      i == 1 || i == 2 ? 0x100000 >> 6 : 0);
}

Test(guestbook, counts_a_line_break_as_one)
{
    static char form[10000];
    for (int breaks = 999; breaks <= 1000; breaks++) {
        strcpy(form, "guest-name=Ada&guest-remarks=x");
        for (int i = 0; i < breaks; i++)
            strcat(form, "%0D%0A");
        expect_number("x and line breaks", post(form), breaks < 1000 ? 0 : 400);
    }
}

/* ---- the page ------------------------------------------------------------------------------ */

static const char template[] =
    "{{server}} p{{page}}{{#counted}} v{{visitors}}{{/counted}}\n"
    "{{#errors}}! {{error}}\n{{/errors}}"
    "<{{typed_name}}|{{typed_remarks}}>\n"
    "{{#nobody}}nobody\n{{/nobody}}"
    "{{#entries}}{{#signed}}[{{time}} {{day}} {{clock}}] {{name}}{{/signed}}: "
    "{{remarks}}\n{{/entries}}"
    "{{#newer}}newer {{newer_page}}\n{{/newer}}{{#older}}older {{older_page}}\n{{/older}}";

/* Renders what the last reply brought. The caller frees nothing: each test is a process. */
static const char *rendered(void)
{
    static struct buffer out;
    char error[200];
    struct template *page =
        template_compile("template", SPAN(template), guestbook_names, error, sizeof(error));
    cr_assert(page, "%s", error);
    book.server = "unit";
    out.len = 0;
    guestbook_render(&book, page, &out);
    buffer_append(&out, "", 1);
    template_free(page);
    cr_expect(!book.entries, "the reply is no longer borrowed");
    return out.bytes;
}

/* The page when LRANGE gives these bytes. */
static const char *page_of(const char *bytes)
{
    book = (struct guestbook){0};
    cr_assert_eq(view(NULL), 0);
    cr_assert_eq(FEED(":1234\r\n"), 0);
    cr_assert_eq(FEED("$4\r\n1234\r\n"), 0);
    redisReply *reply = reply_of(bytes, strlen(bytes));
    cr_assert_eq(guestbook_reply(&book, reply, &ask), 200);
    const char *page = rendered();
    freeReplyObject(reply);
    return page;
}

Test(guestbook, shows_foreign_entries_as_remarks_of_nobody)
{
    static const struct {
        const char *about, *bytes, *line;
    } rows[] = {
        {"one of ours", "*1\r\n$27\r\n2026-11-21T02:45:37Z\nAda\nhi\r\n",
         "[2026-11-21T02:45:37Z 2026-11-21 02:45] Ada: hi\n"},
        {"no line break", "*1\r\n$5\r\nhello\r\n", "\n: hello\n"},
        {"empty", "*1\r\n$0\r\n\r\n", "\n: \n"},
        {"older than one of ours", "*2\r\n$5\r\nhello\r\n$27\r\n2026-11-21T02:45:37Z\nAda\nhi\r\n",
         "\n: hello\n"},
        {"short", "*1\r\n$3\r\na\nb\r\n", "\n: a\nb\n"},
        {"a time only", "*1\r\n$20\r\n2026-11-21T02:45:37Z\r\n", "\n: 2026-11-21T02:45:37Z\n"},
        {"a time and its end", "*1\r\n$21\r\n2026-11-21T02:45:37Z\n\r\n",
         "\n: 2026-11-21T02:45:37Z\n\n"},
        {"no remarks", "*1\r\n$24\r\n2026-11-21T02:45:37Z\nAda\r\n",
         "\n: 2026-11-21T02:45:37Z\nAda\n"},
        {"all of it empty", "*1\r\n$22\r\n2026-11-21T02:45:37Z\n\n\r\n",
         "\n: 2026-11-21T02:45:37Z\n\n\n"},
        {"markup for a time", "*1\r\n$24\r\n\"><b>6789012345678\">\nA\nB\r\n",
         "\n: &quot;&gt;&lt;b&gt;6789012345678&quot;&gt;\nA\nB\n"},
        {"another time", "*1\r\n$24\r\n2026-11-21 02:45:37Z\nA\nB\r\n",
         "\n: 2026-11-21 02:45:37Z\nA\nB\n"},
        {"bytes", "*1\r\n$1\r\n\xff\r\n", "\n: Another program has written this"},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        expect_part(rows[i].about, page_of(rows[i].bytes), rows[i].line);
}
