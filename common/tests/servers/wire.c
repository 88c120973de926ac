/* The rules of HTTP.md, row by row of wire_cases.h: against every server, each
 * row sent whole, in the case of its rule, then a byte at a time, and, for some,
 * in two pieces.
 *
 *  - Behind every row comes one more request, for MARKER. If the connection is
 *    kept, it is answered with 404, and ends the connection; if the connection
 *    is closed, nobody may look at it. So every conversation comes to an end of
 *    its own, and nobody has to wait for nothing to happen.
 *  - All rows are tried before a test fails, and all that failed are named.
 */
#include "tests/harness/harness.h"
#include "tests/wire_cases.h"

#include <ctype.h>
#include <sched.h>
#include <stdarg.h>

#define MARKER "GET /marker HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"

static const char ten[] = "0123456789"; /* what is in ten.txt */
static char etag[128];                  /* and its tag */

/* ---- rows become bytes -------------------------------------------------------------------- */

struct bytes {
    char *at;
    size_t len;
};

static struct bytes bytes_of(const struct wire_case *row)
{
    struct bytes bytes;
    FILE *out = open_memstream(&bytes.at, &bytes.len);
    wire_write(out, row, etag);
    if (row->fate != LEFT)
        fputs(MARKER, out);
    fclose(out);
    return bytes;
}

/* ---- a conversation ------------------------------------------------------------------------ */

struct talk {
    struct client *client;
    struct bytes heard;
    bool was_reset, was_silent;
};

static struct talk begin(void)
{
    return (struct talk){.client = dial()};
}

/* A server may close while we still talk: what it said before that counts. */
static void say_in_pieces(struct talk *talk, const char *at, size_t len, size_t piece)
{
    for (size_t n; len > 0; at += n, len -= n) {
        n = len < piece ? len : piece;
        if (!try_to_say(talk->client, at, n))
            return;
    }
}

/* Hears all that comes, to the connection's end. */
static void hear_out(struct talk *talk, const struct wire_case *row)
{
    enum { ROOM = 65536, SILENT_MS = 5000 };
    struct client *c = talk->client;
    ssize_t n = 1;
    if (row->fate == LEFT)
        say_no_more(c);
    while (n > 0) {
        struct pollfd fd = {.fd = c->fd, .events = POLLIN};
        talk->was_silent = poll(&fd, 1, (int)patience(SILENT_MS)) == 0;
        if (talk->was_silent)
            break;
        c->in = realloc(c->in, c->len + ROOM + 1);
        n = recv(c->fd, c->in + c->len, ROOM, 0);
        c->len += n > 0 ? (size_t)n : 0;
        c->in[c->len] = '\0';
    }
    talk->was_reset = n < 0;
    talk->heard = (struct bytes){c->in, c->len};
}

/* Leaves nothing behind that the kernel would have to remember for a minute. */
static void end(struct talk *talk)
{
    reset(talk->client);
}

/* ---- what has been heard ------------------------------------------------------------------- */

static char problem[4096];

static bool bad(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool bad(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem, sizeof(problem), format, arguments);
    va_end(arguments);
    return false;
}

/* The value of a field of a head, in a buffer that the next call but three uses again. */
static const char *value_of(const char *head, const char *name)
{
    static char values[4][1024];
    static int next;
    char line[64], *value = values[next++ % 4];
    snprintf(line, sizeof(line), "\r\n%s: ", name);
    const char *at = strcasestr(head, line);
    if (!at)
        return NULL;
    at += strlen(line);
    snprintf(value, sizeof(values[0]), "%.*s", (int)strcspn(at, "\r"), at);
    return value;
}

static int count_of(const char *head, const char *name)
{
    char line[64];
    int count = 0;
    snprintf(line, sizeof(line), "\r\n%s:", name);
    for (const char *at = head; (at = strcasestr(at, line)); at++)
        count++;
    return count;
}

/* The rule that a row holds first, and whose case it is in. */
static long rule_of(const struct wire_case *row)
{
    return strtol(row->rules, NULL, 10);
}

/* What every response has to say is asked of ours in every row. Somebody else's server is asked in
 * the rows of that rule, so that what it leaves out costs a case and no more. */
static bool is_asked(const struct wire_case *row, long rule)
{
    return server_is_ours() || rule_of(row) == rule;
}

/* Rules 15 and 16, and what a status promises (19 to 22). */
static bool check_head(const struct wire_case *row, const char *head, int status)
{
    static const struct {
        int status;
        const char *name;
    } needed[] = {{204, "Allow"},         {206, "Content-Range"}, {206, "ETag"},
                  {206, "Last-Modified"}, {301, "Location"},      {303, "Location"},
                  {304, "ETag"},          {405, "Allow"},         {416, "Content-Range"}};
    static const char *const once[] = {"Date", "Server", "Connection"};
    for (size_t i = 0; i < sizeof(once) / sizeof(once[0]); i++)
        if (server_is_ours() && count_of(head, once[i]) != 1) /* http.c has a case for each */
            return bad("not one %s in %s", once[i], head);
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
        if (needed[i].status == status && (*etag || strcmp(needed[i].name, "ETag") != 0) &&
            count_of(head, needed[i].name) != 1)
            return bad("not one %s in %s", needed[i].name, head);
    if (count_of(head, "Content-Length") != (status != 204 && status != 304))
        return bad("the wrong number of lengths in %s", head);
    if (count_of(head, "Transfer-Encoding") + count_of(head, "Set-Cookie") + count_of(head, "X"))
        return bad("a field that should not be there in %s", head);

    if (status == 304 && *etag && strcmp(value_of(head, "ETag"), etag) != 0)
        return bad("another tag in %s", head);
    if (server_is_ours() && status == 206 && !value_of(head, "Accept-Ranges"))
        return bad("no offer of parts in %s", head);

    const char *type = value_of(head, "Content-Type");
    if (type && is_asked(row, 19) && count_of(head, "X-Content-Type-Options") != 1)
        return bad("browsers may guess the type of %s", head);
    if (server_is_ours() && type && strncmp(type, "text/", 5) == 0 &&
        !strstr(type, "; charset=utf-8"))
        return bad("no charset in %s", head);
    if (is_asked(row, 22) && type && strncmp(type, "text/html", 9) == 0 &&
        !value_of(head, "Content-Security-Policy"))
        return bad("no policy in %s", head);
    if (is_asked(row, 16) && status >= 400 && (!type || strncmp(type, "text/html", 9) != 0))
        return bad("no page in %s", head);
    return true;
}

/* A part of ten.txt is the part that it says it is. */
static bool check_part(const char *head, const char *body, size_t len)
{
    size_t first = 0, last = 0;
    const char *range = value_of(head, "Content-Range");
    if (sscanf(range, "bytes %zu-%zu/10", &first, &last) != 2 || last > 9 || first > last)
        return bad("Content-Range: %s", range);
    if (len != last - first + 1 || memcmp(body, ten + first, len) != 0)
        return bad("%.*s is not %s", (int)len, body, range);
    return true;
}

/* Takes a response off what has been heard. `expected` is negative for one without a body. */
static bool take_response(const struct wire_case *row, struct bytes *heard, int expected, bool last)
{
    char head[4096], reason;
    int status = 0;
    const char *empty = heard->len ? memmem(heard->at, heard->len, "\r\n\r\n", 4) : NULL;
    if (!empty)
        return bad("no response where %d was expected, but: %s", abs(expected), heard->at);
    size_t len = (size_t)(empty + 4 - heard->at);
    snprintf(head, sizeof(head), "%.*s", (int)len, heard->at);
    *heard = (struct bytes){heard->at + len, heard->len - len};
    if (sscanf(head, "HTTP/1.1 %3d %c", &status, &reason) != 2 || status != abs(expected))
        return bad("%d was expected, and not %.*s", abs(expected), (int)strcspn(head, "\r"), head);
    if (status == 100)
        return strcmp(head, "HTTP/1.1 100 Continue\r\n\r\n") == 0 ? true : bad("%s", head);
    if (!check_head(row, head, status))
        return false;

    const char *connection = value_of(head, "Connection");
    bool kept = !connection || strcasecmp(connection, "close") != 0;
    if (row->fate != LEFT && kept == last)
        return bad("Connection: %s: %s", connection ? connection : "none", head);
    const char *length = value_of(head, "Content-Length");
    size_t body = length && expected > 0 ? (size_t)atoll(length) : 0;
    if (body > heard->len)
        return bad("%zu bytes of body for %zu: %s", heard->len, body, head);
    if (status == 206 && !check_part(head, heard->at, body))
        return false;
    *heard = (struct bytes){heard->at + body, heard->len - body};
    return true;
}

/* A refusal has to arrive whatever else was sent, and so has the connection's end. A client that
 * asked for `close` and talks on may see a reset instead, behind its response. */
static bool may_be_reset(const struct wire_case *row)
{
    int last = 0;
    for (const int *expected = row->statuses; *expected; expected++)
        last = abs(*expected);
    return row->fate == CLOSED && (last < 400 || last == 404);
}

/* Did that conversation go as it should? If not, `problem` says why. */
static bool judge(const struct wire_case *row, const struct talk *talk)
{
    struct bytes heard = talk->heard;
    for (const int *expected = row->statuses; *expected; expected++)
        if (!take_response(row, &heard, *expected, !expected[1] && row->fate == CLOSED))
            return false;
    if (row->fate == KEPT && !take_response(row, &heard, 404, true))
        return bad("it is not kept, or the marker not answered: %.200s", talk->heard.at);
    if (talk->was_silent)
        return bad("neither answered nor closed: %.200s", heard.len ? heard.at : "");
    if (heard.len > 0)
        return bad("something came that nobody had asked for: %s", heard.at);
    if (talk->was_reset && !may_be_reset(row))
        return bad("the connection was reset");
    return true;
}

/* ---- a table of conversations -------------------------------------------------------------- */

static char *failures;
static size_t failures_len;
static FILE *failing;
static int failed;
static long long stored; /* entries there should be in the guestbook */

/* Passes sentence on a conversation, and ends it. `cut` is where the row was cut, or 0. */
static void note(const struct wire_case *row, struct talk *talk, struct bytes bytes, size_t cut)
{
    for (const int *expected = row->statuses; *expected; expected++)
        stored += *expected == 303;
    if (!judge(row, talk) && failed++ < 100) {
        fprintf(failing, "\n[%s] %s", row->rules, row->sentence);
        if (cut)
            fprintf(failing, ", cut at %zu", cut);
        fputs(": ", failing);
        print_bytes(failing, bytes.at, bytes.len);
        fprintf(failing, "\n  %s\n", problem);
    }
    end(talk);
}

/* public/ as the rows know it. */
static const char *make_wire_root(void)
{
    const struct timespec times[] = {{.tv_sec = 784111777}, {.tv_sec = 784111777}};
    const char *root = make_root();
    check(mkdir(place("root/public/sub"), 0755) == 0, "%s", strerror(errno));
    write_file("root/public/sub/index.html", "sub", 3);
    write_file("root/public/.hidden", SECRET, strlen(SECRET));
    write_file("root/public/ten.txt", ten, strlen(ten));
    check(utimensat(AT_FDCWD, place("root/public/ten.txt"), times, 0) == 0, "%s", strerror(errno));
    return root;
}

static void start_wire_server(const char *root)
{
    start_server("--root", root, "--timeout", "60");
    const char *tag = field(get("/ten.txt"), "ETag");
    check(tag || !server_is_ours(), "ten.txt has no tag");
    snprintf(etag, sizeof(etag), "%s", tag ? tag : "");
}

static void begin_table(void)
{
    start_redis();
    start_wire_server(make_wire_root());
    failing = open_memstream(&failures, &failures_len);
}

static void end_table(void)
{
    fclose(failing);
    check(failed == 0, "%d conversations went wrong:\n%s", failed, failures);
    check(redis_number("LLEN guestbook:entries") == stored, "%lld entries for %lld",
          redis_number("LLEN guestbook:entries"), stored);
}

static void send_row(const struct wire_case *row, size_t piece)
{
    struct bytes bytes = bytes_of(row);
    struct talk talk = begin();
    say_in_pieces(&talk, bytes.at, bytes.len, piece);
    hear_out(&talk, row);
    note(row, &talk, bytes, 0);
    free(bytes.at);
}

/* A server without tags loses the case of rule 20, and is asked no row of another that names one.
 */
static bool is_about_tags(const struct wire_case *row)
{
    return memmem(row->bytes, row->len, "{ETAG}", 6);
}

static void check_rule(long rule)
{
    begin_table();
    check(*etag || rule != 20, "ten.txt has no tag");
    for (size_t i = 0; i < WIRE_CASES; i++)
        if (rule_of(&wire_cases[i]) == rule && (*etag || !is_about_tags(&wire_cases[i])))
            send_row(&wire_cases[i], SIZE_MAX);
    end_table();
}

#define RULE(number)                                                                               \
    EVERY_SERVER(rule_##number##_holds)                                                            \
    {                                                                                              \
        check_rule(number);                                                                        \
    }

RULE(1)
RULE(2)
RULE(3)
RULE(4)
RULE(5)
RULE(6)
RULE(7)
RULE(8)
RULE(9)
RULE(10)
RULE(11)
RULE(12)
RULE(13)
RULE(14)
RULE(15)
RULE(16)
RULE(17)
RULE(18)
RULE(19)
RULE(20)
RULE(21)
RULE(22)

/* ---- in pieces ----------------------------------------------------------------------------- */

/* What somebody else's server answers wrongly when it comes whole has cost it a rule's case, and is
 * not asked again in pieces. */
static bool is_answered_well(const struct wire_case *row)
{
    if (server_is_ours())
        return true;
    if (!*etag && is_about_tags(row))
        return false;
    struct bytes bytes = bytes_of(row);
    struct talk talk = begin();
    say_in_pieces(&talk, bytes.at, bytes.len, SIZE_MAX);
    hear_out(&talk, row);
    bool well = judge(row, &talk);
    end(&talk);
    free(bytes.at);
    stored = redis_number("LLEN guestbook:entries");
    return well;
}

EVERY_SERVER(rules_1_to_22_hold_for_what_comes_a_byte_at_a_time)
{
    begin_table();
    for (size_t i = 0; i < WIRE_CASES; i++)
        if (is_answered_well(&wire_cases[i]))
            send_row(&wire_cases[i], 1);
    end_table();
}

/* So that two pieces are two for the server too. */
static void await_reader(const struct client *c)
{
    struct inet_diag_msg end;
    int64_t limit = now_ms() + patience(SOON_MS);
    while (find_server_end(c, &end) && end.idiag_rqueue > 0) {
        check(now_ms() < limit, "not read");
        sched_yield();
    }
}

EVERY_SERVER(rules_1_to_22_hold_for_what_is_cut_in_two_anywhere)
{
    begin_table();
    for (size_t i = 0; i < WIRE_CASES; i++) {
        const struct wire_case *row = &wire_cases[i];
        struct bytes bytes = bytes_of(row);
        size_t own = bytes.len - (row->fate == LEFT ? 1 : strlen(MARKER));
        size_t last = row->cut && is_answered_well(row) ? own : 0;
        for (size_t at = 1; at <= last; at++) {
            struct talk talk = begin();
            say_in_pieces(&talk, bytes.at, at, SIZE_MAX);
            await_reader(talk.client);
            say_in_pieces(&talk, bytes.at + at, bytes.len - at, SIZE_MAX);
            hear_out(&talk, row);
            note(row, &talk, bytes, at);
        }
        free(bytes.at);
    }
    end_table();
}

/* ---- all seven ----------------------------------------------------------------------------- */

/* What was heard, but for what may differ: who said it and when, and numbers that have to do with
 * it, such as a length. */
static char *without_differences(struct bytes heard)
{
    size_t name = strlen(server_name);
    char *text = calloc(1, heard.len + 1), *to = text;
    for (const char *at = heard.at, *stop = at + heard.len; at < stop;) {
        if (strncmp(at, "HTTP/1.1 ", 9) == 0) {
            memcpy(to, at, 12);
            at += 12, to += 12;
        } else if (strncmp(at, "\r\nDate: ", 8) == 0) {
            at += 2 + strcspn(at + 2, "\r");
        } else if (strncmp(at, server_name, name) == 0) {
            at += name, *to++ = '*';
        } else if (isdigit((unsigned char)*at)) {
            at += strspn(at, "0123456789"), *to++ = '0';
        } else {
            *to++ = *at++;
        }
    }
    return text;
}

ONLY_SERVER(epoll, all_seven_give_the_same_answers_field_by_field)
{
    static const char *const names[] = {"iterative",    "forking", "preforking", "threading",
                                        "prethreading", "poll",    "epoll"};
    static char *answers[WIRE_CASES];
    start_redis();
    const char *root = make_wire_root();
    for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
        server_name = server_says = names[n];
        redis("FLUSHALL");
        start_wire_server(root);
        for (size_t i = 0; i < WIRE_CASES; i++) {
            struct bytes bytes = bytes_of(&wire_cases[i]);
            struct talk talk = begin();
            say_in_pieces(&talk, bytes.at, bytes.len, SIZE_MAX);
            hear_out(&talk, &wire_cases[i]);
            char *answer = without_differences(talk.heard);
            if (!answers[i])
                answers[i] = strdup(answer);
            check(strcmp(answer, answers[i]) == 0, "%s: %s says\n%s\nand %s\n%s",
                  wire_cases[i].sentence, names[0], answers[i], server_name, answer);
            free(answer);
            end(&talk);
            free(bytes.at);
        }
        stop_server();
    }
}
