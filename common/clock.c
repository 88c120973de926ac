#include "clock.h"

struct timespec clock_deadline(int ms)
{
    struct timespec when;
    clock_gettime(CLOCK_MONOTONIC, &when);
    when.tv_sec += ms / 1000;
    when.tv_nsec += ms % 1000 * 1000000L;
    when.tv_sec += when.tv_nsec / 1000000000L;
    when.tv_nsec %= 1000000000L;
    return when;
}

int64_t clock_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t thread_cpu_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

void clock_burn_cpu(int us)
{
    enum { STEPS = 2000 };  /* a few microseconds, because to read this clock is a system call */
    volatile unsigned step; /* volatile: or the compiler removes the loop, which does nothing */
    int64_t end = us > 0 ? thread_cpu_ns() + us * INT64_C(1000) : 0;
    while (us > 0 && thread_cpu_ns() < end)
        for (step = 0; step < STEPS;)
            step = step + 1;
}

int clock_earlier_timeout(int a, int b)
{
    if (a < 0 || b < 0)
        return a < 0 ? b : a;
    return a < b ? a : b;
}
