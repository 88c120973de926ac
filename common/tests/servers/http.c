/* HTTP/1.1, as it looks from outside: which answer, and what becomes of the connection. Here are
 * the conversations; one request and what follows from it is a row of wire_cases.h.
 */
#include "tests/harness/harness.h"

#define GET_HOME "GET / HTTP/1.1\r\nHost: test\r\n\r\n"
#define FORM     "guest-name=Ada&guest-remarks=hello" /* 34 bytes */
#define POST_FORM                                                                                  \
    "POST /guestbook HTTP/1.1\r\nHost: test\r\nContent-Type: application/x-www-form-urlencoded"    \
    "\r\nContent-Length: 34\r\n\r\n" FORM
#define POST_CHUNKS                                                                                \
    "POST /guestbook HTTP/1.1\r\nHost: test\r\nContent-Type: application/x-www-form-urlencoded"    \
    "\r\nTransfer-Encoding: chunked\r\n\r\n"                                                       \
    "b\r\nguest-name=\r\n17\r\nAda&guest-remarks=hello\r\n0\r\nTrailer: x\r\n\r\n"

/* Asks once more on the same connection, which so shows that it is still there. */
static void check_home(struct client *c, bool kept)
{
    say(c, GET_HOME);
    check_file(hear(c), "public/index.html");
    check(c->answer.kept == kept, "the connection is %s", kept ? "not kept" : "kept");
}

/* ---- methods ------------------------------------------------------------------------------- */

EVERY_SERVER(the_methods_of_a_path_are_named)
{
    static const struct {
        const char *line;
        int status;
        const char *allow;
    } cases[] = {
        {"DELETE / HTTP/1.1", 405, "GET, HEAD, OPTIONS"},
        {"POST /index.html HTTP/1.1", 405, "GET, HEAD, OPTIONS"},
        {"PUT /guestbook HTTP/1.1", 405, "GET, HEAD, POST, OPTIONS"},
        {"OPTIONS / HTTP/1.1", 204, "GET, HEAD, OPTIONS"},
        {"OPTIONS /status.json HTTP/1.1", 204, "GET, HEAD, OPTIONS"},
        {"OPTIONS /guestbook HTTP/1.1", 204, "GET, HEAD, POST, OPTIONS"},
        {"OPTIONS * HTTP/1.1", 204, "GET, HEAD, POST, OPTIONS"},
    };
    start_server();
    struct client *c = dial();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        say(c, cases[i].line);
        say(c, "\r\nHost: test\r\n\r\n");
        const char *allow = field(hear(c), "Allow");
        check(c->answer.status == cases[i].status, "%s: status %d", cases[i].line,
              c->answer.status);
        check(allow && strcmp(allow, cases[i].allow) == 0, "%s: Allow: %s", cases[i].line, allow);
    }
    check_home(c, true);
}

EVERY_SERVER(an_unknown_method_is_501)
{
    start_server();
    check(ask("BREW / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")->status == 501,
          "not so");
}

/* ---- what every response says ---------------------------------------------------------------- */

/* hear() looks at each response of ours. Of somebody else's server these four ask, one by one. */
static void check_every_kind(bool (*says)(const struct answer *))
{
    static const char *const requests[] = {
        "GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n",
        "GET /not-there HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n",
        "GET /guestbook HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n",
        "nonsense\r\n\r\n",
    };
    start_redis();
    start_server();
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
        check(says(ask(requests[i])), "%s", last_exchange());
}

EVERY_SERVER(every_response_has_a_date)
{
    check_every_kind(says_when);
}

EVERY_SERVER(every_response_names_the_server)
{
    check_every_kind(says_by_whom);
}

EVERY_SERVER(every_response_says_whether_the_connection_is_kept)
{
    check_every_kind(says_if_kept);
}

EVERY_SERVER(every_text_says_that_it_is_utf_8)
{
    check_every_kind(says_charset);
}

/* ---- how long a connection lasts ----------------------------------------------------------- */

EVERY_SERVER(a_connection_carries_twenty_requests)
{
    start_redis();
    start_server();
    struct client *c = dial();
    for (int i = 1; i <= 20; i++) {
        if (i % 2) {
            check_home(c, true);
            continue;
        }
        say(c, "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
        check(hear(c)->status == 200 && c->answer.kept, "request %d: %d", i, c->answer.status);
    }
    hang_up(c);
    struct statistics s = stop_server();
    check(has_counted(s, 20, 1), "%llu on %llu", s.requests, s.connections);
}

/* RFC 9110, 6.6.1 */
EVERY_SERVER(the_date_is_that_of_the_response)
{
    start_server("--keep-alive", "60");
    struct client *c = dial();
    for (int i = 0; i < 3; i++) {
        struct tm utc = {0};
        time_t before = time(NULL);
        say(c, GET_HOME);
        const char *date = field(hear(c), "Date");
        strptime(date, "%a, %d %b %Y %H:%M:%S GMT", &utc);
        check(timegm(&utc) >= before && timegm(&utc) <= time(NULL), "%s, asked at %lld", date,
              (long long)before);
        wait_until(time(NULL) > before, 2000, "time stands still");
    }
}

EVERY_SERVER(http_1_0_closes_unless_asked_to_stay)
{
    start_server();
    check(!ask("GET / HTTP/1.0\r\n\r\n")->kept, "kept");
    struct client *c = dial();
    for (int i = 0; i < 3; i++) {
        say(c, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        check_file(hear(c), "public/index.html");
        check(c->answer.kept, "not kept");
    }
    say(c, "GET / HTTP/1.0\r\n\r\n");
    check(!hear(c)->kept, "kept");
}

EVERY_SERVER(connection_close_closes)
{
    start_server();
    struct client *c = dial();
    check_home(c, true);
    say(c, "GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    check_file(hear(c), "public/index.html");
    check(!c->answer.kept, "kept");
}

EVERY_SERVER(keep_alive_0_closes_after_every_response)
{
    start_server("--keep-alive", "0");
    struct client *c = dial();
    check_home(c, false);
}

EVERY_SERVER(a_client_that_half_closes_still_gets_its_response)
{
    start_redis();
    start_server();
    struct client *c = dial_and_say("GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
    say_no_more(c);
    check(hear(c)->status == 200, "status %d", c->answer.status);
    hear_end(c);
}

/* ---- how requests come in ------------------------------------------------------------------ */

EVERY_SERVER(ten_pipelined_requests_are_answered_in_order)
{
    start_redis();
    start_server();
    struct client *c = dial();
    say(c, GET_HOME POST_FORM "GET /style.css HTTP/1.1\r\nHost: test\r\n\r\n"
                              "HEAD / HTTP/1.1\r\nHost: test\r\n\r\n" POST_CHUNKS
                              "GET /not-there HTTP/1.1\r\nHost: test\r\n\r\n"
                              "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n"
                              "OPTIONS * HTTP/1.1\r\nHost: test\r\n\r\n"
                              "GET /tux.png HTTP/1.1\r\nHost: test\r\n\r\n"
                              "GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
                              "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
    check_file(hear(c), "public/index.html");
    check(hear(c)->status == 303, "2: status %d", c->answer.status);
    check_file(hear(c), "public/style.css");
    check(hear_head(c)->status == 200, "4: status %d", c->answer.status);
    check(hear(c)->status == 303, "5: status %d", c->answer.status);
    check(hear(c)->status == 404, "6: status %d", c->answer.status);
    check(hear(c)->status == 200 && body_has(&c->answer, "<bdi>Ada</bdi>"), "7: %d: %s",
          c->answer.status, c->answer.body);
    check(hear(c)->status == 204, "8: status %d", c->answer.status);
    check_file(hear(c), "public/tux.png");
    check_file(hear(c), "public/index.html");
    check(!c->answer.kept, "the tenth said close");
    hang_up(c);
    check(redis_number("GET guestbook:visitors") == 1, "what came behind `close` was processed");
    check(redis_number("LLEN guestbook:entries") == 2, "not two entries");
}

/* ---- refusals ------------------------------------------------------------------------------ */

EVERY_SERVER(a_body_that_is_too_large_is_refused_without_a_reset)
{
    enum { SIZE = 1024 * 1024 };
    char *body = calloc(1, SIZE);
    start_server();
    struct client *c = dial();
    say(c, "POST /guestbook HTTP/1.1\r\nHost: test\r\nContent-Length: 1048576\r\n\r\n");
    say_bytes(c, body, SIZE);
    check(hear(c)->status == 413 && !c->answer.kept, "status %d", c->answer.status);
    check_no_reset(c);
    hang_up(c);
    free(body);
}
