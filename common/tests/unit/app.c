/* The routes: requests and replies in, effects out. The site is that of unit.h. */
#include "app.h"
#include "options.h"
#include "process.h"
#include "unit.h"

static struct options options;
static struct app app = {.client = -1, .file.fd = -1};

static void start(void)
{
    scratch_site();
    options = unit_options();
    process_start();
    app_load(&options);
}

static void finish(void)
{
    app_clear(&app, 0);
    scratch_remove();
}

TestSuite(app, .timeout = 60, .init = start, .fini = finish);

/* ---- asking -------------------------------------------------------------------------------- */

/* Hands a request over: its line without the version, and what follows the Host field. */
static enum effect ask(const char *line, const char *rest)
{
    static char bytes[10000];
    struct http_parser parser = {0};
    struct http_request request;
    size_t len = (size_t)snprintf(bytes, sizeof(bytes), "%s HTTP/1.1\r\nHost: localhost\r\n%s",
                                  line, *rest ? rest : "\r\n");
    cr_assert(http_parse(&parser, bytes, &len, &request) > 0, "%s", bytes);
    app_clear(&app, 0);
    return app_request(&app, &request);
}

/* ---- the wall ------------------------------------------------------------------------------ */

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
