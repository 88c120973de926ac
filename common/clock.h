/* clock: what time it is, and how long to sleep. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>
#include <time.h>

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

/* The earlier of two timeouts in ms, as poll(2) takes them: -1 is for ever. */
int clock_earlier_timeout(int, int);

#endif
