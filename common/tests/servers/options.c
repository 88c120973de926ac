/* The command line: what is understood, what is refused, and how that is said. */
#include "tests/harness/harness.h"

#include <regex.h>

/* One line on standard error, that begins with the server's name and says so much. */
static void check_complaint(const char *what)
{
    size_t len = strlen(server_says);
    const char *errors = server_errors();
    check(count_lines(errors) == 1, "not one line");
    check(strncmp(errors, server_says, len) == 0 && strncmp(errors + len, ": ", 2) == 0,
          "it does not say who");
    check(strstr(errors, what), "it does not say %s", what);
}

/* --workers is an option only where there are any. */
EVERY_SERVER(a_bad_option_is_named_and_the_status_is_2)
{
    bool has = server_has_workers();
    const struct {
        const char *words[2], *what;
    } rows[] = {
        {{"-x"}, "'x'"},
        {{"-r"}, "'r'"},
        {{"--nonsense"}, "'--nonsense'"},
        {{"extra"}, "'extra'"},
        {{"--", "-x"}, "'-x'"},
        {{"--port", "8.0"}, "'8.0'"},
        {{"--port", ""}, "--port ''"},
        {{"--port", "-1"}, "'-1'"},
        {{"--port", "99999999999999999999"}, "'99999999999999999999'"},
        {{"--port", "70000"}, "--port '70000': a whole number from 0 to 65535"},
        {{"--bind", "nonsense"}, "--bind 'nonsense': an IPv4 or IPv6 address"},
        {{"--timeout", "0.09"}, "'0.09'"},
        {{"--timeout", "0x10"}, "'0x10'"},
        {{"--keep-alive", "3601"}, "--keep-alive '3601': seconds from 0 to 3600"},
        {{"--keep-alive", "nan"}, "'nan'"},
        {{"--keep-alive", ""}, "--keep-alive ''"},
        {{"--work", "-1"}, "--work '-1': milliseconds from 0 to 1000"},
        {{"--redis", "nowhere"}, "--redis 'nowhere': host:port"},
        {{"--status", "nobody"}, "--status 'nobody': local or all"},
        {{"--redis-connections", server_is("threading") ? "0" : "7"}, "redis-connections"},
        {{"--workers", has ? "0" : "4"}, has ? "--workers '0': a whole number" : "--workers"},
    };
    start_redis();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int status = run_server(rows[i].words[0], rows[i].words[1]);
        check(status == 2, "%s: status %d", rows[i].what, status);
        check_complaint(rows[i].what);
        check(!*server_output(), "%s: %s", rows[i].what, server_output());
    }
}

EVERY_SERVER(a_port_that_is_taken_is_named)
{
    char port[16], what[32];
    int taken = keep_port(port);
    check(listen(taken, 1) == 0, "%s", strerror(errno));
    start_redis();
    snprintf(what, sizeof(what), "port %s", port);
    check(run_server("--port", port) == 1, "not status 1");
    check_complaint(what);
    close(taken);
}

EVERY_SERVER(without_public_or_templates_it_does_not_start)
{
    check(mkdir(place("bare"), 0755) == 0, "no folder");
    check(run_server("--root", place("bare")) == 1, "not status 1");
    check_complaint("public");
    check(mkdir(place("bare/public"), 0755) == 0, "no folder");
    check(run_server("--root", place("bare")) == 1, "not status 1");
    check_complaint("templates/");
    check(run_server("--root", place("not-there")) == 1, "not status 1");
    check_complaint("not-there");
    check(run_server("--root", "/proc/self/exe") == 1, "not status 1");
    check_complaint("--root /proc/self/exe");
}

#define GUESTBOOK      "root/templates/guestbook/index.html"
#define GUESTBOOK_SAYS "templates/guestbook/index.html:"

/* A root whose guestbook template is ours. */
static const char *make_root_with(const char *template)
{
    char copy[256];
    const char *root = make_root();
    snprintf(copy, sizeof(copy), "rm %s/templates && cp -r templates %s", root, root);
    check(system(copy) == 0, "no templates/ here");
    write_file(GUESTBOOK, template, strlen(template));
    return root;
}

EVERY_SERVER(a_template_with_a_mistake_does_not_start_it)
{
    const char *root = make_root_with("two\n{{nonsense}}");
    check(run_server("--root", root) == 1, "not status 1");
    check_complaint(server_is_ours() ? GUESTBOOK_SAYS "2: unknown name: nonsense" : GUESTBOOK_SAYS);
}

EVERY_SERVER(help_and_version_are_no_errors)
{
    check(run_server("--help") == 0 && !*server_errors(), "--help fails");
    check(strstr(server_output(), "--port") && strstr(server_output(), "--status") &&
              strstr(server_output(), server_says),
          "%s", server_output());
    check(!strstr(server_output(), "--workers") == !server_has_workers(), "%s", server_output());
    check(run_server("--version") == 0 && !*server_errors(), "--version fails");
    check(strncmp(server_output(), server_says, strlen(server_says)) == 0 &&
              strstr(server_output(), "ZeroHTTPd") && count_lines(server_output()) == 1,
          "%s", server_output());
}

/* ---- the log ------------------------------------------------------------------------------- */

/* Checks that the output is the banner, so many lines of Common Log Format, and the statistics; and
 * that it has this text. */
static void check_log(int lines, const char *text)
{
    regex_t format;
    const char *log = strchr(server_output(), '\n') + 1;
    check(regcomp(&format,
                  "^127\\.0\\.0\\.1 - - \\[[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9:]{8} \\+0000\\] "
                  "\"([ !#-[]|]|[\\^-~]|\\\\x[0-9a-f]{2})*\" [1-5][0-9]{2} [0-9]+\n",
                  REG_EXTENDED) == 0,
          "regcomp");
    int more = count_lines(log) - lines;
    check(more == 1 || (more == 0 && !server_is_ours()), "not %d lines: %s", lines, log);
    check(strstr(log, text), "no %s: %s", text, log);
    for (int i = 0; i < lines; i++, log = strchr(log, '\n') + 1) {
        regmatch_t match;
        bool fits = regexec(&format, log, 1, &match, 0) == 0 && match.rm_so == 0;
        check(fits, "not in Common Log Format: %s", log);
    }
    regfree(&format);
}

EVERY_SERVER(verbose_means_a_line_a_request)
{
    char line[64];
    size_t size = 0;
    read_whole("public/index.html", &size);
    snprintf(line, sizeof(line), "\"GET / HTTP/1.1\" 200 %zu\n", size);
    start_server("-v");
    get("/not-there");
    struct client *c = dial();
    say(c, "GET / HTTP/1.1\r\nHost: test\r\n\r\nHEAD / HTTP/1.1\r\nHost: test\r\n\r\n");
    hear(c);
    hear_head(c);
    hang_up(c);
    stop_server();
    check_log(3, "\"GET /not-there HTTP/1.1\" 404 ");
    check_log(3, line);
    check_log(3, "\"HEAD / HTTP/1.1\" 200 0\n");
}

/* The statistics count CPU time, the children's too: time that is slept away would not show. */
EVERY_SERVER(with_work_each_page_of_the_guestbook_computes_and_nothing_else_does)
{
    enum { WORK_MS = 120, PAGES = 3, FILES = 30 };
    start_redis();
    start_server("--work", "120");
    for (int i = 0; i < PAGES; i++) {
        int64_t before = now_ms();
        check(get("/guestbook")->status == 200, "no page");
        check(now_ms() - before >= WORK_MS, "a page after %lld ms", (long long)(now_ms() - before));
    }
    for (int i = 0; i < FILES; i++)
        check(get("/")->status == 200, "no file");
    struct statistics s = stop_server();
    check(s.told, "%s", server_output());
    check(s.cpu_s >= PAGES * WORK_MS / 1000.0, "%.2f s for the pages", s.cpu_s);
    check(s.cpu_s < FILES * WORK_MS / 1000.0, "%.2f s: the files, too?", s.cpu_s);
}

EVERY_SERVER(a_hostile_request_cannot_forge_a_line_of_the_log)
{
    static const char *const hostile[] = {
        "GET /\r127.0.0.1 - - [forged] \"GET / HTTP/1.1\" 200 1 HTTP/1.1\r\nHost: test\r\n\r\n",
        "GET /\n127.0.0.1 - - [forged] \"GET / HTTP/1.1\" 200 1 HTTP/1.1\r\nHost: test\r\n\r\n",
        "GET /\" 200 1 \\x0a\x1b[2J\x7f\xff HTTP/1.1\r\nHost: test\r\n\r\n",
        "GET /\\ HTTP/1.1\r\nHost: test\r\n\r\n",
        "GET /\xe2\x80\xae HTTP/1.1\r\nHost: test\r\n\r\n",
        "GET /%0a127.0.0.1 HTTP/1.1\r\nHost: test\r\n\r\n",
        "\x16\x03\x01\r\n\r\n",
        "%s%n\r\n\r\n",
        "\"\r\n\r\n",
        "nonsense\r\n\r\n",
    };
    enum { COUNT = sizeof(hostile) / sizeof(hostile[0]) };
    start_server("-v");
    for (int i = 0; i < COUNT; i++)
        check(ask(hostile[i])->status >= 400, "%s", hostile[i]);
    stop_server();
    check_log(COUNT, "\"nonsense\" 400 ");
    check(!strstr(server_output(), "\n127.0.0.1 - - [forged]"), "%s", server_output());
}

/* `epoll -v | less`, and nobody scrolls: what does not fit into the pipe is left out. */
EVERY_SERVER(a_log_that_nobody_reads_stops_nobody)
{
    enum { REQUESTS = 300, LONG = 500 }; /* lines of more bytes than a pipe holds */
    char target[LONG + 2];
    snprintf(target, sizeof(target), "/%0*d", LONG, 0);
    start_server("-v");
    for (int i = 0; i < REQUESTS; i++)
        check(get(target)->status == 404, "not found");
    check(has_counted(stop_server(), REQUESTS, REQUESTS), "not counted");
    int lines = count_lines(server_output()) - 2; /* whole ones */
    check(lines > REQUESTS / 10 && lines < REQUESTS, "%d lines of %d", lines, REQUESTS);
    check_log(lines, target);
}

/* `epoll 2>&1 >log | less`, where it has something to say each second. */
EVERY_SERVER(a_standard_error_that_is_a_full_pipe_stops_nobody)
{
    static const char filler[4096];
    check(mkfifo(place("pipe"), 0644) == 0, "%s", strerror(errno));
    int pipe = open(place("pipe"), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    while (write(pipe, filler, sizeof(filler)) > 0)
        ;
    run_under("sh", "-c", "exec \"$@\" 2>\"$0\"", place("pipe"));
    start_redis();
    start_server();
    redis("CONFIG SET maxmemory 1");
    for (int i = 0; i < 2; i++) {
        check(get("/guestbook")->status == 503, "Redis refuses to write");
        poll(NULL, 0, 1100); /* it is told once a second */
    }
    check_file(get("/"), "public/index.html");
}

/* `ulimit -f`, and a log that has reached it: SIGXFSZ comes instead of an error. The file is that
 * of standard error here, which is as good as a log. */
EVERY_SERVER(a_log_file_at_its_limit_ends_nobody)
{
    if (server_has_sanitizer() || system("prlimit --fsize=0 true 2>/dev/null") != 0)
        cr_skip_test("a sanitizer writes files of its own, or prlimit is not installed");
    start_redis();
    run_under("prlimit", "--fsize=0");
    start_server();
    redis("CONFIG SET maxmemory 1");
    for (int i = 0; i < 2; i++) {
        check(get("/guestbook")->status == 503, "Redis refuses to write, and that is told");
        poll(NULL, 0, 1100); /* once a second */
    }
}
