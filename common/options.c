#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "Usage: %s [option]...\n"
    "Serves public/ and a guestbook over HTTP/1.1.\n"
    "\n"
    "  -p, --port N          port to listen on; 0 takes a free one (8000)\n"
    "  -b, --bind ADDR       IPv4 or IPv6 address to listen on (127.0.0.1)\n"
    "  -r, --redis WHERE     host:port, redis://user:password@host:port, or unix:PATH\n"
    "                        (127.0.0.1:6379); the environment variable\n"
    "                        REDISCLI_AUTH may hold the password instead\n"
    "%s"
    "  -d, --root DIR        where public/ and templates/ are (.)\n"
    "  -u, --user NAME       become this user once the port is open; the server must be\n"
    "                        started as root\n"
    "  -k, --keep-alive SEC  how long an idle connection is kept; 0: not at all (5)\n"
    "  -t, --timeout SEC     for a whole request, and for a response that makes no\n"
    "                        progress; a new connection that says nothing gets half\n"
    "                        of it, a Redis command a fifth, connecting to Redis a\n"
    "                        tenth; fractions are allowed (10)\n"
    "  -l, --backlog N       how many connections may wait to be accepted (4096)\n"
    "  -W, --work MS         CPU time that every guestbook page uses up, to see what work\n"
    "                        does to each architecture; fractions are allowed (0)\n"
    "  -s, --status WHO      who may see /status and the wall: local, the clients on this\n"
    "                        machine, or all, everybody who can reach the port (local)\n"
    "  -v, --verbose         one line for each request, in Common Log Format; lines are\n"
    "                        dropped while standard output is a full pipe\n"
    "  -h, --help            this text\n"
    "  -V, --version         the version\n";

static const char help_workers[] =
    "  -w, --workers N       how many processes or threads may serve at once (%d)\n";

static const char help_pool[] =
    "  -c, --redis-connections N\n"
    "                        how many connections to Redis the threads share (%d)\n";

static const struct option long_options[] = {
    {"port", required_argument, NULL, 'p'},
    {"bind", required_argument, NULL, 'b'},
    {"redis", required_argument, NULL, 'r'},
    {"workers", required_argument, NULL, 'w'},
    {"redis-connections", required_argument, NULL, 'c'},
    {"root", required_argument, NULL, 'd'},
    {"user", required_argument, NULL, 'u'},
    {"keep-alive", required_argument, NULL, 'k'},
    {"timeout", required_argument, NULL, 't'},
    {"backlog", required_argument, NULL, 'l'},
    {"work", required_argument, NULL, 'W'},
    {"status", required_argument, NULL, 's'},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

_Noreturn void options_bad_value(const char *name, const char *what, const char *value,
                                 const char *right)
{
    fprintf(stderr, "%s: %s '%s': %s\n", name, what, value, right);
    exit(2);
}

/* The options whose value is a number. One with a unit may have a fraction, and is kept in
 * thousandths: seconds become milliseconds, and milliseconds microseconds. */
static const struct number {
    const char *name, *unit;
    double least, most;
    size_t place; /* in struct options */
    int letter;
} numbers[] = {
    {"--port", NULL, 0, 65535, offsetof(struct options, port), 'p'},
    {"--workers", NULL, 1, 30000, offsetof(struct options, workers), 'w'},
    {"--redis-connections", NULL, 1, 30000, offsetof(struct options, pool), 'c'},
    {"--backlog", NULL, 1, 65535, offsetof(struct options, backlog), 'l'},
    {"--keep-alive", "seconds", 0, 3600, offsetof(struct options, keep_alive_ms), 'k'},
    {"--timeout", "seconds", 0.1, 3600, offsetof(struct options, timeout_ms), 't'},
    {"--work", "milliseconds", 0, 1000, offsetof(struct options, work_us), 'W'},
};

static void take_number(struct options *o, const struct number *n, const char *text)
{
    char *end, right[64];
    errno = 0;
    double value = n->unit ? strtod(text, &end) : (double)strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || !(value >= n->least && value <= n->most)) {
        snprintf(right, sizeof(right), "%s from %g to %g", n->unit ? n->unit : "a whole number",
                 n->least, n->most);
        options_bad_value(o->name, n->name, text, right);
    }
    *(int *)((char *)o + n->place) = (int)(n->unit ? value * 1000 + 0.5 : value);
}

static _Noreturn void print_help(const struct options *defaults)
{
    char lines[256] = "";
    if (defaults->workers > 0)
        snprintf(lines, sizeof(lines), help_workers, defaults->workers);
    size_t length = strlen(lines);
    if (defaults->pool > 0)
        snprintf(lines + length, sizeof(lines) - length, help_pool, defaults->pool);
    printf(help, defaults->name, lines);
    exit(0);
}

static void take_option(struct options *o, int letter, const char *value,
                        const struct options *defaults)
{
    if (letter == 'c' && defaults->pool == 0)
        options_bad_value(o->name, "--redis-connections", value,
                          "this server has no threads that share connections");
    if (letter == 'w' && defaults->workers == 0)
        options_bad_value(o->name, "--workers", value,
                          "this server has one process and one thread");
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (numbers[i].letter == letter)
            take_number(o, &numbers[i], value);
    switch (letter) {
    case 'b':
        o->bind = value;
        break;
    case 'r':
        o->redis = value;
        break;
    case 'd':
        o->root = value;
        break;
    case 'u':
        o->user = value;
        break;
    case 's':
        o->status_for_all = strcmp(value, "all") == 0;
        if (!o->status_for_all && strcmp(value, "local") != 0)
            options_bad_value(o->name, "--status", value, "local or all");
        break;
    case 'v':
        o->verbose = true;
        break;
    case 'h':
        print_help(defaults);
    case 'V':
        printf("%s (ZeroHTTPd) %s\n", o->name, ZEROHTTPD_VERSION);
        exit(0);
    }
}

static const char short_options[] = ":p:b:r:w:c:d:u:k:t:l:W:s:vhV";

/* What getopt_long(3) did not know: a letter, perhaps among others (`-vx`). Or the whole word, if
 * there is no letter (`--bogus`), or one that is known (`--verbose=3`). */
static const char *unknown_option(const char *word)
{
    static char letter[] = "-?";
    letter[1] = (char)optopt;
    return strchr(short_options, optopt) ? word : letter;
}

void options_parse(struct options *o, int argc, char **argv, const char *name, int workers)
{
    options_parse_with_pool(o, argc, argv, name, workers, 0);
}

void options_parse_with_pool(struct options *o, int argc, char **argv, const char *name,
                             int workers, int pool)
{
    *o = (struct options){
        .name = name,
        .port = 8000,
        .bind = "127.0.0.1",
        .redis = "127.0.0.1:6379",
        .workers = workers,
        .pool = pool,
        .root = ".",
        .keep_alive_ms = 5000,
        .timeout_ms = 10000,
        .backlog = 4096,
    };
    const struct options defaults = *o;
    int option;
    opterr = 0; /* the messages are ours */
    while ((option = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
        if (option == '?')
            options_bad_value(name, "unknown option", unknown_option(argv[optind - 1]),
                              "see --help");
        if (option == ':')
            options_bad_value(name, "no value for", argv[optind - 1], "see --help");
        take_option(o, option, optarg, &defaults);
    }
    if (optind < argc)
        options_bad_value(name, "unexpected argument", argv[optind], "see --help");
}

int options_fresh_ms(const struct options *o)
{
    return o->timeout_ms / 2;
}

int options_redis_ms(const struct options *o)
{
    return o->timeout_ms / 5;
}

int options_connect_ms(const struct options *o)
{
    return o->timeout_ms / 10;
}

int options_linger_ms(const struct options *o)
{
    return o->timeout_ms / 10;
}
