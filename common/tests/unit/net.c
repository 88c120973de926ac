/* Options, the listener, signals, the clock, and the statistics at the end. */
#include "net.h"
#include "clock.h"
#include "options.h"
#include "process.h"
#include "stop.h"
#include "text.h"
#include "unit.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/resource.h>

TestSuite(net, .timeout = 60);

/* ---- who is local -------------------------------------------------------------------------- */

Test(net, knows_an_address_that_only_this_machine_has)
{
    static const struct {
        const char *address;
        bool loopback;
    } rows[] = {
        {"127.0.0.1", true},
        {"127.0.0.0", true},
        {"127.255.255.255", true},
        {"126.255.255.255", false},
        {"128.0.0.1", false},
        {"0.0.0.0", false},
        {"1.0.0.127", false},
        {"10.0.0.1", false},
        {"192.168.0.127", false},
        {"::1", true},
        {"::", false},
        {"::2", false},
        {"1::1", false},
        {"::ffff:127.0.0.1", true},
        {"::ffff:127.9.9.9", true},
        {"::ffff:128.0.0.1", false},
        {"::ffff:0.0.0.1", false},
        {"::127.0.0.1", false},
        {"fe80::1", false},
        {"::fffe:127.0.0.1", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct sockaddr_in ipv4 = {.sin_family = AF_INET};
        struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6};
        bool six = strchr(rows[i].address, ':') != NULL;
        cr_assert(inet_pton(six ? AF_INET6 : AF_INET, rows[i].address,
                            six ? (void *)&ipv6.sin6_addr : &ipv4.sin_addr) == 1);
        expect_number(rows[i].address,
                      net_is_loopback(six ? (struct sockaddr *)&ipv6 : (struct sockaddr *)&ipv4),
                      rows[i].loopback);
    }
}

/* ---- options ------------------------------------------------------------------------------- */

struct command_line {
    int workers; /* the default, and of the pool a half; 0: there is no such option */
    const char *words[9];
};

static void parse(struct options *o, const struct command_line *line)
{
    static char copies[9][64];
    char *argv[11] = {(char *)(uintptr_t) "./server"};
    int argc = 1;
    for (; argc < 10 && line->words[argc - 1]; argc++) {
        snprintf(copies[argc - 1], sizeof(copies[0]), "%s", line->words[argc - 1]);
        argv[argc] = copies[argc - 1];
    }
    optind = 1;
    options_parse_with_pool(o, argc, argv, "server", line->workers, line->workers / 2);
}

static void parse_and_end(const void *line)
{
    struct options o;
    parse(&o, line);
}

/* All that it says, in a line. */
static const char *described(const struct options *o)
{
    static char text[200];
    snprintf(text, sizeof(text), "%s:%d %s %s, %d workers, %d of Redis, %d %d ms, %d us, %d%s",
             o->bind, o->port, o->redis, o->root, o->workers, o->pool, o->keep_alive_ms,
             o->timeout_ms, o->work_us, o->backlog, o->verbose ? ", verbose" : "");
    return text;
}

Test(net, options_are_read_and_each_has_a_default)
{
    static const struct {
        struct command_line line;
        const char *options;
    } rows[] = {
        {{100, {NULL}},
         "127.0.0.1:8000 127.0.0.1:6379 ., 100 workers, 50 of Redis, 5000 10000 ms, 0 us, 4096"},
        {{8, {"-p0", "-b::1", "-runix:/x", "-w30000", "-d/y", "-k0", "-t0.5006", "-W0.1", "-vl1"}},
         "::1:0 unix:/x /y, 30000 workers, 4 of Redis, 0 501 ms, 100 us, 1, verbose"},
        {{7,
          {"--port=65535", "--bind", "0.0.0.0", "--keep-alive=1.25", "--timeout", "3600",
           "--backlog=65535", "--verbose"}},
         "0.0.0.0:65535 127.0.0.1:6379 ., 7 workers, 3 of Redis, 1250 3600000 ms, 0 us, 65535, "
         "verbose"},
        {{7,
          {"--redis=h:1", "--workers", "1", "--root=/r", "--work=1000", "--redis-connections=500"}},
         "127.0.0.1:8000 h:1 /r, 1 workers, 500 of Redis, 5000 10000 ms, 1000000 us, 4096"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct options o;
        parse(&o, &rows[i].line);
        expect_text("name", o.name, "server");
        expect_text(rows[i].line.words[0] ? rows[i].line.words[0] : "none", described(&o),
                    rows[i].options);
    }
}

Test(net, a_bad_option_ends_the_program_with_one_line_that_names_it)
{
    static const struct {
        struct command_line line;
        const char *message;
    } rows[] = {
        {{1, {"-c", "7"}},
         "--redis-connections '7': this server has no threads that share connections"},
        {{0, {"-p", "65536"}}, "--port '65536': a whole number from 0 to 65535"},
        {{0, {"-p", "-1"}}, "--port '-1': a whole number from 0 to 65535"},
        {{0, {"-p", "80x"}}, "--port '80x': a whole number from 0 to 65535"},
        {{0, {"-p", ""}}, "--port '': a whole number from 0 to 65535"},
        {{0, {"-p", "99999999999999999999"}},
         "--port '99999999999999999999': a whole number from 0 to 65535"},
        {{5, {"-w", "0"}}, "--workers '0': a whole number from 1 to 30000"},
        {{5, {"--workers=30001"}}, "--workers '30001': a whole number from 1 to 30000"},
        {{0, {"-w", "5"}}, "--workers '5': this server has one process and one thread"},
        {{0, {"-k", "-1"}}, "--keep-alive '-1': seconds from 0 to 3600"},
        {{0, {"-k", "3601"}}, "--keep-alive '3601': seconds from 0 to 3600"},
        {{0, {"-k", "nan"}}, "--keep-alive 'nan': seconds from 0 to 3600"},
        {{0, {"-k", "inf"}}, "--keep-alive 'inf': seconds from 0 to 3600"},
        {{0, {"-k", ""}}, "--keep-alive '': seconds from 0 to 3600"},
        {{0, {"-t", "0"}}, "--timeout '0': seconds from 0.1 to 3600"},
        {{0, {"-t", "0.09"}}, "--timeout '0.09': seconds from 0.1 to 3600"},
        {{0, {"-l", "0"}}, "--backlog '0': a whole number from 1 to 65535"},
        {{0, {"-W", "-1"}}, "--work '-1': milliseconds from 0 to 1000"},
        {{0, {"--work", "1000.1"}}, "--work '1000.1': milliseconds from 0 to 1000"},
        {{0, {"--work=2ms"}}, "--work '2ms': milliseconds from 0 to 1000"},
        {{0, {"-x"}}, "unknown option '-x': see --help"},
        {{0, {"-vxv"}}, "unknown option '-x': see --help"},
        {{0, {"--nonsense"}}, "unknown option '--nonsense': see --help"},
        {{0, {"--verbose=1"}}, "unknown option '--verbose=1': see --help"},
        {{0, {"-p"}}, "no value for '-p': see --help"},
        {{0, {"-v", "--port"}}, "no value for '--port': see --help"},
        {{0, {"here"}}, "unexpected argument 'here': see --help"},
        {{0, {"-v", "--", "-x"}}, "unexpected argument '-x': see --help"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char expected[200];
        snprintf(expected, sizeof(expected), "server: %s\n", rows[i].message);
        struct ending ending = run_apart(parse_and_end, &rows[i].line);
        expect_number(rows[i].message, ending.status, 2);
        expect_text(rows[i].message, ending.err, expected);
        expect_text(rows[i].message, ending.out, "");
    }
}

/* ---- the listener -------------------------------------------------------------------------- */

static const struct options local = {.name = "server", .bind = "127.0.0.1", .backlog = 16};

static int connect_to(int listener)
{
    struct sockaddr_in address;
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(getsockname(listener, (struct sockaddr *)&address, &size) == 0 &&
                  connect(fd, (struct sockaddr *)&address, size) == 0,
              "%s", strerror(errno));
    return fd;
}

static int64_t tick_of(int fd, int option)
{
    struct timeval tick;
    socklen_t size = sizeof(tick);
    cr_assert(getsockopt(fd, SOL_SOCKET, option, &tick, &size) == 0);
    return (int64_t)tick.tv_sec * 1000 + tick.tv_usec / 1000;
}

static int tcp_option_of(int fd, int option)
{
    int value = -1;
    socklen_t size = sizeof(value);
    getsockopt(fd, IPPROTO_TCP, option, &value, &size);
    return value;
}

Test(net, a_blocking_listener_ticks_and_so_do_its_clients)
{
    int listener = net_listen(&local, true);
    cr_expect(!(fcntl(listener, F_GETFL) & O_NONBLOCK));
    cr_expect(fcntl(listener, F_GETFD) & FD_CLOEXEC);
    int64_t start = clock_now_ms();
    expect_number("accept", accept4(listener, NULL, NULL, SOCK_CLOEXEC), -1);
    expect_number("errno", errno, EAGAIN);
    int64_t ms = clock_now_ms() - start;
    cr_expect(ms >= TICK_MS - 10 && ms < 10 * TICK_MS, "%lld ms", (long long)ms);

    int client = connect_to(listener);
    int served = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    cr_assert(served >= 0);
    expect_number("reading", tick_of(served, SO_RCVTIMEO), TICK_MS);
    expect_number("writing", tick_of(served, SO_SNDTIMEO), TICK_MS);
    expect_number("no delay", tcp_option_of(served, TCP_NODELAY), 1);
    expect_number("unsent bytes", tcp_option_of(served, TCP_NOTSENT_LOWAT), 128 * 1024);
    close(client);
    close(served);
    close(listener);
}

Test(net, a_loops_listener_does_not_block)
{
    int listener = net_listen(&local, false);
    cr_expect(fcntl(listener, F_GETFL) & O_NONBLOCK);
    cr_expect(fcntl(listener, F_GETFD) & FD_CLOEXEC);
    expect_number("accept", accept4(listener, NULL, NULL, SOCK_CLOEXEC), -1);
    expect_number("errno", errno, EAGAIN);
    expect_number("no tick", tick_of(listener, SO_RCVTIMEO), 0);
    expect_number("no delay", tcp_option_of(listener, TCP_NODELAY), 1);
    close(listener);
}

/* How large the kernel has made our table of descriptors. */
static int table_size(void)
{
    char line[256];
    int size = 0;
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof(line), status))
        sscanf(line, "FDSize: %d", &size);
    fclose(status);
    return size;
}

Test(net, reserves_descriptors_and_keeps_none)
{
    struct rlimit limit;
    int next = dup(STDERR_FILENO);
    close(next);
    process_reserve_descriptors(200);
    cr_expect(table_size() >= 200, "room for %d", table_size());
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 1000; /* the table has 512 so far */
    setrlimit(RLIMIT_NOFILE, &limit);
    process_reserve_descriptors(5000);
    cr_expect(table_size() >= 1000 && table_size() < 5000, "room for %d", table_size());
    limit.rlim_cur = 2000;
    setrlimit(RLIMIT_NOFILE, &limit);
    process_reserve_descriptors(2000 - 64); /* with 64 others that is one more than there may be */
    cr_expect(table_size() >= 2000, "room for %d", table_size());
    expect_number("the next", dup(STDERR_FILENO), next);
}

Test(net, out_of_descriptors_accepting_pauses_for_a_tick)
{
    static const int weather[] = {EINTR, EAGAIN, ECONNABORTED, EPROTO, ENETDOWN, EPERM};
    static const int out[] = {EMFILE, ENFILE, ENOBUFS, ENOMEM};
    int64_t start = clock_now_ms();
    for (size_t i = 0; i < COUNT(weather); i++) {
        expect_number(strerror(weather[i]), net_out_of_resources(weather[i]), false);
        errno = weather[i];
        net_handle_accept_error();
    }
    cr_expect(clock_now_ms() - start < TICK_MS / 2, "no pause");
    for (size_t i = 0; i < COUNT(out); i++)
        expect_number(strerror(out[i]), net_out_of_resources(out[i]), true);
    start = clock_now_ms();
    errno = EMFILE;
    net_handle_accept_error();
    int64_t ms = clock_now_ms() - start;
    cr_expect(ms >= TICK_MS - 10 && ms < 10 * TICK_MS, "%lld ms", (long long)ms);
}

/* ---- signals ------------------------------------------------------------------------------- */

static void be_asked_later_again(const void *unused)
{
    (void)unused;
    stop_catch_signals(false);
    kill(getpid(), SIGTERM);
    int64_t first = clock_now_ms();
    poll(NULL, 0, STOP_MS / 10);
    kill(getpid(), SIGTERM);
    if (stop_time_is_over())
        _exit(1);
    while (clock_now_ms() - first < STOP_MS)
        poll(NULL, 0, TICK_MS);
    _exit(stop_time_is_over() ? 3 : 2);
}

Test(net, the_time_to_stop_counts_from_the_first_signal)
{
    expect_number("over", run_apart(be_asked_later_again, NULL).status, 3);
}

/* ---- the clock ----------------------------------------------------------------------------- */

Test(net, a_time_from_now_is_a_time)
{
    static const int times[] = {0, 1, 999, 1000, 1001, 3600000};
    for (size_t i = 0; i < COUNT(times); i++)
        for (int again = 0; again < 100; again++) {
            struct timespec now, then = clock_deadline(times[i]);
            clock_gettime(CLOCK_MONOTONIC, &now);
            int64_t ms =
                (int64_t)(then.tv_sec - now.tv_sec) * 1000 + (then.tv_nsec - now.tv_nsec) / 1000000;
            cr_assert(then.tv_nsec >= 0 && then.tv_nsec < 1000000000L);
            cr_assert(ms <= times[i] && ms > times[i] - 1000, "%lld ms", (long long)ms);
        }
}

Test(net, the_earlier_of_two_times)
{
    static const struct {
        int a, b, earlier;
    } rows[] = {{-1, -1, -1}, {-1, 0, 0}, {0, -1, 0}, {-1, 7, 7}, {7, -1, 7},
                {0, 7, 0},    {7, 0, 0},  {5, 7, 5},  {7, 5, 5},  {5, 5, 5}};
    for (size_t i = 0; i < COUNT(rows); i++)
        expect_number("earlier", clock_earlier_timeout(rows[i].a, rows[i].b), rows[i].earlier);
}

/* ---- lines that somebody reads -------------------------------------------------------------- */

Test(net, what_a_terminal_would_obey_is_written_out)
{
    static const struct {
        struct span text;
        const char *shown;
    } rows[] = {
        {{"", 0}, ""},
        {SPAN("GET /a[1]?q=%41&'~ HTTP/1.1"), "GET /a[1]?q=%41&'~ HTTP/1.1"},
        {SPAN("\x1b[2J\r\n\t"), "\\x1b[2J\\x0d\\x0a\\x09"},
        {SPAN("a\0b\x7f"), "a\\x00b\\x7f"},
        {SPAN("\"\\"), "\\x22\\x5c"},
        {SPAN("\xc3\xa9\x9b"), "\\xc3\\xa9\\x9b"},
    };
    char shown[100];
    for (size_t i = 0; i < COUNT(rows); i++) {
        text_escape(rows[i].text.at, rows[i].text.len, shown, sizeof(shown));
        expect_text(rows[i].shown, shown, rows[i].shown);
    }
    for (size_t size = 1; size < 20; size++) { /* a sanitizer looks on */
        char *small = malloc(size);
        text_escape("\r\n\r\n\r\n", 6, small, size);
        expect_number(small, strlen(small), (size - 1) / 4 * 4);
        free(small);
    }
}
