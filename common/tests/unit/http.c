/* HTTP as bytes: every case is fed whole, cut in two at every position, and byte by byte, and has
 * to give the same. The numbers of rules are those of "What goes over the wire". What is a request
 * and what is refused is in wire_cases.h, which the servers are asked too. Here is what only the
 * parser's caller sees. */
#include "tests/wire_cases.h"
#include "unit.h"

TestSuite(http, .timeout = 60);

/* ---- feeding ------------------------------------------------------------------------------- */

/* What came of a request, however it was fed. */
struct outcome {
    int status;  /* 0: a request, or not yet; else refused with this */
    size_t used; /* bytes as they were sent, the framing of chunks included; 0: not yet */
    size_t most; /* bytes the buffer ever held */
    struct http_request request;
    char *buffer; /* owned; what the request points into */
};

/* Feeds `first` bytes, then `step` at a time, as far as the parser wants them. Small texts are fed
 * in memory of exactly the size that has come, so that a sanitizer sees a read beyond it. */
static struct outcome feed(struct span text, size_t first, size_t step)
{
    struct http_parser parser = {0};
    struct outcome outcome = {.buffer = malloc(text.len)};
    bool exact = text.len < 4096;
    size_t fed = 0, len = 0, more = first;
    int got = 0;
    while (fed < text.len && got == 0) {
        if (more > text.len - fed)
            more = text.len - fed;
        if (exact) {
            char *moved = malloc(len + more);
            memcpy(moved, outcome.buffer, len);
            free(outcome.buffer);
            outcome.buffer = moved;
        }
        memcpy(outcome.buffer + len, text.at + fed, more);
        fed += more;
        len += more;
        if (len > outcome.most)
            outcome.most = len;
        got = http_parse(&parser, outcome.buffer, &len, &outcome.request);
        more = step;
    }
    outcome.status = got < 0 ? -got : 0;
    outcome.used = got > 0 ? fed - (len - (size_t)got) : 0;
    return outcome;
}

static bool same_span(struct span a, struct span b)
{
    return !a.at == !b.at && a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static bool same_outcome(const struct outcome *a, const struct outcome *b)
{
    const struct http_request *x = &a->request, *y = &b->request;
    return a->status == b->status && a->used == b->used && x->method == y->method &&
           x->minor == y->minor && x->keep_alive == y->keep_alive && same_span(x->line, y->line) &&
           same_span(x->path, y->path) && same_span(x->query, y->query) &&
           same_span(x->host, y->host) && same_span(x->fields, y->fields) &&
           same_span(x->body, y->body);
}

static void expect_same(const char *name, struct span text, const struct outcome *whole,
                        size_t first, size_t step)
{
    struct outcome cut = feed(text, first, step);
    cr_expect(same_outcome(whole, &cut),
              "%s: whole it gives status %d and uses %zu; "
              "%zu bytes first, then by %zu, it gives status %d and uses %zu",
              name, whole->status, whole->used, first, step, cut.status, cut.used);
    free(cut.buffer);
}

/* The outcome, which does not depend on how the text is cut. The caller frees its buffer. */
static struct outcome feed_every_way(const char *name, struct span text)
{
    struct outcome whole = feed(text, text.len, 1);
    if (text.len < 2000)
        for (size_t cut = 1; cut < text.len; cut++)
            expect_same(name, text, &whole, cut, text.len);
    else
        for (size_t step = 2; step < text.len; step = step * 3 + 1)
            expect_same(name, text, &whole, step, step);
    expect_same(name, text, &whole, 1, 1);
    return whole;
}

/* ---- the wire cases ------------------------------------------------------------------------ */

/* One request of a row after the other, until there is none, or the connection ends. */
static void expect_row(const struct wire_case *row)
{
    char *bytes;
    size_t len;
    FILE *out = open_memstream(&bytes, &len);
    wire_write(out, row, "\"tag\"");
    fclose(out);

    struct outcome got;
    int last = 0, left = 0; /* of the responses */
    for (const int *status = row->statuses; *status; status++)
        if (*status != 100) {
            last = abs(*status);
            left++;
        }
    bool kept = true;
    size_t at = 0;
    do {
        got = feed_every_way(row->sentence, (struct span){bytes + at, len - at});
        free(got.buffer);
        left -= got.used || got.status;
        at += got.used;
        kept = !got.used || got.request.keep_alive;
    } while (got.used && kept);
    expect_number(row->sentence, left, 0);
    if (got.status)
        expect_number(row->sentence, got.status, row->fate == KEPT ? 0 : last);
    else
        expect_number(row->sentence, kept, row->fate != CLOSED);
    cr_expect(row->fate != KEPT || at == len, "%s: %zu of %zu bytes", row->sentence, at, len);
    free(bytes);
}

Test(http, takes_and_refuses_what_it_should_however_it_is_cut)
{
    for (size_t i = 0; i < WIRE_CASES; i++)
        expect_row(&wire_cases[i]);
}

/* ---- good requests ------------------------------------------------------------------------- */

/* What a row does not say: no query, host "test", no body, nothing behind, HTTP/1.1, kept. */
struct good {
    const char *name;
    struct span bytes;
    enum http_method method;
    const char *path, *query, *host, *body;
    size_t behind; /* bytes of the next request that come along */
    bool old;      /* HTTP/1.0 */
    bool closes;
};

#define GOOD(about, request, asked, where, ...)                                                    \
    {                                                                                              \
        .name = about, .bytes = SPAN(request), .method = asked, .path = where, __VA_ARGS__         \
    }
static const struct good good_requests[] = {
    GOOD("what comes along is the next request's", GET "\r\nGET /2", HTTP_GET, "/", .behind = 6),
    GOOD("a HEAD", LINE("HEAD /x.html HTTP/1.1"), HTTP_HEAD, "/x.html"),
    GOOD("a method that is known, though no route has it", LINE("DELETE /x HTTP/1.1"), HTTP_KNOWN,
         "/x"),
    GOOD("a method nobody knows", LINE("BREW-!#$%&'*+.^_`|~9 /x HTTP/1.1"), HTTP_UNKNOWN, "/x"),
    GOOD("methods are case-sensitive", LINE("get / HTTP/1.1"), HTTP_UNKNOWN, "/"),
    GOOD("a query", GET_OF("/g?page=2&x=%41"), HTTP_GET, "/g", .query = "page=2&x=%41"),
    GOOD("what a browser leaves unescaped", GET_OF("/[a]|{b}^`'?[c]|{d}^`'"), HTTP_GET,
         "/[a]|{b}^`'", .query = "[c]|{d}^`'"),
    GOOD("an empty query is one", GET_OF("/g?"), HTTP_GET, "/g", .query = ""),
    GOOD("a query with question marks", GET_OF("/g?a?b/c?"), HTTP_GET, "/g", .query = "a?b/c?"),
    GOOD("rule 17: the path stays encoded here", GET_OF("/a%2fb/%zz"), HTTP_GET, "/a%2fb/%zz"),
    GOOD("rule 2: HTTP/1.0 closes", LINE("GET / HTTP/1.0"), HTTP_GET, "/", .old = true,
         .closes = true),
    GOOD("rule 13: close wins over keep-alive in another field",
         "GET / HTTP/1.0\r\n" HOST "Connection: close\r\nConnection: keep-alive\r\n\r\n", HTTP_GET,
         "/", .old = true, .closes = true),
    GOOD("rule 4: a host with a port", HOST_IS(" a.b-c:65535"), HTTP_GET, "/",
         .host = "a.b-c:65535"),
    GOOD("rule 4: a host with an empty port", HOST_IS(" a:"), HTTP_GET, "/", .host = "a:"),
    GOOD("rule 4: a host that begins and ends with an escape", HOST_IS(" %41.b%4a"), HTTP_GET, "/",
         .host = "%41.b%4a"),
    GOOD("rule 4: an IPv6 address", HOST_IS(" [::ffff:1.2.3.4]:80"), HTTP_GET, "/",
         .host = "[::ffff:1.2.3.4]:80"),
    GOOD("rule 4: HTTP/1.0 without a host", "GET / HTTP/1.0\r\n\r\n", HTTP_GET, "/", .host = "",
         .old = true, .closes = true),
    GOOD("rule 4: the absolute form's authority wins", GET_OF("http://b:80/x?y"), HTTP_GET, "/x",
         .query = "y", .host = "b:80"),
    GOOD("rule 4: an absolute form without a path", GET_OF("HTTP://b"), HTTP_GET, "/", .host = "b"),
    GOOD("rule 4: an absolute form with a query only", GET_OF("http://b?y=/"), HTTP_GET, "/",
         .query = "y=/", .host = "b"),
    GOOD("rule 4: OPTIONS *", LINE("OPTIONS * HTTP/1.1"), HTTP_OPTIONS, "*"),
    GOOD("rule 5: a value among tabs", HOST_IS("\t a \t"), HTTP_GET, "/", .host = "a"),
    GOOD("rule 7: a body by length", POST "Content-Length: 5\r\n\r\nhelloGET", HTTP_POST,
         "/guestbook", .body = "hello", .behind = 3),
    GOOD("rule 7: a body that looks like a line's end", POST "Content-Length: 4\r\n\r\n\r\n\r\n",
         HTTP_POST, "/guestbook", .body = "\r\n\r\n"),
    GOOD("rule 7: leading zeros", POST "content-length:0005\r\n\r\nhello", HTTP_POST, "/guestbook",
         .body = "hello"),
    GOOD("rule 7: a length of nothing", POST "Content-Length: 0\r\n\r\nx", HTTP_POST, "/guestbook",
         .behind = 1),
    GOOD("rule 7: a GET may have a body", GET "Content-Length: 1\r\n\r\nxy", HTTP_GET, "/",
         .body = "x", .behind = 1),
    GOOD("rule 9: chunks",
         POST CHUNKED "5\r\nhello\r\n1\r\n \r\n0A\r\n0123456789\r\n0\r\n\r\nGET /next", HTTP_POST,
         "/guestbook", .body = "hello 0123456789", .behind = 9),
    GOOD("rule 9: sizes in either case, with zeros before them",
         POST CHUNKED "0000a\r\n0123456789\r\nB\r\n0123456789a\r\n000\r\n\r\n", HTTP_POST,
         "/guestbook", .body = "01234567890123456789a"),
    GOOD("rule 9: no chunk but the last", POST CHUNKED "0\r\n\r\n\r\n", HTTP_POST, "/guestbook",
         .behind = 2),
    GOOD("rule 9: trailers are dropped",
         POST CHUNKED "5\r\nhello\r\n0\r\nX: y\r\nHost: b\r\nContent-Length: 9\r\n"
                      "Connection: close\r\n\r\nGET",
         HTTP_POST, "/guestbook", .body = "hello", .behind = 3),
    GOOD("rule 9: chunks hold any byte, framing included",
         POST CHUNKED "7\r\n\r\n0\r\n\r\n\r\n1\r\n\n\r\n0\r\n\r\n", HTTP_POST, "/guestbook",
         .body = "\r\n0\r\n\r\n\n"),
};

Test(http, knows_what_a_good_request_says)
{
    for (size_t i = 0; i < COUNT(good_requests); i++) {
        const struct good *row = &good_requests[i];
        struct outcome got = feed_every_way(row->name, row->bytes);
        const struct http_request *request = &got.request;
        expect_number(row->name, got.status, 0);
        expect_number(row->name, got.used, row->bytes.len - row->behind);
        if (got.used > 0) {
            expect_number(row->name, request->method, row->method);
            expect_number(row->name, request->minor, row->old ? 0 : 1);
            expect_number(row->name, request->keep_alive, !row->closes);
            expect_span(row->name, request->path, row->path);
            expect_span(row->name, request->query, row->query);
            expect_span(row->name, request->host, row->host ? row->host : "test");
            expect_span(row->name, request->body, row->body ? row->body : "");
        }
        free(got.buffer);
    }
}

Test(http, keeps_the_request_line_as_it_came)
{
    struct outcome got = feed_every_way(
        "line", SPAN("\r\nGET http://b/x?y HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\nmore"));
    expect_span("whole", got.request.line, "GET http://b/x?y HTTP/1.1");
    expect_span("whole", got.request.fields, "Host: a\r\nX: 1\r\n");
    free(got.buffer);
}

Test(http, a_refusal_knows_what_was_understood)
{
    struct outcome got = feed_every_way("", SPAN("HEAD /x HTTP/1.0\r\nHost: \r\n\r\n"));
    expect_number("a bad field", got.status, 400);
    expect_number("a bad field", got.request.method, HTTP_HEAD);
    expect_number("a bad field", got.request.minor, 0);
    expect_span("a bad field", got.request.line, "HEAD /x HTTP/1.0");
    free(got.buffer);

    got = feed_every_way("", SPAN("HEAD / HTTP/9.9\r\n"));
    expect_number("a bad version", got.status, 505);
    expect_number("a bad version", got.request.method, HTTP_HEAD);
    free(got.buffer);
}

/* ---- limits: one less, just so, one more --------------------------------------------------- */

Test(http, rule_1_a_first_byte_with_which_no_method_begins_is_refused_at_once)
{
    static const char begins[] = "\r!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ"; /* CR: an empty line */
    for (int byte = 0; byte < 256; byte++) {
        bool may_begin = byte != '\0' && strchr(begins, byte);
        for (int empty_lines = 0; empty_lines <= 2; empty_lines++) {
            char bytes[] = "\r\n\r\n\r\n";
            bytes[2 * empty_lines] = (char)byte;
            struct span text = {bytes, 2 * (size_t)empty_lines + 1};
            struct outcome got = feed_every_way("a byte", text);
            cr_expect(got.status == (may_begin ? 0 : 400), "byte %d behind %d empty lines: %d",
                      byte, empty_lines, got.status);
            free(got.buffer);
        }
    }
}

/* As large as every limit allows, all at once, the framing of chunks as wasteful as it can be. */
Test(http, a_buffer_of_HTTP_MAX_REQUEST_holds_the_largest_request)
{
    static char huge[HTTP_MAX_BODY * 300 + 40000];
    size_t len = 0;
    len += (size_t)sprintf(huge + len,
                           "\r\n\r\nPOST /%0*d HTTP/1.1\r\nHost: a\r\n"
                           "Transfer-Encoding: chunked\r\n\r\n",
                           8000 - (int)strlen("POST / HTTP/1.1"), 0);
    size_t fields = strlen("Host: a\r\nTransfer-Encoding: chunked\r\n");
    for (int i = 0; i < HTTP_MAX_BODY; i++)
        len += (size_t)sprintf(huge + len, "%0*d\r\nx\r\n", 256, 1);
    len += (size_t)sprintf(huge + len, "%0*d\r\nX: %0*d\r\n\r\n", 256, 0,
                           (int)(16384 - fields - strlen("X: \r\n")), 0);

    struct outcome got = feed((struct span){huge, len}, 1, 1);
    expect_number("byte by byte", got.status, 0);
    expect_number("byte by byte", got.used, len);
    expect_number("byte by byte", got.request.body.len, HTTP_MAX_BODY);
    cr_expect(got.most <= HTTP_MAX_REQUEST, "it took %zu bytes", got.most);
    free(got.buffer);
}

/* ---- one request behind another ------------------------------------------------------------ */

Test(http, says_nothing_more_about_a_request_that_is_complete)
{
    char bytes[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET";
    size_t len = strlen(bytes);
    struct http_parser parser = {0};
    struct http_request request;
    int used = http_parse(&parser, bytes, &len, &request);
    expect_number("once", used, strlen(bytes) - 3);
    expect_number("again", http_parse(&parser, bytes, &len, &request), used);
}

/* ---- fields -------------------------------------------------------------------------------- */

Test(http, finds_a_field_by_its_name)
{
    struct outcome got = feed_every_way(
        "fields", SPAN("GET / HTTP/1.1\r\nHost: a\r\nX-Long: long\r\nx: \t one  two\t\r\nX: second"
                       "\r\nEmpty:\r\nColons::: :\r\n\r\nBehind: no\r\n"));
    static const struct {
        const char *name, *value;
    } rows[] = {
        {"Host", "a"},  {"X", "one  two"}, {"X-LONG", "long"}, {"empty", ""}, {"Colons", ":: :"},
        {"X-Lo", NULL}, {"Behind", NULL},  {"", NULL},         {"GET", NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        expect_span(rows[i].name, http_field(&got.request, rows[i].name), rows[i].value);
    free(got.buffer);
}

Test(http, finds_no_field_where_there_is_none)
{
    struct outcome got = feed_every_way("no fields", SPAN("GET / HTTP/1.0\r\n\r\n"));
    expect_span("no fields", http_field(&got.request, "Host"), NULL);
    free(got.buffer);
}

Test(http, finds_every_line_of_a_field)
{
    struct outcome got = feed_every_way(
        "fields",
        SPAN("GET / HTTP/1.1\r\nHost: a\r\nX: one\r\nXY: no\r\nx:\r\nX: three \r\n\r\nX: no"));
    static const char *const values[] = {"one", "", "three"};
    struct span rest = got.request.fields, value;
    for (size_t i = 0; i < COUNT(values); i++) {
        cr_assert(http_next_field(&rest, "X", &value), "%zu", i);
        expect_span("X", value, values[i]);
    }
    cr_expect(!http_next_field(&rest, "X", &value));
    free(got.buffer);
}

Test(http, takes_a_list_apart)
{
    static const struct {
        const char *list, *members[4];
    } rows[] = {
        {"", {NULL}},
        {"a", {"a"}},
        {" a\t,b ,\tc", {"a", "b", "c"}},
        {"\"a,b\", c", {"\"a,b\"", "c"}},
        {"W/\"a\",\"\"", {"W/\"a\"", "\"\""}},
        {"\"a, b", {"\"a, b"}},
        {"a,,b", {"a", "", "b"}},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct span rest = span_of(rows[i].list), member;
        size_t n = 0;
        while (n < 4 && http_next_member(&rest, &member)) {
            expect_span(rows[i].list, member, rows[i].members[n] ? rows[i].members[n] : "(none)");
            n++;
        }
        cr_expect(n == 4 || !rows[i].members[n], "%s has only %zu", rows[i].list, n);
    }
}

/* ---- paths and forms ----------------------------------------------------------------------- */

Test(http, rule_17_decodes_and_resolves_a_path)
{
    static const struct {
        struct span sent;
        const char *decoded; /* NULL: refused */
    } rows[] = {
        {SPAN("/"), "/"},
        {SPAN("/a/b.html"), "/a/b.html"},
        {SPAN("/a/"), "/a/"},
        {SPAN("/%61%2Fb%2fc"), "/a/b/c"},
        {SPAN("/a%20b+c"), "/a b+c"},
        {SPAN("/%C3%a4"), "/\xc3\xa4"},
        {SPAN("/%2541"), "/%41"}, /* decoded once */
        {SPAN("//"), "/"},
        {SPAN("//a///b//"), "/a/b/"},
        {SPAN("/."), "/"},
        {SPAN("/./"), "/"},
        {SPAN("/./a/./b/."), "/a/b/"},
        {SPAN("/a/.."), "/"},
        {SPAN("/a/../"), "/"},
        {SPAN("/a/../b"), "/b"},
        {SPAN("/a/b/../../c"), "/c"},
        {SPAN("/a/b/c/.."), "/a/b/"},
        {SPAN("/a//../b"), "/b"},
        {SPAN("/a/%2e%2E/b"), "/b"},
        {SPAN("/a/%2e%2e%2fb"), "/b"},
        {SPAN("/a/..b/...c/.d"), "/a/..b/...c/.d"},
        {SPAN("/..."), "/..."},
        {SPAN("/a.../b"), "/a.../b"},
        {SPAN("/.."), NULL},
        {SPAN("/../"), NULL},
        {SPAN("/../a"), NULL},
        {SPAN("/a/../.."), NULL},
        {SPAN("/a/../../a"), NULL},
        {SPAN("//../a"), NULL},
        {SPAN("/./../a"), NULL},
        {SPAN("/%2e%2e/a"), NULL},
        {SPAN("/..%2fa"), NULL},
        {SPAN("/%"), NULL},
        {SPAN("/%4"), NULL},
        {SPAN("/%4g"), NULL},
        {SPAN("/%g4"), NULL},
        {SPAN("/%%41"), NULL},
        {SPAN("/a%00"), NULL},
        {SPAN("/%00/../a"), NULL},
        {SPAN("/a%0a"), NULL},
        {SPAN("/a%0D"), NULL},
        {SPAN("/%1f"), NULL},
        {SPAN("/%7F"), NULL},
        {SPAN(""), NULL},
        {SPAN("*"), NULL},
        {SPAN("a/b"), NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t len = rows[i].sent.len;
        char *sent = malloc(len), *decoded = malloc(len + 1); /* exactly: no byte more */
        memcpy(sent, rows[i].sent.at, len);
        bool good = http_decode_path((struct span){sent, len}, decoded);
        cr_expect(good == !!rows[i].decoded, "%s is %s", rows[i].sent.at,
                  good ? "taken" : "refused");
        if (good && rows[i].decoded)
            expect_text(rows[i].sent.at, decoded, rows[i].decoded);
        free(sent);
        free(decoded);
    }
}

Test(http, decodes_a_form_in_place)
{
    static const struct {
        const char *sent;
        struct span decoded; /* at NULL: refused */
    } rows[] = {
        {"", SPAN("")},
        {"a+b%2Bc", SPAN("a b+c")},
        {"%C3%a4%0D%0a%00", SPAN("\xc3\xa4\r\n\0")},
        {"%2541", SPAN("%41")},
        {"a=b&c", SPAN("a=b&c")},
        {"%", {NULL, 0}},
        {"a%4", {NULL, 0}},
        {"%4x", {NULL, 0}},
        {"%-1", {NULL, 0}},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t sent = strlen(rows[i].sent);
        char *form = malloc(sent);
        memcpy(form, rows[i].sent, sent);
        long len = http_decode_form(form, sent);
        expect_number(rows[i].sent, len, rows[i].decoded.at ? (long)rows[i].decoded.len : -1);
        if (len >= 0 && rows[i].decoded.at)
            cr_expect(memcmp(form, rows[i].decoded.at, rows[i].decoded.len) == 0, "%s",
                      rows[i].sent);
        free(form);
    }
}

Test(http, encodes_what_a_path_may_not_hold_as_it_is)
{
    static const struct {
        const char *path, *encoded;
    } rows[] = {
        {"", ""},
        {"/", "/"},
        {"/a/b-c_d.e~f", "/a/b-c_d.e~f"},
        {"/!$&'()*+,;=:@", "/!$&'()*+,;=:@"},
        {"/a b", "/a%20b"},
        {"/100%", "/100%25"},
        {"/what?", "/what%3F"},
        {"/a#b", "/a%23b"},
        {"/\"<>\\^`{|}[]", "/%22%3C%3E%5C%5E%60%7B%7C%7D%5B%5D"},
        {"/\xc3\xa4\xff", "/%C3%A4%FF"},
        {"/\r\n\x7f", "/%0D%0A%7F"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char *encoded = malloc(3 * strlen(rows[i].path) + 1); /* exactly: no byte more */
        expect_number(rows[i].path, http_encode(span_of(rows[i].path), false, encoded),
                      strlen(rows[i].encoded));
        expect_text(rows[i].path, encoded, rows[i].encoded);
        free(encoded);
    }
}

Test(http, encodes_what_a_query_may_not_hold_as_it_is)
{
    static const struct {
        const char *query, *encoded;
    } rows[] = {
        {"", ""},
        {"a=b&c=d;e/?:@!$'()*+,", "a=b&c=d;e/?:@!$'()*+,"},
        {"a[]=1|2", "a%5B%5D=1%7C2"},
        {"{}^`", "%7B%7D%5E%60"},
        {"%41%5b%e4", "%41%5b%e4"}, /* an escape stays one */
        {"%%41%zz%4", "%25%41%25zz%254"},
        {"%", "%25"},
        {"\xc3#\" ", "%C3%23%22%20"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct span query = span_of(rows[i].query);
        char *encoded = malloc(3 * query.len + 1);
        expect_number(rows[i].query, http_encode(query, true, encoded), strlen(rows[i].encoded));
        expect_text(rows[i].query, encoded, rows[i].encoded);
        free(encoded);
    }
}

/* What would complete an escape may stand behind the text. */
Test(http, an_escape_ends_where_its_text_ends)
{
    static const struct {
        size_t len;
        const char *decoded, *encoded;
    } rows[] = {
        {4, "/A", "/%41"}, {5, NULL, "/%41%25"}, {6, NULL, "/%41%254"}, {7, "/AB", "/%41%42"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char whole[] = "/%41%42", decoded[sizeof(whole)], encoded[3 * sizeof(whole)];
        size_t len = rows[i].len;
        const char *about = rows[i].encoded;
        bool good = http_decode_path((struct span){whole, len}, decoded);
        expect_number(about, good, rows[i].decoded != NULL);
        if (good && rows[i].decoded)
            expect_text(about, decoded, rows[i].decoded);
        expect_number(about, http_encode((struct span){whole, len}, true, encoded),
                      strlen(rows[i].encoded));
        expect_text(about, encoded, rows[i].encoded);
        expect_number(about, http_decode_form(whole, len),
                      rows[i].decoded ? (long)strlen(rows[i].decoded) : -1);
    }
}

/* ---- dates --------------------------------------------------------------------------------- */

Test(http, rule_20_reads_all_three_forms_of_a_date)
{
    static const struct {
        const char *date;
        time_t when; /* -1: none */
    } rows[] = {
        {"Sun, 06 Nov 1994 08:49:37 GMT", 784111777},
        {"Sunday, 06-Nov-94 08:49:37 GMT", 784111777},
        {"Sun Nov  6 08:49:37 1994", 784111777},
        {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
        {"Tue, 29 Feb 2000 00:00:00 GMT", 951782400},
        {"Wednesday, 27-Sep-00 23:59:59 GMT", 970099199},
        {"Thu, 31 Dec 2099 23:59:59 GMT", 4102444799},
        {"", -1},
        {"yesterday", -1},
        {"784111777", -1},
        {"Sun, 06 Nov 1994 08:49:37", -1},
        {"Sun, 06 Nov 1994 08:49:37 GMT+1", -1},
        {"Sun, 06 Nov 1994 08:49:37 UTC", -1},
        {"Sun, 06 Nov 1994 25:49:37 GMT", -1},
        {"Sun, 40 Nov 1994 08:49:37 GMT", -1},
        {"1994-11-06T08:49:37Z", -1},
        {"Sun,06Nov199408:49:37GMT", -1},
        {"sun, 06 nov 1994 08:49:37 GMT", -1},
        {"Sunday, 06 November 1994 08:49:37 GMT", -1},
        {"Sun, 6 Nov 1994 8:49:37 GMT", -1},
        {"Mon, 31 Feb 1994 08:49:37 GMT", -1},
        {"Sunday, 06-Nov-94 08:49:37 GMT                  ", -1},
        {"Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT", -1},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        expect_number(rows[i].date, http_parse_date(span_of(rows[i].date)), rows[i].when);
}

/* Else the past is meant (RFC 9110, 5.6.7). */
Test(http, a_year_of_two_digits_is_at_most_fifty_years_ahead)
{
    enum { YEAR = 365 * 86400 };
    time_t now = time(NULL);
    for (int year = 0; year < 100; year++) {
        char date[40];
        snprintf(date, sizeof(date), "Friday, 01-Jan-%02d 00:00:00 GMT", year);
        time_t when = http_parse_date(span_of(date));
        struct tm utc;
        gmtime_r(&when, &utc);
        expect_number(date, utc.tm_year % 100, year);
        cr_expect(when <= now + (time_t)50 * YEAR && when > now - (time_t)51 * YEAR, "%s: %lld",
                  date, (long long)when);
    }
}

Test(http, fifty_years_are_fifty_times_365_days)
{
    enum { HOUR = 3600, YEAR = 365 * 86400 };
    time_t now = time(NULL), limit = now + (time_t)50 * YEAR;
    for (int hours = -1; hours <= 1; hours += 2) {
        time_t when = limit + hours * HOUR;
        struct tm utc;
        char date[40];
        gmtime_r(&when, &utc);
        strftime(date, sizeof(date), "%A, %d-%b-%y %H:%M:%S GMT", &utc);
        time_t read = http_parse_date(span_of(date));
        cr_expect((read == when) == (hours < 0) && (read < now) == (hours > 0), "%s: %lld", date,
                  (long long)read);
    }
}

Test(http, reads_back_the_dates_it_formats)
{
    for (time_t when = 0; when < 8000000000; when += 86400 * 31 + 3607) {
        char date[HTTP_DATE_SIZE];
        http_format_date(when, date);
        expect_number(date, http_parse_date(span_of(date)), when);
    }
}

/* ---- response heads ------------------------------------------------------------------------ */

#define DATE "Sun, 06 Nov 1994 08:49:37 GMT"

static const struct {
    const char *name;
    struct http_response response;
    const char *head;
} heads[] = {
    {"all there is",
     {.status = 200,
      .type = "text/html; charset=utf-8",
      .location = "/there",
      .allow = "GET, HEAD",
      .fields = "X-One: 1\r\nX-Two: 2\r\n",
      .has_length = true,
      .length = 1234567,
      .keep_alive = true},
     "HTTP/1.1 200 OK\r\n"
     "Date: " DATE "\r\n"
     "Server: S\r\n"
     "Connection: keep-alive\r\n"
     "Location: /there\r\n"
     "Allow: GET, HEAD\r\n"
     "Content-Type: text/html; charset=utf-8\r\n"
     "Content-Length: 1234567\r\n"
     "X-One: 1\r\n"
     "X-Two: 2\r\n"
     "\r\n"},
    {"rule 15: nothing to measure",
     {.status = 204},
     "HTTP/1.1 204 No Content\r\nDate: " DATE "\r\nServer: S\r\nConnection: close\r\n\r\n"},
    {"a length of nothing",
     {.status = 303, .has_length = true},
     "HTTP/1.1 303 See Other\r\nDate: " DATE "\r\nServer: S\r\nConnection: close\r\n"
     "Content-Length: 0\r\n\r\n"},
    {"the largest length",
     {.status = 200, .has_length = true, .length = UINT64_MAX},
     "HTTP/1.1 200 OK\r\nDate: " DATE "\r\nServer: S\r\nConnection: close\r\n"
     "Content-Length: 18446744073709551615\r\n\r\n"},
};

Test(http, rule_16_formats_a_head_to_the_byte)
{
    for (size_t i = 0; i < COUNT(heads); i++) {
        char out[HTTP_MAX_HEAD];
        size_t len = http_format_head(&heads[i].response, DATE, "S", out, sizeof(out));
        expect_span(heads[i].name, ((struct span){out, len}), heads[i].head);
    }
}

Test(http, writes_no_head_that_does_not_fit)
{
    for (size_t i = 0; i < COUNT(heads); i++)
        for (size_t size = 0, whole = strlen(heads[i].head); size <= whole; size++) {
            char *out = malloc(size + 1);
            out[size] = '!';
            size_t len = http_format_head(&heads[i].response, DATE, "S", out, size);
            cr_expect(len == (size == whole ? whole : 0), "%s: %zu bytes in a room of %zu",
                      heads[i].name, len, size);
            cr_expect(out[size] == '!', "%s: wrote beyond %zu", heads[i].name, size);
            free(out);
        }
}

Test(http, HTTP_MAX_HEAD_holds_a_head_without_its_location_and_fields)
{
    char out[HTTP_MAX_HEAD], type[101], server[101], allow[101];
    memset(type, 't', 100), type[100] = '\0';
    memset(server, 's', 100), server[100] = '\0';
    memset(allow, 'a', 100), allow[100] = '\0';
    struct http_response response = {
        .status = 431, /* the longest reason */
        .type = type,
        .location = "",
        .allow = allow,
        .has_length = true,
        .length = UINT64_MAX,
        .keep_alive = true,
    };
    cr_expect(http_format_head(&response, DATE, server, out, sizeof(out)) > 0);
}

Test(http, every_status_that_is_sent_has_its_reason)
{
    static const char *const lines[] = {
        "200 OK",
        "204 No Content",
        "206 Partial Content",
        "301 Moved Permanently",
        "303 See Other",
        "304 Not Modified",
        "400 Bad Request",
        "403 Forbidden",
        "404 Not Found",
        "405 Method Not Allowed",
        "408 Request Timeout",
        "412 Precondition Failed",
        "413 Content Too Large",
        "414 URI Too Long",
        "415 Unsupported Media Type",
        "416 Range Not Satisfiable",
        "417 Expectation Failed",
        "421 Misdirected Request",
        "431 Request Header Fields Too Large",
        "500 Internal Server Error",
        "501 Not Implemented",
        "503 Service Unavailable",
        "504 Gateway Timeout",
        "505 HTTP Version Not Supported",
    };
    for (size_t i = 0; i < COUNT(lines); i++)
        expect_text(lines[i], http_reason(atoi(lines[i])), lines[i] + 4);
    expect_text("no status of ours", http_reason(299), "Unknown");
}

/* ---- spans --------------------------------------------------------------------------------- */

Test(http, compares_spans)
{
    cr_expect(span_is(SPAN("abc"), "abc"));
    cr_expect(!span_is(SPAN("abc"), "ab"));
    cr_expect(!span_is(SPAN("ab"), "abc"));
    cr_expect(!span_is(SPAN("abc"), "aBc"));
    cr_expect(span_is_nocase(SPAN("aBc"), "AbC"));
    cr_expect(!span_is_nocase(SPAN("abc"), "abcd"));
    cr_expect(span_is(SPAN(""), ""));
}
