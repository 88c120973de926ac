/* process: a server's limits, its user, its statistics, and its end after an error at start. */
#ifndef PROCESS_H
#define PROCESS_H

#include "options.h"

#include <stdint.h>

/* Prints "name: what" on standard error, and ends the program with status 1. */
_Noreturn void process_die(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Raises the descriptor limit to what the machine allows, sets the budget of memory.h, and begins
 * the count for the statistics at the end. SIGTERM and SIGINT are unblocked, and SIGXFSZ is
 * ignored. start_server() calls it, once. */
void process_start(void);

/* Becomes the user of --user for good, with that user's groups. Ends the program if that fails.
 * Without --user, prints a line on standard error if the server is root's and `is_public`, that is,
 * other machines can reach it. net_listen() calls it, once: the port may need root, and what is
 * opened later must not. */
void process_leave_root(const struct options *, bool is_public);

/* Makes room in the table of descriptors for `count` clients and Redis connections, or for as many
 * as the limit allows. To be called before the first thread is created, because threads share the
 * table. If it grows later, the kernel waits until no core can be looking at the old one (RCU):
 * some 10 ms, or a second if all cores are busy. Meanwhile threads that accept, open or connect
 * wait, too. */
void process_reserve_descriptors(int count);

/* Prints the run's statistics on standard output: what was served, and what it cost. Children are
 * included. */
void process_report(const struct options *, uint64_t requests, uint64_t connections);

#endif
