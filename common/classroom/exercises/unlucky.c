/* A library to be preloaded (ld.so(8)) into a program with threads: what POSIX allows, and chance
 * brings about once in a million times, happens each time. checks.py compiles it.
 *
 *  - A new thread begins late, when its creator has long gone on.
 *  - pthread_cond_wait(3) returns although nobody has signalled.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { LATE_US = 100 * 1000, EARLY_US = 10 * 1000 };

/* What a new thread is to do, when it does begin. */
struct beginning {
    void *(*run)(void *);
    void *argument;
};

static void *begin_late(void *argument)
{
    struct beginning beginning = *(struct beginning *)argument;
    free(argument);
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
    (void)condition;
    pthread_mutex_unlock(lock);
    usleep(EARLY_US);
    return pthread_mutex_lock(lock);
}
