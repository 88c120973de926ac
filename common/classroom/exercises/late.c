/* A library to be preloaded (ld.so(8)) into a program with threads. A thread may lose its core at
 * any moment, and here it does for half a second. LATE in the environment says where:
 *
 *     lock    before it takes a lock
 *     wake    when pthread_cond_wait(3) has woken it, and it does not have the lock again yet
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LATE_US = 500 * 1000 };

static void lose_the_core(const char *where)
{
    const char *late = getenv("LATE");
    if (late && strcmp(late, where) == 0)
        usleep(LATE_US);
}

static int take(pthread_mutex_t *lock)
{
    int (*real)(pthread_mutex_t *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    return real(lock);
}

int pthread_mutex_lock(pthread_mutex_t *lock)
{
    lose_the_core("lock");
    return take(lock);
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
    const struct timespec never = {.tv_sec = INT32_MAX}; /* 2038 */
    /* linked by this name: dlsym(3) may find an old version of a call */
    int error = pthread_cond_timedwait(condition, lock, &never);
    pthread_mutex_unlock(lock);
    lose_the_core("wake");
    return error ? error : take(lock);
}
