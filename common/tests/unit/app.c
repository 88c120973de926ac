/* The routes: requests and replies in, effects out. The site is the short one of unit.h. */
#include "app.h"
#include "clock.h"
#include "options.h"
#include "process.h"
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

/* ---- the guestbook ------------------------------------------------------------------------- */

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
    struct rlimit limit;
    change(STATUS, "old {{code}}");
    cr_assert(comes_to_be("old 404"));
    int kept = dup(STDERR_FILENO), messages = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(messages, STDERR_FILENO);
    change(STATUS, "new {{code}}");
    getrlimit(RLIMIT_NOFILE, &limit);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, limit.rlim_max});
    for (int64_t until = clock_now_ms() + 1500; clock_now_ms() < until; poll(NULL, 0, 20))
        ask("GET /none", "");
    setrlimit(RLIMIT_NOFILE, &limit);
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
