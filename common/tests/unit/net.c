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
