/* The command line: what is understood, what is refused, and how that is said. */
#include "tests/harness/harness.h"

#include <regex.h>
#include <termios.h>

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

EVERY_SERVER(a_bad_option_is_named_and_the_status_is_2)
{
    static const struct {
        const char *words[3], *what;
    } cases[] = {
        {{"-x"}, "-x"},
        {{"extra"}, "'extra'"},
        {{"--port", "70000"}, "--port '70000': a whole number from 0 to 65535"},
        {{"--bind", "nonsense"}, "--bind 'nonsense': an IPv4 or IPv6 address"},
        {{"--timeout", "0"}, "'0'"},
        {{"--keep-alive", "-1"}, "'-1'"},
        {{"--backlog", "0"}, "'0'"},
        {{"--work", "-1"}, "--work '-1': milliseconds from 0 to 1000"},
        {{"--redis", "nowhere"}, "'nowhere'"},
    };
    start_redis();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status = run_server(cases[i].words[0], cases[i].words[1]);
        check(status == 2, "%s: status %d", cases[i].what, status);
        check_complaint(cases[i].what);
        check(!*server_output(), "%s: %s", cases[i].what, server_output());
    }
}

EVERY_SERVER(workers_are_an_option_only_where_there_are_any)
{
    if (server_has_workers()) {
        check(run_server("--workers", "0") == 2, "no workers at all");
        check_complaint("--workers '0': a whole number from 1");
        check(run_server("--workers", "many") == 2, "that is no number");
        check_complaint("--workers 'many'");
    } else {
        check(run_server("--workers", "4") == 2, "it takes what it cannot do");
        check_complaint("--workers");
    }
}

EVERY_SERVER(the_status_is_for_local_clients_or_for_all)
{
    check(run_server("--status", "nobody") == 2, "nobody may see it");
    check_complaint("--status 'nobody': local or all");
    check(!*server_output(), "%s", server_output());
    check(run_server("--help") == 0 && strstr(server_output(), "--status"), "%s", server_output());
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

#define GUESTBOOK "root/templates/guestbook/index.html"

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

static void make_wrong(const char *path)
{
    (void)path;
    write_file(GUESTBOOK, "two {{nonsense}}", 16);
}

static void make_fifo(const char *path)
{
    check(unlink(path) == 0 && mkfifo(path, 0644) == 0, "%s", strerror(errno));
}

static void link_to_device(const char *path)
{
    check(unlink(path) == 0 && symlink("/dev/zero", path) == 0, "%s", strerror(errno));
}

/* 64 GiB of holes, which are read as zeros: more than there is memory for. */
static void make_endless(const char *path)
{
    check(truncate(path, 64LL << 30) == 0, "%s", strerror(errno));
}

/* As an editor does before it writes. */
static void make_empty(const char *path)
{
    check(truncate(path, 0) == 0, "%s", strerror(errno));
}

/* Whoever looks at it waits for nobody, and the page stays as it was until there is a template. */
EVERY_SERVER(a_template_that_changes_is_read_again_and_one_that_breaks_is_not_used)
{
    static const struct {
        void (*make)(const char *path);
        const char *complaint;
    } rows[] = {
        {make_wrong, "templates/guestbook/index.html:1: unknown name: nonsense"},
        {make_fifo, "templates/guestbook/index.html: not a regular file"},
        {link_to_device, "templates/guestbook/index.html: not a regular file"},
        {make_endless, "templates/guestbook/index.html: File too large"},
        {make_empty, "templates/guestbook/index.html: empty"},
    };
    const char *root = make_root_with("one"), *template = place(GUESTBOOK);
    start_redis();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_file(GUESTBOOK, "one", 3);
        start_server("--root", root, "--timeout", "60");
        check(strcmp(get("/guestbook")->body, "one") == 0, "not the template");
        rows[i].make(template);
        wait_until(strcmp(get("/guestbook")->body, "one") != 0 || *server_errors(), 3000,
                   "it was not looked at again");
        check_complaint(server_is_ours() ? rows[i].complaint : "templates/guestbook/index.html");
        check(strcmp(get("/guestbook")->body, "one") == 0, "it is used");
        check_file(get("/index.html"), place("root/public/index.html"));
        check(unlink(template) == 0, "%s", strerror(errno));
        write_file(GUESTBOOK, "two", 3);
        wait_until(strcmp(get("/guestbook")->body, "two") == 0, 3000, "it was not read again");
        stop_server();
    }
}

EVERY_SERVER(a_template_that_is_a_fifo_is_refused_at_start)
{
    const char *root = make_root_with("one");
    make_fifo(place(GUESTBOOK));
    check(run_server("--root", root) == 1, "not status 1");
    check_complaint(server_is_ours() ? "templates/guestbook/index.html: not a regular file"
                                     : "templates/guestbook/index.html");
}

/* A terminal obeys what begins with an escape character. */
EVERY_SERVER(a_template_cannot_speak_to_a_terminal)
{
    const char *root = make_root_with("{{\x1b[31m\x9b\xc3\xa9\rx\x7f}}");
    check(run_server("--root", root) == 1, "not status 1");
    check_complaint("templates/guestbook/index.html:1: unknown name: "
                    "\\x1b[31m\\x9b\\xc3\\xa9\\x0dx\\x7f");
}

EVERY_SERVER(help_and_version_are_no_errors)
{
    check(run_server("--help") == 0 && !*server_errors(), "--help fails");
    check(strstr(server_output(), "--port") && strstr(server_output(), server_says), "%s",
          server_output());
    check(!strstr(server_output(), "--workers") == !server_has_workers(), "%s", server_output());
    check(!strstr(server_output(), "--redis-conn") == !server_is("threading") || !server_is_ours(),
          "%s", server_output());
    static const char *const names[] = {
        "-p, --port",       "-b, --bind",    "-r, --redis",   "-d, --root", "-u, --user",
        "-k, --keep-alive", "-t, --timeout", "-l, --backlog", "-W, --work", "-s, --status",
        "-v, --verbose",    "-h, --help",    "-V, --version"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        check(strstr(server_output(), names[i]) || !server_is_ours(), "no %s", names[i]);
    char usage[64];
    snprintf(usage, sizeof(usage), "Usage: %s [option]...\n", server_says);
    check(strncmp(server_output(), usage, strlen(usage)) == 0 || !server_is_ours(), "no %s", usage);
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

/* 499 is no status that a client could see. Its entry is stored all the same. */
EVERY_SERVER(a_request_whose_client_has_gone_is_logged_with_499)
{
    static const char post[] =
        "POST /guestbook HTTP/1.1\r\nHost: test\r\nContent-Length: 28\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n\r\nguest-name=a&guest-remarks=b";
    start_redis();
    start_server("-v");
    freeze_redis();
    struct client *c = dial_and_be_read(post);
    reset(c);
    thaw_redis();
    wait_until(redis_number("LLEN guestbook:entries") == 1, SOON_MS, "not stored");
    check(stop_server().requests == 0 || !server_is_ours(), "nobody took it, and it counts");
    check_log(1, "\"POST /guestbook HTTP/1.1\" 499 0\n");
}

EVERY_SERVER(an_aborted_download_is_logged_with_the_bytes_that_went)
{
    enum { SIZE = 64 * 1024 * 1024, READ = 4 * 1024 * 1024 };
    unsigned long long bytes = 0;
    start_server("-v", "--root", make_root_with_file(SIZE));
    struct client *c = dial_and_say("GET /file.bin HTTP/1.1\r\nHost: test\r\n\r\n");
    check(recv(c->fd, malloc(READ), READ, MSG_WAITALL) == READ, "%s", strerror(errno));
    reset(c);
    stop_server();
    check_log(1, "\"GET /file.bin HTTP/1.1\" 499 ");
    sscanf(strstr(server_output(), "\" 499 "), "\" 499 %llu", &bytes);
    /* of the last call to sendfile(2), not even the kernel knows */
    check(bytes > READ / 2 && bytes < SIZE, "%llu bytes", bytes);
}

/* What the server tells when it has served a file. */
static struct statistics serve_one_file(void)
{
    start_server();
    get("/");
    struct statistics s = stop_server();
    check(s.told, "%s", server_output());
    return s;
}

/* A process stays the same through execve(2), with all that its program before it has used: a shell
 * that compiles first, and then becomes the server. */
EVERY_SERVER(the_statistics_are_of_the_server_alone)
{
    enum { BEFORE_KIB = 200 * 1024 };
    double usual = serve_one_file().cpu_s; /* an interpreter's start is its own, too */
    run_under("python3", "-c",
              "import os, sys\n"
              "if os.fork() == 0: bytearray(200 << 20); sum(range(5 * 10 ** 6)); os._exit(0)\n"
              "os.wait(); sum(range(5 * 10 ** 6)); os.execvp(sys.argv[1], sys.argv[1:])");
    struct statistics s = serve_one_file();
    check(s.peak_kib > 0 && s.peak_kib < BEFORE_KIB, "%ld KiB", s.peak_kib);
    check(s.cpu_s < usual + 0.1 * (double)patience(1), "%.2f s, and without it %.2f", s.cpu_s,
          usual);
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

/* Redis and a template give the server something to say, again and again. */
static void check_nobody_waits(const char *standard_error)
{
    enum { LOOKED_AGAIN_MS = 1500 }; /* a template is looked at once a second */
    const char *root = make_root_with("one");
    start_stand_in();
    run_under("sh", "-c", "exec \"$@\" 2>\"$0\"", standard_error);
    start_server("--root", root);
    for (int i = 0; i < 20; i++) {
        char says[40];
        snprintf(says, sizeof(says), "-ERR number %d\r\n", i);
        stand_in((struct manner){.at = "INCR", .says = says});
        check(get("/guestbook")->status == 503, "Redis refused");
    }
    stand_in((struct manner){0});
    write_file(GUESTBOOK, "two {{nonsense}}", 16);
    for (int64_t start = now_ms(); now_ms() - start < LOOKED_AGAIN_MS; poll(NULL, 0, 20))
        check(strcmp(get("/guestbook")->body, "one") == 0, "a broken template is used");
    check_file(get("/index.html"), place("root/public/index.html"));
    int64_t start = now_ms();
    stop_server();
    check_took(start, 0, patience(2000));
}

/* `epoll 2>&1 >log | less` */
EVERY_SERVER(a_standard_error_that_is_a_full_pipe_stops_nobody)
{
    static const char filler[4096];
    check(mkfifo(place("pipe"), 0644) == 0, "%s", strerror(errno));
    int pipe = open(place("pipe"), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    while (write(pipe, filler, sizeof(filler)) > 0)
        ;
    check_nobody_waits(place("pipe"));
    close(pipe);
}

EVERY_SERVER(a_terminal_that_ctrl_s_has_stopped_stops_nobody)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    check(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0, "%s",
          strerror(errno));
    int end = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
    check(end >= 0 && tcflow(end, TCOOFF) == 0, "%s", strerror(errno));
    check_nobody_waits(ptsname(terminal));
    close(end);
    close(terminal);
}

/* `ulimit -f`: the file of its standard error may not grow, and there is no Redis to be silent of.
 */
EVERY_SERVER(a_log_that_may_not_grow_stops_nobody)
{
    skip_thread_sanitizer();
    run_under("prlimit", "--fsize=0");
    start_server();
    check_file(get("/"), "public/index.html");
    check(get("/guestbook")->status == 503, "without Redis");
}

/* Somebody else has filled the pipe to its last byte: there is no room for the statistics. (Its
 * own log leaves some.) */
EVERY_SERVER(a_server_whose_full_pipe_nobody_reads_ends_in_time)
{
    static const char filler[4096];
    char path[64];
    start_server();
    get("/");
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)server_pid, STDOUT_FILENO);
    int out = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    check(out >= 0, "%s: %s", path, strerror(errno));
    for (size_t size = sizeof(filler); size > 0; size /= 2)
        while (write(out, filler, size) > 0)
            ;
    close(out);
    kill(server_pid, SIGTERM);
    int status = await_exit(5000);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "wait status 0x%x", (unsigned)status);
}

/* ---- IPv6 ---------------------------------------------------------------------------------- */

EVERY_SERVER(it_listens_on_ipv6_too)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe < 0 || bind(probe, (struct sockaddr *)&address, sizeof(address)) < 0)
        cr_skip_test("this machine has no [::1]");
    close(probe);
    start_server("--bind", "::1");
    check(strcmp(server_host, "[::1]") == 0, "it listens on %s", server_host);
    check_file(get("/"), "public/index.html");
}
