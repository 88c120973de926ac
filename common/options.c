#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help_begins[] =
    "Usage: %s [option]...\n"
    "Serves public/ and a guestbook over HTTP/1.1.\n"
    "\n"
    "  -p, --port N          port to listen on; 0 takes a free one (8000)\n"
    "  -b, --bind ADDR       IPv4 or IPv6 address to listen on (127.0.0.1)\n"
    "  -r, --redis WHERE     host:port, or unix:PATH (127.0.0.1:6379); the environment\n"
    "                        variable REDISCLI_AUTH may hold its password\n";

static const char help_ends[] =
    "  -d, --root DIR        where public/ and templates/ are (.)\n"
    "  -k, --keep-alive SEC  how long an idle connection is kept; 0: not at all (5)\n"
    "  -t, --timeout SEC     for a whole request, and for a response that makes no\n"
    "                        progress; a new connection that says nothing gets half\n"
    "                        of it, a Redis command a fifth, connecting to Redis a\n"
    "                        tenth; fractions are allowed (10)\n"
    "  -l, --backlog N       how many connections may wait to be accepted (4096)\n"
    "  -W, --work MS         CPU time that every guestbook page uses up, to see what work\n"
    "                        does to each architecture; fractions are allowed (0)\n"
    "  -s, --status WHO      who may see its status: local, the clients on this machine, or\n"
    "                        all, everybody who can reach the port (local)\n"
    "  -v, --verbose         one line for each request, in Common Log Format; lines are\n"
    "                        dropped while standard output is a full pipe\n"
    "  -h, --help            this text\n"
    "  -V, --version         the version\n";

static const char help_workers[] =
    "  -w, --workers N       how many processes or threads may serve at once (%d)\n";

static const char help_pool[] =
    "  -c, --redis-connections N\n"
    "                        how many connections to Redis the threads share (%d)\n";

/* A number with a unit may have a fraction, and is kept in thousandths: seconds become
 * milliseconds, and milliseconds microseconds. */
static const struct spec {
    int letter;
    enum { NUMBER, TEXT, CHOICE, FLAG } kind;
    const char *name, *unit;
    double least, most;
    size_t place; /* of NUMBER and TEXT, in struct options */
} specs[] = {
    {'p', NUMBER, "port", NULL, 0, 65535, offsetof(struct options, port)},
    {'b', TEXT, "bind", .place = offsetof(struct options, bind)},
    {'r', TEXT, "redis", .place = offsetof(struct options, redis)},
    {'w', NUMBER, "workers", NULL, 1, 30000, offsetof(struct options, workers)},
    {'c', NUMBER, "redis-connections", NULL, 1, 30000, offsetof(struct options, pool)},
    {'d', TEXT, "root", .place = offsetof(struct options, root)},
    {'k', NUMBER, "keep-alive", "seconds", 0, 3600, offsetof(struct options, keep_alive_ms)},
    {'t', NUMBER, "timeout", "seconds", 0.1, 3600, offsetof(struct options, timeout_ms)},
    {'l', NUMBER, "backlog", NULL, 1, 65535, offsetof(struct options, backlog)},
    {'W', NUMBER, "work", "milliseconds", 0, 1000, offsetof(struct options, work_us)},
    {'s', CHOICE, "status", .place = 0},
    {'v', FLAG, "verbose", .place = 0},
    {'h', FLAG, "help", .place = 0},
    {'V', FLAG, "version", .place = 0},
};
enum { SPECS = sizeof(specs) / sizeof(specs[0]) };

_Noreturn void options_bad_value(const char *name, const char *what, const char *value,
                                 const char *right)
{
    fprintf(stderr, "%s: %s '%s': %s\n", name, what, value, right);
    exit(2);
}

static int number_of(const struct options *o, const struct spec *spec, const char *text)
{
    char *end, what[32], right[64];
    errno = 0;
    double value = spec->unit ? strtod(text, &end) : (double)strtol(text, &end, 10);
    bool is_decimal = text[strspn(text, "-.0123456789")] == '\0'; /* strtod(3) takes 0x10, too */
    if (errno != 0 || end == text || *end != '\0' || !is_decimal ||
        !(value >= spec->least && value <= spec->most)) {
        snprintf(what, sizeof(what), "--%s", spec->name);
        snprintf(right, sizeof(right), "%s from %g to %g",
                 spec->unit ? spec->unit : "a whole number", spec->least, spec->most);
        options_bad_value(o->name, what, text, right);
    }
    return (int)(spec->unit ? value * 1000 + 0.5 : value);
}

static _Noreturn void print_help(const struct options *defaults)
{
    printf(help_begins, defaults->name);
    if (defaults->workers > 0)
        printf(help_workers, defaults->workers);
    if (defaults->pool > 0)
        printf(help_pool, defaults->pool);
    printf("%s", help_ends);
    exit(0);
}

static void take_option(struct options *o, const struct spec *spec, const char *value,
                        const struct options *defaults)
{
    void *place = (char *)o + spec->place;
    if (spec->letter == 'c' && defaults->pool == 0)
        options_bad_value(o->name, "--redis-connections", value,
                          "this server has no threads that share connections");
    if (spec->letter == 'w' && defaults->workers == 0)
        options_bad_value(o->name, "--workers", value,
                          "this server has one process and one thread");
    if (spec->kind == NUMBER)
        *(int *)place = number_of(o, spec, value);
    if (spec->kind == TEXT)
        *(const char **)place = value;
    if (spec->kind == CHOICE) {
        o->status_for_all = strcmp(value, "all") == 0;
        if (!o->status_for_all && strcmp(value, "local") != 0)
            options_bad_value(o->name, "--status", value, "local or all");
    }
    if (spec->letter == 'v')
        o->verbose = true;
    if (spec->letter == 'h')
        print_help(defaults);
    if (spec->letter == 'V') {
        printf("%s (ZeroHTTPd) %s\n", o->name, ZEROHTTPD_VERSION);
        exit(0);
    }
}

void options_parse(struct options *o, int argc, char **argv, const char *name, int workers)
{
    options_parse_with_pool(o, argc, argv, name, workers, 0);
}

void options_parse_with_pool(struct options *o, int argc, char **argv, const char *name,
                             int workers, int pool)
{
    struct option words[SPECS + 1] = {{0}};
    char letters[2 * SPECS + 1] = "";
    for (size_t i = 0, n = 0; i < SPECS; i++) {
        bool has_value = specs[i].kind != FLAG;
        words[i] = (struct option){specs[i].name, has_value, NULL, specs[i].letter};
        n += (size_t)snprintf(letters + n, sizeof(letters) - n, "%c%s", specs[i].letter,
                              has_value ? ":" : "");
    }
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
    int letter;
    argv[0] = (char *)name; /* for the messages of getopt_long(3) */
    while ((letter = getopt_long(argc, argv, letters, words, NULL)) != -1) {
        const struct spec *spec = specs;
        if (letter == '?')
            exit(2);
        while (spec->letter != letter)
            spec++;
        take_option(o, spec, optarg, &defaults);
    }
    if (optind < argc)
        options_bad_value(name, "unexpected argument", argv[optind], "see --help");
}
