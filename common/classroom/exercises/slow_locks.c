/* A library to be preloaded (ld.so(8)) into a program with threads: a thread that has taken a mutex
 * sleeps before it goes on. So all others take meanwhile what they can get, and threads that may
 * wait for each other in a circle do. checks.py compiles it. */
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

enum { SLEEP_US = 10 * 1000 };

int pthread_mutex_lock(pthread_mutex_t *lock)
{
    int (*take)(pthread_mutex_t *);
    *(void **)&take = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    int error = take(lock);
    if (!error)
        usleep(SLEEP_US);
    return error;
}
