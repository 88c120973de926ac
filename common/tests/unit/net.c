/* Options, the listener, and lines that somebody reads. */
#include "net.h"
#include "options.h"
#include "process.h"
#include "text.h"
#include "unit.h"

#include <getopt.h>
#include <netinet/tcp.h>

TestSuite(net, .timeout = 60);

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
    *o = (struct options){.name = "server", .workers = line->workers, .pool = line->workers / 2};
    options_parse(o, argc, argv);
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
        {{0, {"-p", "-1"}}, "--port '-1': a whole number from 0 to 65535"},
        {{0, {"-p", "80x"}}, "--port '80x': a whole number from 0 to 65535"},
        {{0, {"-p", ""}}, "--port '': a whole number from 0 to 65535"},
        {{0, {"-p", "99999999999999999999"}},
         "--port '99999999999999999999': a whole number from 0 to 65535"},
        {{5, {"--workers=30001"}}, "--workers '30001': a whole number from 1 to 30000"},
        {{0, {"-k", "-1"}}, "--keep-alive '-1': seconds from 0 to 3600"},
        {{0, {"-k", "3601"}}, "--keep-alive '3601': seconds from 0 to 3600"},
        {{0, {"-k", "nan"}}, "--keep-alive 'nan': seconds from 0 to 3600"},
        {{0, {"-k", "inf"}}, "--keep-alive 'inf': seconds from 0 to 3600"},
        {{0, {"-k", ""}}, "--keep-alive '': seconds from 0 to 3600"},
        {{0, {"-t", "0x10"}}, "--timeout '0x10': seconds from 0.1 to 3600"},
        {{0, {"-t", "0.09"}}, "--timeout '0.09': seconds from 0.1 to 3600"},
        {{0, {"-l", "0"}}, "--backlog '0': a whole number from 1 to 65535"},
        {{0, {"--work", "1000.1"}}, "--work '1000.1': milliseconds from 0 to 1000"},
        {{0, {"--work=2ms"}}, "--work '2ms': milliseconds from 0 to 1000"},
        {{0, {"--nonsense"}}, "unrecognized option '--nonsense'"},
        {{0, {"-p"}}, "option requires an argument -- 'p'"},
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

static int tcp_option_of(int fd, int option)
{
    int value = -1;
    socklen_t size = sizeof(value);
    getsockopt(fd, IPPROTO_TCP, option, &value, &size);
    return value;
}

/* The time limits show from outside, in many cases of servers/. */
Test(net, what_is_accepted_sends_at_once_and_holds_little)
{
    int listener = net_listen(&local, true);
    int client = connect_to(listener), sent = 0;
    int served = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    int taken = 0;
    cr_assert(served >= 0);
    expect_number("no delay", tcp_option_of(served, TCP_NODELAY), 1);
    getsockopt(served, SOL_SOCKET, SO_SNDBUF, &sent, &(socklen_t){sizeof(sent)});
    getsockopt(served, SOL_SOCKET, SO_RCVBUF, &taken, &(socklen_t){sizeof(taken)});
    expect_number("the kernel doubles it", sent, 2 * 40 * 1024);
    expect_number("and this", taken, 2 * 64 * 1024);
    close(client);
    close(served);
    close(listener);
}

/* ---- lines that somebody reads -------------------------------------------------------------- */

/* What they say is tried from outside; here a sanitizer looks on. */
Test(net, what_is_written_out_stays_in_its_room)
{
    for (size_t size = 1; size < 20; size++) {
        char *small = malloc(size);
        text_escape("\r\n\r\n\r\n", 6, small, size);
        expect_number(small, strlen(small), (size - 1) / 4 * 4);
        free(small);
    }
}
