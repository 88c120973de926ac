/* options: the command line. A new option is a field here, and a row in options.c. Two are for the
 * servers that have workers, or a pool. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>

#define ZEROHTTPD_VERSION "2.1.0"

/* The defaults of --workers in 03 and 05, and of --redis-connections in 04. It is one number, so
 * that a table compares the models and not their constants. */
enum { OPTIONS_TEAM = 100 };

struct options {
    const char *name;    /* of this server: "epoll" */
    int port;            /* 0: a free one */
    const char *bind;    /* IPv4 or IPv6 address */
    const char *redis;   /* host:port, or unix:path */
    int workers;         /* processes or threads; 0: this server has no such option */
    int pool;            /* connections to Redis that threads share; 0: no such option */
    const char *root;    /* where public/ and templates/ are */
    int keep_alive_ms;   /* 0: close after every response */
    int timeout_ms;      /* for a whole request, and for a response without progress */
    int work_us;         /* CPU time that each guestbook page uses up, for experiments */
    int backlog;         /* finished handshakes that may wait for accept(2). listen(2) limits it */
    bool status_for_all; /* the status is for every client, and not for this machine's only */
    bool verbose;        /* a line for each request on standard output, if that has room */
};

/* Times that are a part of --timeout (10 s), so that one option makes a whole test quick. */
enum {
    FRESH_PART = 2,    /* a half: for the first byte of a new connection */
    REDIS_PART = 5,    /* a fifth: one Redis command */
    CONNECT_PART = 10, /* a tenth: connecting to Redis */
    LINGER_PART = 10,  /* a tenth: listening to a client that was refused, and goes on */
};

/* Reads the command line. main() has set the name of the server, and the defaults of --workers and
 * --redis-connections where it has these options:
 *
 *     struct options options = {.name = "forking", .workers = 2048};
 *
 * A bad option prints one line and ends the program with status 2. --help and --version end it with
 * status 0. */
void options_parse(struct options *, int argc, char **argv);

/* Prints "name: what 'value': what would be right" on standard error, and ends the program with
 * status 2. */
_Noreturn void options_bad_value(const char *name, const char *what, const char *value,
                                 const char *right);

#endif
