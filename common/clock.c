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

int clock_earlier_timeout(int a, int b)
{
    if (a < 0 || b < 0)
        return a < 0 ? b : a;
    return a < b ? a : b;
}
