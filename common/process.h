/* process: what a server is allowed, what it has used, and how it ends at start. */
#ifndef PROCESS_H
#define PROCESS_H

#include "options.h"

#include <stdint.h>

/* One line, "name: what", on standard error; status 1. */
_Noreturn void process_die(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Raises the descriptor limit to what the machine allows, sets the budget of memory.h, and begins
 * to count what the statistics at the end say. Once, at start; app_start() calls it. */
void process_start(void);

/* Makes room in the table of descriptors for so many clients and Redis connections, or for as many
 * as the limit allows. To be called before the first thread: threads share the table, so that to
 * enlarge it later the kernel waits until no core can be looking at the old one (RCU: some 10 ms, a
 * second where all cores are busy), and with it every thread that accepts, opens or connects. */
void process_reserve_descriptors(int count);

/* The run's statistics, on standard output: what was served, what it cost, children included. */
void process_report(const struct options *, uint64_t requests, uint64_t connections);

#endif
