/* HTTP/1.1, as it looks from outside: which answer, and what becomes of the connection. Here are
 * the conversations; one request and what follows from it is a row of wire_cases.h.
 */
#include "tests/harness/harness.h"

#define GET_HOME "GET / HTTP/1.1\r\nHost: test\r\n\r\n"

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

/* ---- refusals ------------------------------------------------------------------------------ */

EVERY_SERVER(a_body_that_is_too_large_is_refused_without_a_reset)
{
    enum { SIZE = 1024 * 1024 };
    static const char *const lengths[] = {"Content-Length: 1048576\r\n\r\n",
                                          "Transfer-Encoding: chunked\r\n\r\n100000\r\n"};
    char *body = calloc(1, SIZE);
    start_server();
    for (int i = 0; i < 2; i++) {
        struct client *c = dial_and_say("POST /guestbook HTTP/1.1\r\nHost: test\r\n");
        say(c, lengths[i]);
        say_bytes(c, body, SIZE);
        check(hear(c)->status == 413 && !c->answer.kept, "status %d", c->answer.status);
        check_no_reset(c);
        hang_up(c);
    }
    free(body);
}
