/* The rules of HTTP.md, row by row of wire_cases.h: against every server, each
 * row sent whole, in the case of its rule, and a byte at a time. Where it is cut in two is the
 * parser's business (unit/http.c).
 *
 *  - Behind every row comes one more request, for MARKER. If the connection is
 *    kept, it is answered with 404, and ends the connection; if the connection
 *    is closed, nobody may look at it. So every conversation comes to an end of
 *    its own, and nobody has to wait for nothing to happen.
 *  - hear() holds each response to rule 16. Here is what a row, a status and a
 *    type ask besides.
 */
#include "tests/harness/harness.h"
#include "tests/wire_cases.h"

#include <sched.h>

#define MARKER "GET /marker HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"

static const char ten[] = "0123456789"; /* what is in ten.txt */
static char etag[128];                  /* and its tag */
static long long stored;                /* entries there should be in the guestbook */
static const struct wire_case *row;     /* the one that is tried */

/* Whatever is wrong, the row is named; what was said and answered follows. */
#define hold(condition, format, ...)                                                               \
    check(condition, "[%s] %s: " format, row->rules, row->sentence, ##__VA_ARGS__)

/* The rule that a row holds first, and whose case it is in. */
static long rule_of(const struct wire_case *r)
{
    return strtol(r->rules, NULL, 10);
}

/* What every response has to say is asked of ours in every row. Somebody else's server is asked in
 * the rows of that rule, so that what it leaves out costs a case and no more. */
static bool is_asked(long rule)
{
    return server_is_ours() || rule_of(row) == rule;
}

/* ---- what is heard ------------------------------------------------------------------------- */

/* What a status promises (16 and 18 to 21), and a type (19 and 22). */
static void check_head(const struct answer *a)
{
    static const struct {
        int status;
        const char *name;
    } needed[] = {{204, "Allow"},         {206, "Content-Range"}, {206, "ETag"},
                  {206, "Last-Modified"}, {301, "Location"},      {303, "Location"},
                  {304, "ETag"},          {405, "Allow"},         {416, "Content-Range"}};
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
        hold(needed[i].status != a->status || field(a, needed[i].name) ||
                 (!*etag && strcmp(needed[i].name, "ETag") == 0),
             "%d without %s", a->status, needed[i].name);
    hold(!field(a, "Set-Cookie") && !field(a, "X"), "a field that should not be there");
    hold(a->status != 304 || !*etag || strcmp(field(a, "ETag"), etag) == 0, "another tag");
    hold(a->status != 206 || field(a, "Accept-Ranges") || !server_is_ours(), "no offer of parts");
    const char *cache = field(a, "Cache-Control");
    hold(rule_of(row) != 20 || a->status > 304 || (cache && strcmp(cache, "no-cache") == 0),
         "a browser need not ask again");

    const char *type = field(a, "Content-Type");
    bool page = type && strncmp(type, "text/html", 9) == 0;
    const char *sniff = field(a, "X-Content-Type-Options");
    hold(!type || (sniff && strcmp(sniff, "nosniff") == 0) || !is_asked(19), "browsers may guess");
    hold(!page || field(a, "Content-Security-Policy") || !is_asked(22), "no policy");
    hold(a->status < 400 || page || !is_asked(16), "no page");
    hold(says_what_all_say(a) || !is_asked(16), "what every response says is not there");
}

/* A part of ten.txt is the part that it says it is. */
static void check_part(const struct answer *a)
{
    size_t first = 0, last = 0;
    const char *range = field(a, "Content-Range");
    hold(sscanf(range, "bytes %zu-%zu/10", &first, &last) == 2 && last <= 9 && first <= last &&
             a->body_len == last - first + 1 && memcmp(a->body, ten + first, a->body_len) == 0,
         "%s is not %s", range, a->body);
}

static void hear_row(struct client *c)
{
    for (const int *expected = row->statuses; *expected; expected++) {
        if (*expected == 100) {
            hear_continue(c);
            continue;
        }
        const struct answer *a = *expected < 0 ? hear_head(c) : hear(c);
        hold(a->status == abs(*expected), "%d, and not %d", a->status, abs(*expected));
        hold(row->fate == LEFT || a->kept == (expected[1] || row->fate == KEPT), "kept: %d",
             a->kept);
        check_head(a);
        if (a->status == 206)
            check_part(a);
        stored += a->status == 303;
    }
    if (row->fate == KEPT)
        hold(hear(c)->status == 404 && !c->answer.kept, "%d to the marker", c->answer.status);
    hear_end(c);
}

/* ---- what is said -------------------------------------------------------------------------- */

/* Until all that was said is read, so that the next byte is another piece for the server too. */
static void await_reader(const struct client *c)
{
    struct inet_diag_msg end;
    int64_t limit = now_ms() + patience(SOON_MS);
    while (find_server_end(c, &end) && end.idiag_rqueue > 0) {
        check(now_ms() < limit, "not read");
        sched_yield();
    }
}

/* A server may close while we still talk: what it said before that counts. Around the ends of
 * lines, where parsers go wrong, each byte is waited for; everywhere, that would take minutes. */
static void say_by_bytes(struct client *c, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len && try_to_say(c, bytes + i, 1); i++)
        if (i + 2 < len && (strchr("\r\n", bytes[i]) || strchr("\r\n", bytes[i + 2])))
            await_reader(c);
}

static void send_variant(size_t variant, bool by_bytes)
{
    char *bytes;
    size_t len;
    FILE *out = open_memstream(&bytes, &len);
    wire_write(out, row, variant, etag);
    if (row->fate != LEFT)
        fputs(MARKER, out);
    fclose(out);
    struct client *c = dial();
    if (by_bytes)
        say_by_bytes(c, bytes, len);
    else
        try_to_say(c, bytes, len);
    if (row->fate == LEFT)
        say_no_more(c);
    hear_row(c);
    reset(c); /* leaves nothing behind that the kernel would have to remember for a minute */
    free(bytes);
}

static void send_row(const struct wire_case *r, bool by_bytes)
{
    row = r;
    for (size_t i = 0; i < wire_variants(r); i++)
        send_variant(i, by_bytes);
}

/* ---- the table ----------------------------------------------------------------------------- */

/* public/ as the rows know it. */
static void start_wire_server(void)
{
    const struct timespec times[] = {{.tv_sec = 784111777}, {.tv_sec = 784111777}};
    const char *root = make_root();
    check(mkdir(place("root/public/sub"), 0755) == 0 &&
              mkdir(place("root/public/empty"), 0755) == 0 &&
              symlink("../secret", place("root/public/link")) == 0 &&
              symlink("..", place("root/public/up")) == 0,
          "%s", strerror(errno));
    write_file("root/public/sub/index.html", "sub", 3);
    write_file("root/public/.hidden", SECRET, strlen(SECRET));
    write_file("root/public/ten.txt", ten, strlen(ten));
    check(utimensat(AT_FDCWD, place("root/public/ten.txt"), times, 0) == 0, "%s", strerror(errno));
    start_redis();
    start_server("--root", root, "--timeout", "60");
    const char *tag = field(get("/ten.txt"), "ETag");
    check(tag || !server_is_ours(), "ten.txt has no tag");
    snprintf(etag, sizeof(etag), "%s", tag ? tag : "");
}

static void check_stored(void)
{
    check(redis_number("LLEN guestbook:entries") == stored, "%lld entries for %lld",
          redis_number("LLEN guestbook:entries"), stored);
}

/* A server without tags loses the case of rule 20, and is asked no row of another that names one.
 */
static bool can_be_asked(const struct wire_case *r)
{
    return *etag || !memmem(r->bytes, r->len, "{ETAG}", 6);
}

static void check_rule(long rule)
{
    start_wire_server();
    check(*etag || rule != 20, "ten.txt has no tag");
    for (size_t i = 0; i < WIRE_CASES; i++)
        if (rule_of(&wire_cases[i]) == rule && can_be_asked(&wire_cases[i]))
            send_row(&wire_cases[i], false);
    check_stored();
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

/* What somebody else's server answers wrongly when it comes whole has cost it a rule's case. In
 * pieces it is asked only for what is well-formed: whole conversations. */
EVERY_SERVER(rules_1_to_22_hold_for_what_comes_a_byte_at_a_time)
{
    start_wire_server();
    for (size_t i = 0; i < WIRE_CASES; i++)
        if (server_is_ours() || rule_of(&wire_cases[i]) == 13 || rule_of(&wire_cases[i]) == 14)
            send_row(&wire_cases[i], true);
    check_stored();
}
