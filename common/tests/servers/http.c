/* HTTP/1.1, as it looks from outside: which answer, and what becomes of the connection. Here are
 * the conversations; one request and what follows from it is a row of wire_cases.h.
 */
#include "tests/harness/harness.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#define GET_HOME "GET / HTTP/1.1\r\nHost: test\r\n\r\n"

/* ---- methods ------------------------------------------------------------------------------- */

EVERY_SERVER(the_methods_of_a_path_are_named)
{
    static const struct {
        const char *line;
        int status;
        const char *allow;
    } cases[] = {
        {"DELETE / HTTP/1.1", 405, "GET, HEAD, OPTIONS"},
        {"PUT /guestbook HTTP/1.1", 405, "GET, HEAD, POST, OPTIONS"},
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
}

/* ---- what a page may fetch ----------------------------------------------------------------- */

#define GET_LAST(path, fields)                                                                     \
    "GET " path " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" fields "\r\n"
#define SAFE "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
#define WIDE SAFE "; connect-src 'self' http://127.0.0.1:* http://localhost:*"

/* Its script looks at the other six servers. No other page's may. */
EVERY_SERVER(the_wall_alone_may_connect_to_other_ports)
{
    static const struct {
        const char *request, *policy;
    } rows[] = {
        {GET_LAST("/wall.html", ""), WIDE},
        {GET_LAST("/wall/../wall.html?base=8000", ""), WIDE},
        {GET_LAST("/wall.html", "Range: bytes=0-0\r\n"), WIDE},
        {GET_LAST("/", ""), SAFE},
        {GET_LAST("/wall/wall.html", ""), SAFE},
        {GET_LAST("/none", ""), SAFE},
    };
    const char *root = make_root();
    check(mkdir(place("root/public/wall"), 0755) == 0, "%s", strerror(errno));
    write_file("root/public/wall.html", "wall", 4);
    write_file("root/public/wall/wall.html", "no wall", 7);
    start_server("--root", root);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *policy = field(ask(rows[i].request), "Content-Security-Policy");
        check(policy && strcmp(policy, rows[i].policy) == 0, "%s", policy);
    }
}

/* ---- how long a connection lasts ----------------------------------------------------------- */

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

/* ---- refusals ------------------------------------------------------------------------------ */

/* All that was said has arrived, and was not answered with a reset, which could have eaten the
 * response (whoever has seen the connection's end before is not told of it). */
static void check_no_reset(const struct client *c)
{
    int unsent = 0, error = 0;
    socklen_t size = sizeof(error);
    wait_until(ioctl(c->fd, SIOCOUTQ, &unsent) == 0 && unsent == 0, SOON_MS,
               "%d bytes are not acknowledged", unsent);
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    check(error == 0, "%s", strerror(error));
}

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
