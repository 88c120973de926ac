/* clock: what time it is, and how long to sleep. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>
#include <time.h>

/* No accept(2), recv(2) or send(2) that blocks sleeps longer than a tick, so that whoever blocks
 * looks up often enough to see a deadline, a signal to stop, or somebody who waits. */
enum { TICK_MS = 200 };

/* Milliseconds of the monotonic clock, which no administrator sets back. Coarse: right to one tick
 * of the kernel (4 ms or so), and free of a system call. */
int64_t clock_now_ms(void);

/* The same clock, so many ms from now, as pthread_cond_timedwait(3) and its like take it. */
struct timespec clock_deadline(int ms);

/* Computes until the calling thread has used so many microseconds of CPU time, however long that
 * takes on the wall: the work of --work. 0 returns at once. */
void clock_burn_cpu(int us);

/* The earlier of two times to wait, in ms as poll(2) takes them: -1 is for ever. */
int clock_earlier_timeout(int, int);

#endif
