/* A library to be preloaded (ld.so(8)) into a program with threads: a thread that has taken a lock
 * sleeps before it goes on. So all others take meanwhile what they can get, and threads that may
 * wait for each other in a circle do. checks.py compiles it. */
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

enum { SLEEP_US = 10 * 1000 };

#define SLOW(call, lock_t)                                                                         \
    int call(lock_t *lock)                                                                         \
    {                                                                                              \
        int (*take)(lock_t *);                                                                     \
        *(void **)&take = dlsym(RTLD_NEXT, #call);                                                 \
        int error = take(lock);                                                                    \
        if (!error)                                                                                \
            usleep(SLEEP_US);                                                                      \
        return error;                                                                              \
    }

SLOW(pthread_mutex_lock, pthread_mutex_t)
SLOW(pthread_rwlock_wrlock, pthread_rwlock_t)
SLOW(pthread_spin_lock, pthread_spinlock_t)
