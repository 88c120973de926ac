/* A library to be preloaded (ld.so(8)) into a server: what the kernel and POSIX allow, and what
 * hardly ever happens on an idle machine, happens here. RARE in the environment names it:
 *
 *     send    takes ten bytes at a time, as from a socket that is nearly full
 *     recv    says "not yet" every other time, although poll() has said that there is something
 *     accept  finds that every second client to come has left again since poll() told of it
 *     prctl   is so late that the parent may have ended before
 *     thread  a new thread begins late, when its creator has long gone on: the first hundreds do
 *     lock    a thread loses its core for half a second before it takes a lock
 *     wake    or when pthread_cond_wait(3) has woken it, before it has the lock again
 *     hold    or for a moment when it has taken a lock, so that all others take what they can get
 *     early   pthread_cond_wait(3) returns although nobody has signalled, but not twice in a row:
 *             a thread that waits in a loop is at rest all the same
 *
 * send and recv only of sockets that do not block, and not if the server is edge-triggered: by
 * epoll(7) it may conclude from either that it has to wait for another edge.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FEW_BYTES = 10, LATE_THREADS = 320 };
enum { PRCTL_MS = 2000, LOOK_MS = 5, THREAD_MS = 100, CORE_MS = 500, HOLD_MS = 10, EARLY_MS = 10 };

#define REAL(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

static bool happens(const char *name)
{
    const char *rare = getenv("RARE");
    return rare && strstr(rare, name);
}

static void sleep_ms(int ms)
{
    usleep((useconds_t)ms * 1000);
}

/* ---- sockets ----------------------------------------------------------------------------- */

static bool by_edges;

static bool waits_for_levels(int fd)
{
    return !by_edges && fcntl(fd, F_GETFL) & O_NONBLOCK;
}

static size_t few(int fd, size_t length)
{
    return happens("send") && length > FEW_BYTES && waits_for_levels(fd) ? FEW_BYTES : length;
}

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    by_edges = by_edges || (event && event->events & EPOLLET);
    return REAL(epoll_ctl)(epoll, operation, fd, event);
}

ssize_t send(int fd, const void *bytes, size_t length, int flags)
{
    return REAL(send)(fd, bytes, few(fd, length), flags);
}

ssize_t write(int fd, const void *bytes, size_t length)
{
    return REAL(write)(fd, bytes, few(fd, length));
}

static bool is_not_yet(int fd)
{
    static _Thread_local bool was_early;
    was_early = happens("recv") && waits_for_levels(fd) && !was_early;
    if (was_early)
        errno = EAGAIN;
    return was_early;
}

ssize_t recv(int fd, void *bytes, size_t length, int flags)
{
    return is_not_yet(fd) ? -1 : REAL(recv)(fd, bytes, length, flags);
}

ssize_t read(int fd, void *bytes, size_t length)
{
    return is_not_yet(fd) ? -1 : REAL(read)(fd, bytes, length);
}

static void let_every_second_leave(int fd)
{
    static int clients;
    if (happens("accept") && ++clients % 2 == 0)
        close(REAL(accept4)(fd, NULL, NULL, SOCK_NONBLOCK));
}

int accept(int fd, struct sockaddr *address, socklen_t *length)
{
    let_every_second_leave(fd);
    return REAL(accept)(fd, address, length);
}

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    let_every_second_leave(fd);
    return REAL(accept4)(fd, address, length, flags);
}

/* ---- processes and threads --------------------------------------------------------------- */

int prctl(int option, ...)
{
    unsigned long words[4];
    va_list list;
    va_start(list, option);
    for (int i = 0; i < 4; i++)
        words[i] = va_arg(list, unsigned long);
    va_end(list);
    pid_t parent = getppid();
    bool is_late = happens("prctl") && option == PR_SET_PDEATHSIG;
    for (int ms = 0; is_late && ms < PRCTL_MS && getppid() == parent; ms += LOOK_MS)
        sleep_ms(LOOK_MS);
    return REAL(prctl)(option, words[0], words[1], words[2], words[3]);
}

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
    if (happens("thread") && atomic_fetch_add(&threads, 1) < LATE_THREADS)
        sleep_ms(THREAD_MS);
    return beginning.run(beginning.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    struct beginning *beginning = malloc(sizeof(*beginning));
    if (!beginning)
        return EAGAIN;
    *beginning = (struct beginning){run, argument};
    int error = REAL(pthread_create)(thread, attributes, begin_late, beginning);
    if (error)
        free(beginning);
    return error;
}

#define TAKE(call, lock_t)                                                                         \
    int call(lock_t *lock)                                                                         \
    {                                                                                              \
        if (happens("lock"))                                                                       \
            sleep_ms(CORE_MS);                                                                     \
        int error = REAL(call)(lock);                                                              \
        if (!error && happens("hold"))                                                             \
            sleep_ms(HOLD_MS);                                                                     \
        return error;                                                                              \
    }

TAKE(pthread_mutex_lock, pthread_mutex_t)
TAKE(pthread_rwlock_wrlock, pthread_rwlock_t)
TAKE(pthread_spin_lock, pthread_spinlock_t)

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
    static _Thread_local bool was_early;
    const struct timespec never = {.tv_sec = INT32_MAX}; /* 2038 */
    was_early = happens("early") && !was_early;
    if (!was_early) { /* linked by this name: dlsym(3) may find an old version of a call */
        int error = pthread_cond_timedwait(condition, lock, &never);
        if (error || !happens("wake"))
            return error;
    }
    pthread_mutex_unlock(lock);
    sleep_ms(was_early ? EARLY_MS : CORE_MS);
    return REAL(pthread_mutex_lock)(lock);
}
