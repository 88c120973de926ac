/* HTTP as bytes: every case is fed whole, cut in two at every position, and byte by byte, and has
 * to give the same. The numbers of rules are those of "What goes over the wire". What is a request
 * and what is refused is in wire_cases.h, which the servers are asked too. What a request says, and
 * what its path decodes to, is compared with a second reading in differential/. Here is the rest of
 * what the parser's caller sees. */
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

/* ---- what a request says ------------------------------------------------------------------- */

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

/* ---- escapes ------------------------------------------------------------------------------- */

Test(http, encodes_what_a_path_or_a_query_may_not_hold_as_it_is)
{
    static const struct {
        const char *text, *encoded;
        bool is_query;
    } rows[] = {
        {"", "", false},
        {"/", "/", false},
        {"/a/b-c_d.e~f", "/a/b-c_d.e~f", false},
        {"/!$&'()*+,;=:@", "/!$&'()*+,;=:@", false},
        {"/a b", "/a%20b", false},
        {"/100%", "/100%25", false},
        {"/what?", "/what%3F", false},
        {"/a#b", "/a%23b", false},
        {"/\"<>\\^`{|}[]", "/%22%3C%3E%5C%5E%60%7B%7C%7D%5B%5D", false},
        {"/\xc3\xa4\xff", "/%C3%A4%FF", false},
        {"/\r\n\x7f", "/%0D%0A%7F", false},
        {"", "", true},
        {"a=b&c=d;e/?:@!$'()*+,", "a=b&c=d;e/?:@!$'()*+,", true},
        {"a[]=1|2", "a%5B%5D=1%7C2", true},
        {"{}^`", "%7B%7D%5E%60", true},
        {"%41%5b%e4", "%41%5b%e4", true}, /* an escape stays one */
        {"%%41%zz%4", "%25%41%25zz%254", true},
        {"%", "%25", true},
        {"\xc3#\" ", "%C3%23%22%20", true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct span text = span_of(rows[i].text);
        char *encoded = malloc(3 * text.len + 1); /* exactly: no byte more */
        expect_number(rows[i].text, http_encode(text, rows[i].is_query, encoded),
                      strlen(rows[i].encoded));
        expect_text(rows[i].text, encoded, rows[i].encoded);
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
