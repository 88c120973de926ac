/* process: what every server is besides its chapter: a start, a clock, signals that ask it to
 * stop, limits, and a last line.
 *
 * A function that can fail only at start-up returns no error: it prints one line and ends the
 * program.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include "options.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* ---- start and end ------------------------------------------------------------------------- */

/* Raises the soft limit of descriptors to the hard one, sets the budget of all buffers (text.h) to
 * an eighth of the memory, unblocks SIGTERM and SIGINT, ignores the two signals with which a write
 * ends a program, SIGPIPE and SIGXFSZ, and opens /dev/null as the descriptors 0 to 2 if they are
 * not open. */
void process_start(void);

/* Makes room in the table of descriptors for `count` clients and Redis connections. Returns false
 * if the limit does not allow so many, and makes room for as many as it allows. To be called before
 * the first thread is created, because threads share the table. If it grows later, the kernel waits
 * until no core can be looking at the old one (RCU): some 10 ms, or a second if all cores are busy.
 * Meanwhile threads that accept, open or connect wait, too. */
bool process_reserve_descriptors(int count);

/* Prints the run's statistics on standard output: what was served, and what it cost. Children are
 * included, but the memory is that of the largest process. */
void process_report(const struct options *, uint64_t requests, uint64_t connections);

/* Prints "name: what" on standard error, and ends the program with status 1. */
_Noreturn void process_die(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- the clock ----------------------------------------------------------------------------- */

/* The longest time that a blocking accept(2), recv(2) or send(2) sleeps. So a worker wakes up often
 * enough to notice a deadline, a signal to stop, or a client that waits. */
enum { TICK_MS = 200 };

/* Milliseconds of the monotonic clock, which is never set back. It is exact to one tick of the
 * kernel (about 4 ms), and costs no system call. */
int64_t clock_now_ms(void);

/* What CLOCK_MONOTONIC will say in `ms` milliseconds, as pthread_cond_clockwait() takes it. */
struct timespec clock_deadline(int ms);

/* Computes until the calling thread has used `us` microseconds of CPU time, however long that takes
 * on the wall clock. This is the work of --work. */
void clock_burn_cpu(int us);

/* ---- stopping ------------------------------------------------------------------------------ */

/* How long a server that is asked to stop may take to finish what is in flight. */
enum { STOP_MS = 5000 };

/* SIGTERM and SIGINT set a flag. With `once` the second signal ends the program. That is for the
 * process that a person started, not for its children. Blocking calls are interrupted, never
 * restarted. */
void stop_catch_signals(bool once);

/* From now on either of the two ends the program. A parent that forks until it is to stop calls
 * this, and does not use `once`. With `once` the handler might restore the default action just
 * before a fork(2), and the child would inherit it. */
void stop_release_signals(void);

bool stop_requested(void);

/* Have STOP_MS passed since the signal? Then chapters 1 to 5 do not ask Redis any more. */
bool stop_time_is_over(void);

/* How long workers may take to end, in ms: STOP_MS, the reply to a command that Redis was asked
 * just before, and ticks to notice. So a client hears of an entry that Redis has stored, unless the
 * connection to Redis had to be made first and all of it was slow. */
int stop_grace_ms(const struct options *);

/* For an event loop, which reads signals from a descriptor: blocks SIGTERM and SIGINT, and returns
 * a signalfd(2). When it is readable, stop_read_signalfd() takes the signal, and lets the next one
 * end the program. */
int stop_open_signalfd(const struct options *);
void stop_read_signalfd(int signals);

#endif
