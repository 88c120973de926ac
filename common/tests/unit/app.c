/* The routes: requests and replies in, effects out. The site is the short one of unit.h. */
#include "app.h"
#include "clock.h"
#include "options.h"
#include "process.h"
#include "status.h"
#include "unit.h"

#include <stdatomic.h>
#include <sys/resource.h>

static struct options options;
static struct app app = {.client = -1, .file.fd = -1};

static void start(void)
{
    scratch_site();
    options = unit_options();
    process_start();
    app_start(&options);
}

static void start_with_status_for_all(void)
{
    scratch_site();
    options = unit_options();
    options.status_for_all = true;
    process_start();
    app_start(&options);
}

static void finish(void)
{
    app_clear(&app, 0);
    scratch_remove();
}

TestSuite(app, .timeout = 60, .init = start, .fini = finish);

/* ---- asking -------------------------------------------------------------------------------- */

/* Hands a request over: its line without the version, the Host field's value, and what follows. */
static enum effect ask_of(const char *host, const char *line, const char *rest)
{
    static char bytes[10000];
    struct http_parser parser = {0};
    struct http_request request;
    size_t len = (size_t)snprintf(bytes, sizeof(bytes), "%s HTTP/1.1\r\nHost: %s\r\n%s", line, host,
                                  *rest ? rest : "\r\n");
    cr_assert(http_parse(&parser, bytes, &len, &request) > 0, "%s", bytes);
    app_clear(&app, 0);
    return app_request(&app, &request);
}

static enum effect ask(const char *line, const char *rest)
{
    return ask_of("localhost", line, rest);
}

/* The content, as a string. */
static const char *content(void)
{
    static char text[10000];
    snprintf(text, sizeof(text), "%.*s", (int)app.content.len,
             app.content.len ? app.content.at : "");
    return text;
}

static enum effect reply(const char *bytes)
{
    redisReply *reply = reply_of(bytes, strlen(bytes));
    enum effect effect = app_reply(&app, reply, 0);
    freeReplyObject(reply);
    return effect;
}

#define FORM(body_len)                                                                             \
    "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: " #body_len "\r\n\r\n"

/* ---- routes -------------------------------------------------------------------------------- */

Test(app, each_method_and_path_has_its_answer)
{
    static const struct {
        const char *line;
        int status; /* 0: asks Redis */
        const char *allow, *location;
    } rows[] = {
        {"GET /", 200, NULL, NULL},
        {"HEAD /", 200, NULL, NULL},
        {"GET /a.txt?x=y", 200, NULL, NULL},
        {"GET /%61.txt", 200, NULL, NULL},
        {"GET /x/../a.txt", 200, NULL, NULL},
        {"GET http://other/a.txt", 200, NULL, NULL},
        {"GET /none", 404, NULL, NULL},
        {"HEAD /none", 404, NULL, NULL},
        {"GET /.hidden", 404, NULL, NULL},
        {"GET /%zz", 400, NULL, NULL},
        {"GET /a%00.txt", 400, NULL, NULL},
        {"GET /..", 400, NULL, NULL},
        {"GET /%2e%2e/a.txt", 400, NULL, NULL},
        {"OPTIONS /..", 400, NULL, NULL},
        {"PUT /..", 400, NULL, NULL},
        {"GET /folder", 301, NULL, "/folder/"},
        {"HEAD /folder?a=b&c", 301, NULL, "/folder/?a=b&c"},
        {"GET /folder?", 301, NULL, "/folder/?"},
        {"GET /%66older", 301, NULL, "/folder/"},
        {"GET /folder/", 404, NULL, NULL},
        {"GET /guestbook", 0, NULL, NULL},
        {"HEAD /guestbook", 0, NULL, NULL},
        {"GET /guestbook?page=2", 0, NULL, NULL},
        {"GET /%67uestbook", 0, NULL, NULL},
        {"GET //guestbook", 0, NULL, NULL},
        {"GET /x/../guestbook", 0, NULL, NULL},
        {"GET /guestbook?page=0", 400, NULL, NULL},
        {"GET /status", 403, NULL, NULL}, /* of a client who is nowhere */
        {"HEAD /status.json", 403, NULL, NULL},
        {"GET /status/", 404, NULL, NULL},
        {"GET /status.json/", 404, NULL, NULL},
        {"POST /status", 405, "GET, HEAD, OPTIONS", NULL},
        {"PUT /status.json", 405, "GET, HEAD, OPTIONS", NULL},
        {"OPTIONS /status.json", 204, "GET, HEAD, OPTIONS", NULL},
        {"GET /wall.html", 404, NULL, NULL},
        {"GET /guestbook/", 404, NULL, NULL},
        {"GET /guestbooks", 404, NULL, NULL},
        {"GET /Guestbook", 404, NULL, NULL},
        {"POST /", 405, "GET, HEAD, OPTIONS", NULL},
        {"POST /none", 405, "GET, HEAD, OPTIONS", NULL},
        {"PUT /a.txt", 405, "GET, HEAD, OPTIONS", NULL},
        {"DELETE /guestbook", 405, "GET, HEAD, POST, OPTIONS", NULL},
        {"PATCH /guestbook", 405, "GET, HEAD, POST, OPTIONS", NULL},
        {"TRACE /", 405, "GET, HEAD, OPTIONS", NULL},
        {"CONNECT /", 405, "GET, HEAD, OPTIONS", NULL},
        {"OPTIONS *", 204, "GET, HEAD, POST, OPTIONS", NULL},
        {"OPTIONS /guestbook", 204, "GET, HEAD, POST, OPTIONS", NULL},
        {"OPTIONS /", 204, "GET, HEAD, OPTIONS", NULL},
        {"BREW /", 501, NULL, NULL},
        {"BREW /guestbook", 501, NULL, NULL},
        {"BREW /..", 501, NULL, NULL},
        {"get /", 501, NULL, NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        enum effect effect = ask(rows[i].line, "");
        expect_number(rows[i].line, effect, rows[i].status ? RESPOND : ASK_REDIS);
        expect_number(rows[i].line, app.response.status, rows[i].status);
        expect_text(rows[i].line, app.response.allow, rows[i].allow);
        expect_text(rows[i].line, app.response.location, rows[i].location);
    }
}

Test(app, a_large_file_is_open_and_has_its_type)
{
    expect_number("large.bin", ask("GET /large.bin", ""), RESPOND);
    cr_assert(app.file.fd >= 0);
    expect_number("large.bin", app.file.left, LARGE_BYTES);
    expect_number("large.bin", app.content.len, 0);
    expect_text("large.bin", app.response.type, "application/octet-stream");
    expect_part("rule 19", app.response.fields, "X-Content-Type-Options: nosniff\r\n");
    cr_expect(app.response.etag && app.response.etag[0] == '"');

    ask("GET /large.bin", "Range: bytes=7-\r\n\r\n");
    expect_number("a part", app.file.at, 7);
    expect_number("a part", app.file.left, LARGE_BYTES - 7);
}

Test(app, a_small_file_is_in_memory_and_has_its_type)
{
    expect_number("a.txt", ask("GET /a.txt", ""), RESPOND);
    expect_number("a.txt", app.file.fd, -1);
    expect_number("a.txt", app.file.left, 0);
    expect_text("a.txt", content(), "0123456789");
    expect_text("a.txt", app.response.type, "text/plain; charset=utf-8");

    ask("GET /", "");
    expect_text("/", app.response.type, "text/html; charset=utf-8");
    expect_part("rule 22", app.response.fields, "Content-Security-Policy: default-src 'self'");
    expect_part("rule 19", app.response.fields, "X-Content-Type-Options: nosniff\r\n");
}

Test(app, rule_20_a_response_says_how_the_file_can_be_asked_for_again)
{
    static const char *const paths[] = {"/a.txt", "/large.bin"};
    for (size_t i = 0; i < COUNT(paths); i++) {
        char line[40], etag[60], fields[100];
        snprintf(line, sizeof(line), "GET %s", paths[i]);
        ask(line, "");
        snprintf(etag, sizeof(etag), "%s", app.response.etag);
        snprintf(fields, sizeof(fields), "If-None-Match: %s\r\n\r\n", etag);
        expect_part("200", app.response.last_modified, " GMT");
        expect_part("rule 21", app.response.fields, "Accept-Ranges: bytes\r\n");
        cr_expect(!app.response.content_range);

        expect_number("not modified", ask(line, fields), RESPOND);
        expect_number("not modified", app.response.status, 304);
        expect_text("not modified", app.response.etag, etag);
        expect_number("nothing is sent", app.file.fd, -1);
        expect_number("nothing is sent", app.file.left, 0);
        expect_number("nothing is sent", app.content.len, 0);
        cr_expect(!app.response.type);
    }

    ask("GET /a.txt", "If-Match: \"x\"\r\n\r\n");
    expect_number("precondition", app.response.status, 412);
    expect_part("precondition", content(), "412 Precondition Failed The file has changed");
    expect_number("its page is sent", app.file.fd, -1);
}

/* ---- the guestbook ------------------------------------------------------------------------- */

/* Rule 23. */
Test(app, takes_posts_from_its_own_pages_and_from_what_is_no_browser)
{
    static const struct {
        const char *host, *fields;
        bool taken;
    } rows[] = {
        {"a", "", true},
        {"a", "Sec-Fetch-Site: same-origin\r\n", true},
        {"a", "Sec-Fetch-Site: same-site\r\n", true},
        {"a", "Sec-Fetch-Site: none\r\n", true},
        {"a", "Origin: http://a\r\n", true},
        {"a", "Origin: HTTP://A:80\r\n", true},
        {"a:", "Origin: http://a\r\n", true},
        {"a:80", "Origin: http://a\r\n", true},
        {"A:8000", "Origin: http://a:8000\r\n", true},
        {"127.0.0.1:8000", "Origin: http://127.0.0.1:8000\r\n", true},
        {"[::1]", "Origin: http://[::1]\r\n", true},
        {"[::1]:8000", "Origin: http://[::1]:8000\r\n", true},
        {"a", "Sec-Fetch-Site: cross-site\r\n", false},
        {"a", "Origin: http://a\r\nSec-Fetch-Site: cross-site\r\n", false},
        {"a", "Origin: http://b\r\nSec-Fetch-Site: same-origin\r\n", false},
        {"a", "Origin: null\r\n", false},
        {"a", "Origin:\r\n", false},
        {"a", "Origin: a\r\n", false},
        {"a", "Origin: http://\r\n", false},
        {"a", "Origin: http://b\r\n", false},
        {"a", "Origin: http://a.b\r\n", false},
        {"a", "Origin: http://b.a\r\n", false},
        {"a", "Origin: http://a/\r\n", false},
        {"a", "Origin: http://a@b\r\n", false},
        {"a", "Origin: https://a\r\n", false},
        {"a:443", "Origin: https://a\r\n", false},
        {"a", "Origin: http://a:8000\r\n", false},
        {"a:8000", "Origin: http://a\r\n", false},
        {"a:8000", "Origin: http://a:80\r\n", false},
        {"a:8000", "Origin: http://a:8000.b\r\n", false},
        {"[::1]", "Origin: http://[::2]\r\n", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char rest[200];
        snprintf(rest, sizeof(rest), "%s%s", rows[i].fields,
                 FORM(30) "guest-name=Ada&guest-remarks=x");
        enum effect effect = ask_of(rows[i].host, "POST /guestbook", rest);
        expect_number(rest, effect, rows[i].taken ? ASK_REDIS : RESPOND);
        expect_number(rest, app.response.status, rows[i].taken ? 0 : 403);
        if (!rows[i].taken)
            expect_part(rest, content(), "403 Forbidden The form was sent by a page of another");
    }
    expect_number("a link may lead here",
                  ask("GET /guestbook", "Sec-Fetch-Site: cross-site\r\n\r\n"), ASK_REDIS);
}

/* In words that somebody understands who does not know Redis, and never in Redis' own. */
Test(app, the_page_says_what_kind_of_trouble_redis_has)
{
    static const char *const rows[][2] = {
        {"-NOAUTH Authentication required.\r\n", "password"},
        {"-NOPERM this user has no permissions\r\n", "permit"},
        {"-OOM command not allowed\r\n", "memory"},
        {"-READONLY You can't write\r\n", "copy of another"},
        {"-NOREPLICAS Not enough\r\n", "copies"},
        {"-LOADING Redis is loading\r\n", "loading its data"},
        {"-MISCONF Redis is configured\r\n", "save its data"},
        {"-WRONGTYPE Operation against\r\n", "no guestbook"},
        {"-ERR max number of clients reached\r\n", "all the clients"},
        {"-ERR whatever\r\n", "Redis refused"},
        {"-OOMNIOUS\r\n", "Redis refused"},
        {"-\r\n", "Redis refused"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        ask("GET /guestbook", "");
        expect_number(rows[i][0], reply(rows[i][0]), RESPOND);
        expect_number(rows[i][0], app.response.status, 503);
        expect_part(rows[i][0], content(), rows[i][1]);
        expect_no_part("nothing was posted", content(), "was not stored");
        expect_no_part("there is a Redis", content(), "redis-server");
        expect_part("come again", app.response.fields, "Retry-After: ");
    }
    ask("GET /guestbook", "");
    expect_number("not let in", app_reply(&app, NULL, REDIS_NOT_ADMITTED), RESPOND);
    expect_number("not let in", app.response.status, 503);
    expect_part("not let in", content(), "password");
    ask("GET /guestbook", "");
    expect_number("not ready", app_reply(&app, NULL, REDIS_NOT_READY), RESPOND);
    expect_number("not ready", app.response.status, 503);
    expect_part("not ready", content(), "loading its data");
    expect_no_part("not ready", content(), "password");
    expect_part("come again", app.response.fields, "Retry-After: ");
}

Test(app, redis_may_fail_at_any_step)
{
    static const char *const replies[] = {":1\r\n", "$1\r\n1\r\n"};
    for (size_t step = 0; step < 3; step++)
        for (int why = REDIS_NO_CONNECTION; why <= REDIS_NO_REPLY; why++) {
            bool lost = why == REDIS_NO_CONNECTION;
            ask("GET /guestbook", "");
            for (size_t i = 0; i < step; i++)
                cr_assert_eq(reply(replies[i]), ASK_REDIS);
            expect_number("no reply", app_reply(&app, NULL, why), RESPOND);
            expect_number("no reply", app.response.status, lost ? 503 : 504);
            expect_part("no reply", content(), lost ? "redis-server --port" : "look before");
            cr_expect(!strstr(app.response.fields, "Retry-After: ") == !lost, "%d", why);

            ask("GET /guestbook", "");
            for (size_t i = 0; i < step; i++)
                cr_assert_eq(reply(replies[i]), ASK_REDIS);
            expect_number("an error", reply("-ERR no <b>\r\n"), RESPOND);
            expect_number("an error", app.response.status, 503);
            expect_no_part("nothing of the insides", content(), "no <b>");
        }
    ask("POST /guestbook", FORM(30) "guest-name=Ada&guest-remarks=x");
    expect_number("RPUSH", app_reply(&app, NULL, REDIS_NO_REPLY), RESPOND);
    expect_number("RPUSH", app.response.status, 504);
    expect_text("nothing of the entry is left", content(),
                "504 Gateway Timeout Redis did not answer in time. An entry just posted may or may "
                "not have been stored: look before you post it again.\n");
}

/* ---- redirects ----------------------------------------------------------------------------- */

/* Its address takes 1024 bytes with a query of 338 brackets: then the NUL needs more memory. */
Test(app, a_redirect_has_the_query_whatever_its_length)
{
    scratch_folder("public/folder1");
    for (int len = 300; len < 400; len++) {
        char line[500] = "GET /folder1?", address[1300] = "/folder1/?";
        for (int i = 0; i < len; i++) {
            strcat(line, "[");
            strcat(address, "%5B");
        }
        ask(line, "");
        expect_number("status", app.response.status, 301);
        expect_text("address", app.response.location, address);
        app_clear(&app, 0); /* the next address begins with fresh memory */
    }
}

/* ---- the scoreboard ------------------------------------------------------------------------ */

/* The client is on this machine; its other end stays open. */
static void come_from_here(void)
{
    int ends[2];
    cr_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    app.client = ends[0];
    struct board *board = board_open(2);
    cr_assert(board);
    status_start(&options, board, STATUS_THREADS, "a unit test");
    board_claim(board, 1);
    board_change_state(board_claim(board, 2), -1, STATUS_ASKING, clock_now_ms());
}

Test(app, shows_the_scoreboard_to_this_machine)
{
    come_from_here();
    expect_number("effect", ask("GET /status", ""), RESPOND);
    expect_number("status", app.response.status, 200);
    expect_text("page", content(), "unit 0: waiting 1: asking\n");
    expect_text("type", app.response.type, "text/html; charset=utf-8");
    expect_part("kept nowhere", app.response.fields, "Cache-Control: no-store\r\n");
    expect_part("safe", app.response.fields, "Content-Security-Policy: default-src 'self'");
    expect_no_part("for no other origin", app.response.fields, "Access-Control");

    expect_number("effect", ask("GET /status.json?now", ""), RESPOND);
    expect_number("status", app.response.status, 200);
    expect_part("its beginning", content(), "{\n \"server\": \"unit\",\n");
    expect_part("its end", content(), "}\n ]\n}\n");
    expect_text("type", app.response.type, "application/json");
    expect_text("fields", app.response.fields,
                "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n");
}

Test(app, shows_the_scoreboard_to_the_pages_of_this_machine_only)
{
    static const struct {
        const char *origin;
        bool local;
    } rows[] = {
        {"http://127.0.0.1:8003", true},
        {"http://localhost:8003", true},
        {"http://[::1]:8003", true},
        {"http://127.0.0.1.example:80", false},
        {"http://localhost.example", false},
        {"https://example.org", false},
        {"https://localhost:8003", false},
        {"null", false},
        {"http://localhost:8003.example", false},
        {"http://localhost:80@example.org", false},
        {"http://127.0.0.1:80.example.org", false},
        {"HTTP://LocalHost", true},
        {"http://127.8.9.10", true},
        {"http://128.0.0.1:8003", false},
        {"http://[::2]:8003", false},
        {"http://[localhost]:8003", false},
        {"http://", false},
    };
    come_from_here();
    for (size_t i = 0; i < COUNT(rows); i++) {
        char field[100];
        snprintf(field, sizeof(field), "Origin: %s\r\n\r\n", rows[i].origin);
        ask("GET /status.json", field);
        expect_number("status", app.response.status, 200);
        cr_expect(!strstr(app.response.fields, "Access-Control-Allow-Origin: *\r\n") ==
                      !rows[i].local,
                  "%s: %s", rows[i].origin, app.response.fields);
    }
}

/* Rule 24. */
Test(app, shows_the_scoreboard_under_a_name_of_this_machine_only)
{
    static const char *const local[] = {
        "localhost",   "LOCALHOST:8000", "localhost:", "127.0.0.1:8000",
        "127.255.0.1", "[::1]",          "[::1]:8000", "[0:0::1]:1"};
    static const char *const others[] = {
        "a",          "a:8000",     "localhost.a", "a.localhost", "127.0.0.1.a",
        "127.1",      "127.0.0.1.", "128.0.0.1",   "[::2]",       "[::ffff:8.8.8.8]",
        "localhost.", "127",        "8000",        "%6cocalhost", "0.0.0.0:8000",
        "[::]",
    };
    int here;
    come_from_here();
    here = app.client;
    for (size_t i = 0; i < COUNT(local); i++) {
        ask_of(local[i], "GET /status", "");
        expect_number(local[i], app.response.status, 200);
        ask_of(local[i], "GET /status.json", "");
        expect_number(local[i], app.response.status, 200);
    }
    for (size_t i = 0; i < 2 * COUNT(others); i++) {
        const char *other = others[i / 2];
        app.client = i % 2 ? -1 : here; /* on this machine, or on another */
        ask_of(other, "GET /status", "");
        expect_number(other, app.response.status, 421);
        expect_part(other, content(), "421 Misdirected Request");
        ask_of(other, "GET /status.json", "Origin: http://localhost:8000\r\n\r\n");
        expect_number(other, app.response.status, 421);
        expect_no_part(other, content(), "asking");
        expect_no_part(other, app.response.fields, "Access-Control");
    }
}

Test(app, shows_the_scoreboard_to_nobody_else)
{
    static const char *const lines[] = {"GET /status", "HEAD /status", "GET /status.json",
                                        "GET /%73tatus.json", "GET /x/../status"};
    come_from_here();
    app.client = -1;
    for (size_t i = 0; i < COUNT(lines); i++) {
        ask(lines[i], "");
        expect_number(lines[i], app.response.status, 403);
        expect_part(lines[i], content(), "403 Forbidden");
        expect_no_part(lines[i], content(), "asking");
        expect_no_part(lines[i], app.response.fields, "Access-Control");
    }
}

/* Rule 24, with --status all. A name may still lead anywhere, and a page of another host is still
 * another site's. */
Test(app, shows_the_scoreboard_to_all_under_every_address, .init = start_with_status_for_all)
{
    static const struct {
        const char *host, *origin;
        int status;
        bool may_read;
    } rows[] = {
        {"192.0.2.7:8001", "http://192.0.2.7:8007", 200, true},
        {"192.0.2.7", "http://192.0.2.7", 200, true},
        {"0.0.0.0:8001", "http://0.0.0.0:8007", 200, true},
        {"[2001:db8::7]:8001", "http://[2001:db8::7]:8007", 200, true},
        {"localhost:8001", "http://localhost:8007", 200, true},
        {"127.0.0.1:8001", "http://localhost:8007", 200, true},
        {"192.0.2.7:8001", "http://192.0.2.8:8007", 200, false},
        {"192.0.2.7:8001", "http://192.0.2.7.example:8001", 200, false},
        {"192.0.2.7:8001", "https://192.0.2.7:8001", 200, false},
        {"192.0.2.7:8001", "http://example.org", 200, false},
        {"192.0.2.7:8001", "null", 200, false},
        {"example.org", "http://example.org", 421, false},
        {"192.0.2.7.example:8001", "http://192.0.2.7.example:8001", 421, false},
        {"a.localhost", "http://a.localhost", 421, false},
        {"192.0.2", "http://192.0.2", 421, false},
        {"3221225991", "http://3221225991", 421, false},
    };
    come_from_here();
    for (size_t i = 0; i < 2 * COUNT(rows); i++) {
        const char *host = rows[i / 2].host;
        char field[100];
        int here = app.client;
        snprintf(field, sizeof(field), "Origin: %s\r\n\r\n", rows[i / 2].origin);
        app.client = i % 2 ? -1 : here; /* on this machine, or on another */
        ask_of(host, "GET /status", field);
        expect_number(host, app.response.status, rows[i / 2].status);
        expect_no_part(host, app.response.fields, "Access-Control");
        ask_of(host, "GET /status.json", field);
        expect_number(host, app.response.status, rows[i / 2].status);
        cr_expect(!strstr(app.response.fields, "Access-Control") == !rows[i / 2].may_read,
                  "%s for %s: %s", host, rows[i / 2].origin, app.response.fields);
        app.client = here;
    }
}

/* A policy cannot name all of the addresses that the wall may be fetched from. */
Test(app, with_status_for_all_the_wall_may_connect_to_any_address,
     .init = start_with_status_for_all)
{
    scratch_file("public/wall.html", "wall");
    ask("GET /wall.html", "");
    expect_part("wall", app.response.fields, "; connect-src 'self' http:\r\n");
    ask("GET /", "");
    expect_no_part("another page", app.response.fields, "connect-src");
}

/* Its script looks at the other six. No other page's may. */
Test(app, the_wall_alone_may_connect_to_other_ports)
{
    static const char wide[] = "; connect-src 'self' http://127.0.0.1:* http://localhost:*\r\n";
    scratch_file("public/wall.html", "wall");
    scratch_file("public/wall/wall.html", "no wall");
    ask("GET /wall.html", "");
    expect_number("wall", app.response.status, 200);
    expect_part("wall", app.response.fields, wide);
    expect_part("as safe else", app.response.fields,
                "Content-Security-Policy: default-src 'self'; base-uri 'none'; form-action 'self'; "
                "frame-ancestors 'none'; connect-src");
    ask("GET /wall/../wall.html?base=8000", "");
    expect_part("however it is asked for", app.response.fields, wide);
    ask("GET /wall.html", "Range: bytes=0-0\r\n\r\n");
    expect_number("a part", app.response.status, 206);
    expect_part("a part", app.response.fields, wide);
    static const char *const others[] = {"GET /", "GET /wall/wall.html", "GET /none"};
    for (size_t i = 0; i < COUNT(others); i++) {
        ask(others[i], "");
        expect_part(others[i], app.response.fields, "Content-Security-Policy: default-src 'self'");
        expect_no_part(others[i], app.response.fields, "connect-src");
    }
}

/* ---- status pages -------------------------------------------------------------------------- */

Test(app, every_refusal_is_explained)
{
    static const int statuses[] = {400, 403, 404, 405, 408, 413, 414, 415,
                                   417, 421, 431, 501, 503, 504, 505};
    for (size_t i = 0; i < COUNT(statuses); i++) {
        char code[10];
        snprintf(code, sizeof(code), "%d ", statuses[i]);
        app_clear(&app, 4096);
        app_refuse(&app, statuses[i]);
        expect_number(code, app.response.status, statuses[i]);
        cr_expect(strncmp(content(), code, 4) == 0, "%s", content());
        expect_part(code, content(), http_reason(statuses[i]));
        expect_no_part(code, content(), "Something went wrong in the server");
        expect_text(code, app.response.type, "text/html; charset=utf-8");
        expect_part(code, app.response.fields, "Cache-Control: no-store\r\n");
    }
}

/* Who is refused before the request is looked at has asked for nothing that Redis could lack. */
Test(app, a_503_says_what_is_missing)
{
    app_clear(&app, 4096);
    app_refuse(&app, 503);
    expect_part("refused", content(), "no process or thread");
    expect_no_part("refused", content(), "Redis");
    expect_no_part("refused", content(), "look before you post");
    ask("GET /guestbook", "");
    app_reply(&app, NULL, REDIS_NO_CONNECTION);
    expect_part("no Redis", content(), "redis-server --port");
    expect_no_part("no Redis", content(), "no process or thread");
}

Test(app, what_was_refused_is_not_shown)
{
    ask("GET /%3Cscript%3E", "");
    expect_number("404", app.response.status, 404);
    expect_no_part("404", content(), "script");
}

Test(app, names_itself)
{
    expect_text("server", app_server(), "ZeroHTTPd/" ZEROHTTPD_VERSION " (unit)");
}

/* ---- what a request leaves behind ---------------------------------------------------------- */

Test(app, clearing_closes_the_file_and_gives_memory_back)
{
    ask("GET /large.bin", "");
    int fd = app.file.fd;
    app_clear(&app, 0);
    expect_number("closed", fcntl(fd, F_GETFD), -1);
    expect_number("none", app.file.fd, -1);

    ask("GET /none", "");
    size_t size = app.buffer.size;
    cr_assert(size > 0);
    app_clear(&app, size);
    expect_number("kept", app.buffer.size, size);
    expect_number("empty", app.buffer.len, 0);
    app_clear(&app, size - 1);
    expect_number("given back", app.buffer.size, 0);
}

/* No descriptor can be opened until descriptors_back(). */
static struct rlimit descriptors;

static void descriptors_gone(void)
{
    getrlimit(RLIMIT_NOFILE, &descriptors);
    int next = dup(scratch_fd);
    close(next);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)next, descriptors.rlim_max});
}

static void descriptors_back(void)
{
    setrlimit(RLIMIT_NOFILE, &descriptors);
}

Test(app, rule_18_without_a_descriptor_for_a_file_it_is_a_503)
{
    descriptors_gone();
    ask("GET /a.txt", "");
    descriptors_back();
    expect_number("without", app.response.status, 503);
    expect_part("without", app.response.fields, "Retry-After: 1\r\n");
    ask("GET /a.txt", "");
    expect_number("with one again", app.response.status, 200);
}

/* ---- templates that change ----------------------------------------------------------------- */

/* A new text for a template, with the old one's date: so it comes out of an archive that is to be
 * the same each time (`tar --mtime=@0`). */
static void change(const char *name, const char *text)
{
    static const struct timespec epoch[2] = {{0}, {0}};
    scratch_file(name, text);
    cr_assert(utimensat(scratch_fd, name, epoch, 0) == 0);
}

/* Asks for a page that is not there until its content is as expected: the file is looked at once a
 * second. */
static bool comes_to_be(const char *expected)
{
    for (int ms = 0; ms < PATIENCE_MS; ms += 20) {
        ask("GET /none", "");
        if (strcmp(content(), expected) == 0)
            return true;
        poll(NULL, 0, 20);
    }
    return false;
}

#define STATUS "templates/error/index.html"

Test(app, a_template_removed_after_start_leaves_the_old_page)
{
    change(STATUS, "old {{code}}");
    change("templates/guestbook/index.html", "guest");
    cr_assert(comes_to_be("old 404"));
    unlinkat(scratch_fd, STATUS, 0);
    change("templates/guestbook/index.html", "visitor");
    for (int ms = 0; ms < PATIENCE_MS; ms += 20) { /* until files have surely been looked at */
        ask("POST /guestbook", FORM(0) "");
        if (strcmp(content(), "visitor") == 0)
            break;
        poll(NULL, 0, 20);
    }
    ask("GET /none", "");
    expect_text("the page", content(), "old 404");
}

/* Being out of descriptors is weather: a change must not be lost by it. */
Test(app, a_template_changed_while_descriptors_were_out_is_read_later)
{
    change(STATUS, "old {{code}}");
    cr_assert(comes_to_be("old 404"));
    int kept = dup(STDERR_FILENO), messages = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(messages, STDERR_FILENO);
    change(STATUS, "new {{code}}");
    descriptors_gone();
    for (int64_t until = clock_now_ms() + 1500; clock_now_ms() < until; poll(NULL, 0, 20))
        ask("GET /none", "");
    descriptors_back();
    dup2(kept, STDERR_FILENO);
    cr_expect(comes_to_be("new 404"), "%s", content());
}

/* Chapters 4 and 5: many render at once, and one of them finds that the file has changed. */
static atomic_bool enough;
static atomic_int rendered, torn;

static void *render(void *unused)
{
    struct app own = {.file.fd = -1};
    (void)unused;
    while (!enough) {
        app_clear(&own, 4096);
        app_refuse(&own, 404);
        if (!span_is(own.content, "old 404 Not Found") && !span_is(own.content, "new 404"))
            torn++;
        rendered++;
    }
    app_clear(&own, 0);
    return NULL;
}

Test(app, threads_render_while_a_template_changes)
{
    pthread_t threads[4];
    change(STATUS, "old {{code}} {{reason}}");
    cr_assert(comes_to_be("old 404 Not Found"));
    for (size_t i = 0; i < COUNT(threads); i++)
        cr_assert(pthread_create(&threads[i], NULL, render, NULL) == 0);
    change(STATUS, "new {{code}}");
    cr_expect(comes_to_be("new 404"), "%s", content());
    enough = true;
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    cr_expect(rendered > 0);
    expect_number("neither the old page nor the new one", torn, 0);
}

/* ---- what ends the program at start -------------------------------------------------------- */

TestSuite(app_at_start, .timeout = 60, .init = scratch_site, .fini = scratch_remove);

static void start_with(const void *with)
{
    process_start();
    app_start(with);
}

static void expect_death(const char *about, const char *message)
{
    struct ending ending = run_apart(start_with, &options);
    expect_number(about, ending.status, 1);
    expect_text(about, ending.err, message);
    expect_text(about, ending.out, "");
}

Test(app_at_start, dies_without_its_root)
{
    options = unit_options();
    options.root = "/none";
    expect_death("none", "unit: --root /none: No such file or directory\n");
    options.root = "/proc/self/exe";
    expect_death("a file", "unit: --root /proc/self/exe: Not a directory\n");
}

Test(app_at_start, dies_without_public)
{
    options = unit_options();
    renameat(scratch_fd, "public", scratch_fd, "published");
    expect_death("none", "unit: public: No such file or directory; start it where public/ is, or "
                         "use --root\n");
}

Test(app_at_start, dies_without_a_template)
{
    options = unit_options();
    unlinkat(scratch_fd, STATUS, 0);
    expect_death("status", "unit: " STATUS ": No such file or directory; start it where "
                           "templates/ is, or use --root\n");
    unlinkat(scratch_fd, "templates/guestbook/index.html", 0);
    expect_death("guestbook", "unit: templates/guestbook/index.html: No such file or directory; "
                              "start it where templates/ is, or use --root\n");
}

Test(app_at_start, dies_of_a_template_that_is_wrong)
{
    options = unit_options();
    scratch_file(STATUS, "fine\n{{codes}}\n");
    expect_death("status", "unit: " STATUS ":2: unknown name: codes\n");
    scratch_file("templates/guestbook/index.html", "{{#entries}}");
    expect_death("guestbook", "unit: templates/guestbook/index.html:1: a section is not closed\n");
}
