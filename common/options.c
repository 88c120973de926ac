#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) .place = offsetof(struct options, field)

/* A row is an option. What is read, what is refused, and what --help says come from it. Seconds are
 * kept as milliseconds, and milliseconds as microseconds, so that both may have a fraction. */
static const struct row {
    const char *name, *argument; /* NULL: it takes none */
    int letter;
    enum { WHOLE, SECONDS, MILLISECONDS, TEXT, CHOICE, FLAG, HELP, VERSION } kind;
    size_t place;       /* of an int, a const char * or a bool */
    const char *preset; /* the default, as it would be typed */
    double least, most;
    const char *other; /* of a CHOICE: what may be typed instead of the default */
    const char *lacks; /* main() sets the default; why this option is missing where it is 0 */
    const char *help;  /* with %s where the default belongs */
} rows[] = {
    {"port", "N", 'p', WHOLE, AT(port), .preset = "8000", .most = 65535,
     .help = "port to listen on; 0 takes a free one (%s)"},
    {"bind", "ADDR", 'b', TEXT, AT(bind), .preset = "127.0.0.1",
     .help = "IPv4 or IPv6 address to listen on (%s)"},
    {"redis", "WHERE", 'r', TEXT, AT(redis), .preset = "127.0.0.1:6379",
     .help = "host:port, or unix:PATH (%s); the environment\n"
             "                        variable REDISCLI_AUTH may hold its password"},
    {"workers", "N", 'w', WHOLE, AT(workers), .least = 1, .most = 30000,
     .lacks = "this server has one process and one thread",
     .help = "how many processes or threads may serve at once (%s)"},
    {"redis-connections", "N", 'c', WHOLE, AT(pool), .least = 1, .most = 30000,
     .lacks = "this server has no threads that share connections",
     .help = "how many connections to Redis the threads share (%s)"},
    {"root", "DIR", 'd', TEXT, AT(root), .preset = ".",
     .help = "where public/ and templates/ are (%s)"},
    {"keep-alive", "SEC", 'k', SECONDS, AT(keep_alive_ms), .preset = "5", .most = 3600,
     .help = "how long an idle connection is kept; 0: not at all (%s)"},
    {"timeout", "SEC", 't', SECONDS, AT(timeout_ms), .preset = "10", .least = 0.1, .most = 3600,
     .help = "for a whole request, and for a response that makes no\n"
             "                        progress; a new connection that says nothing gets half\n"
             "                        of it, a Redis command a fifth, connecting to Redis a\n"
             "                        tenth; fractions are allowed (%s)"},
    {"backlog", "N", 'l', WHOLE, AT(backlog), .preset = "4096", .least = 1, .most = 65535,
     .help = "how many connections may wait to be accepted (%s)"},
    {"work", "MS", 'W', MILLISECONDS, AT(work_us), .preset = "0", .most = 1000,
     .help = "CPU time that every guestbook page uses up, to see what work\n"
             "                        does to each architecture; fractions are allowed (%s)"},
    {"status", "WHO", 's', CHOICE, AT(status_for_all), .preset = "local", .other = "all",
     .help = "who may see its status: local, the clients on this machine, or\n"
             "                        all, everybody who can reach the port (%s)"},
    {"verbose", NULL, 'v', FLAG, AT(verbose),
     .help = "one line for each request, in Common Log Format; lines are\n"
             "                        dropped while standard output is a full pipe"},
    {"help", NULL, 'h', HELP, .help = "this text"},
    {"version", NULL, 'V', VERSION, .help = "the version"},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]), HELP_COLUMN = 24 };

_Noreturn void options_bad_value(const char *name, const char *what, const char *value,
                                 const char *right)
{
    fprintf(stderr, "%s: %s '%s': %s\n", name, what, value, right);
    exit(2);
}

static _Noreturn void refuse_value(const struct options *o, const struct row *row, const char *text,
                                   const char *right)
{
    char what[32];
    snprintf(what, sizeof(what), "--%s", row->name);
    options_bad_value(o->name, what, text, right);
}

static void *value_of(const struct options *o, const struct row *row)
{
    return (char *)(uintptr_t)o + row->place;
}

static _Noreturn void print_help(const struct options *defaults)
{
    printf("Usage: %s [option]...\n"
           "Serves public/ and a guestbook over HTTP/1.1.\n"
           "\n",
           defaults->name);
    for (const struct row *row = rows; row < rows + ROWS; row++) {
        char number[16] = "", left[64];
        if (row->lacks && *(int *)value_of(defaults, row) == 0)
            continue;
        if (row->lacks)
            snprintf(number, sizeof(number), "%d", *(int *)value_of(defaults, row));
        int width = snprintf(left, sizeof(left), "  -%c, --%s %s", row->letter, row->name,
                             row->argument ? row->argument : "");
        if (width + 2 > HELP_COLUMN) { /* then the text begins below it */
            puts(left);
            left[0] = '\0';
        }
        printf("%-*s", HELP_COLUMN, left);
        printf(row->help, row->preset ? row->preset : number);
        printf("\n");
    }
    exit(0);
}

static int number_of(const struct options *o, const struct row *row, const char *text)
{
    static const char *const units[] = {"a whole number", "seconds", "milliseconds"};
    char *end, right[64];
    errno = 0;
    double value = row->kind == WHOLE ? (double)strtol(text, &end, 10) : strtod(text, &end);
    bool is_decimal = text[strspn(text, "-.0123456789")] == '\0'; /* strtod(3) takes 0x10, too */
    if (errno != 0 || end == text || *end != '\0' || !is_decimal ||
        !(value >= row->least && value <= row->most)) {
        snprintf(right, sizeof(right), "%s from %g to %g", units[row->kind], row->least, row->most);
        refuse_value(o, row, text, right);
    }
    return (int)(row->kind == WHOLE ? value : value * 1000 + 0.5);
}

/* Is it the other of the two words? */
static bool is_other(const struct options *o, const struct row *row, const char *text)
{
    char right[64];
    bool other = strcmp(text, row->other) == 0;
    if (!other && strcmp(text, row->preset) != 0) {
        snprintf(right, sizeof(right), "%s or %s", row->preset, row->other);
        refuse_value(o, row, text, right);
    }
    return other;
}

static void take_option(struct options *o, const struct row *row, const char *text,
                        const struct options *defaults)
{
    if (row->lacks && *(int *)value_of(o, row) == 0)
        refuse_value(o, row, text, row->lacks);
    switch (row->kind) {
    case WHOLE:
    case SECONDS:
    case MILLISECONDS:
        *(int *)value_of(o, row) = number_of(o, row, text);
        break;
    case TEXT:
        *(const char **)value_of(o, row) = text;
        break;
    case CHOICE:
        *(bool *)value_of(o, row) = is_other(o, row, text);
        break;
    case FLAG:
        *(bool *)value_of(o, row) = true;
        break;
    case HELP:
        print_help(defaults);
    case VERSION:
        printf("%s (ZeroHTTPd) %s\n", o->name, ZEROHTTPD_VERSION);
        exit(0);
    }
}

void options_parse(struct options *o, int argc, char **argv)
{
    struct option words[ROWS + 1] = {{0}};
    char letters[2 * ROWS + 1] = "";
    for (size_t i = 0, n = 0; i < ROWS; i++) {
        bool has_value = rows[i].argument;
        words[i] = (struct option){rows[i].name, has_value, NULL, rows[i].letter};
        n += (size_t)snprintf(letters + n, sizeof(letters) - n, "%c%s", rows[i].letter,
                              has_value ? ":" : "");
        if (rows[i].preset)
            take_option(o, &rows[i], rows[i].preset, o);
    }
    const struct options defaults = *o;
    int letter;
    argv[0] = (char *)(uintptr_t)o->name; /* for the messages of getopt_long(3) */
    while ((letter = getopt_long(argc, argv, letters, words, NULL)) != -1) {
        const struct row *row = rows;
        if (letter == '?')
            exit(2);
        while (row->letter != letter)
            row++;
        take_option(o, row, optarg, &defaults);
    }
    if (optind < argc)
        options_bad_value(o->name, "unexpected argument", argv[optind], "see --help");
}
