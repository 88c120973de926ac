/* Options: what is read. What is refused, and how that is said, is in servers/options.c. */
#include "options.h"
#include "unit.h"

#include <getopt.h>

TestSuite(options, .timeout = 60);

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

Test(options, options_are_read_and_each_has_a_default)
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
