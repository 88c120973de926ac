/* A library to be preloaded (ld.so(8)) into a program with threads: what POSIX allows, and chance
 * brings about once in a million times, happens each time. checks.py compiles it.
 *
 *  - A new thread begins late, when its creator has long gone on: the first hundreds do.
 *  - pthread_cond_wait(3) returns although nobody has signalled. When the thread waits again, it
 *    sleeps until somebody does. So a thread that waits in a loop is at rest all the same.
 *
 * It is there in all parts of a check, because a program could find out that it is.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { LATE_THREADS = 320, LATE_US = 100 * 1000, EARLY_US = 10 * 1000 };

/* What a new thread is to do, when it does begin. */
struct beginning {
    void *(*run)(void *);
    void *argument;
};

static void *begin_late(void *argument)
{
    static atomic_int threads;
    struct beginning beginning = *(struct beginning *)argument;
    free(argument);
    if (atomic_fetch_add(&threads, 1) < LATE_THREADS)
        usleep(LATE_US);
    return beginning.run(beginning.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    struct beginning *beginning = malloc(sizeof(*beginning));
    if (!beginning)
        return EAGAIN;
    *beginning = (struct beginning){run, argument};
    int error = create(thread, attributes, begin_late, beginning);
    if (error)
        free(beginning);
    return error;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
    static _Thread_local bool was_early;
    const struct timespec never = {.tv_sec = INT32_MAX}; /* 2038 */
    was_early = !was_early;
    if (!was_early) /* linked by this name: dlsym(3) may find an old version of a call */
        return pthread_cond_timedwait(condition, lock, &never);
    pthread_mutex_unlock(lock);
    usleep(EARLY_US);
    return pthread_mutex_lock(lock);
}
