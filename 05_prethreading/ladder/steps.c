/* steps: the servers of chapters 3 to 5, as others have built them. This library is preloaded
 * (ld.so(8)), so the server's calls to the C library come here first, and each step changes what
 * one of them does. The server itself stays as it was built. `climb` compiles this and measures.
 *
 *     LADDER=STEP[,STEP]... LD_PRELOAD=build/ladder/steps.so ./prethreading
 *
 *     nagle      TCP_NODELAY is not set, so Nagle's algorithm is on, as it is by default
 *     pieces     a response leaves in pieces, and its head and its content have a send each
 *     copy       a file is read into a buffer and sent from there, and not by sendfile(2)
 *     counter    every response is counted under one mutex that all threads of a process share
 *     mutex      only one thread of a process at a time may be in accept(2)
 *     queue      one thread accepts for all, and hands clients over in a queue of its own
 *     herd       all workers sleep in poll(2) on the listening socket, and all wake for one client
 *
 *  - These servers are for measuring only. With `queue`, a server that is asked to stop forgets the
 *    clients in that queue. It does not see that clients wait, and so it never makes an idle client
 *    give up its place.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 200, BACKLOG = 4096, PIECE_BYTES = 64 * 1024 };

/* Is this step one of those in LADDER? */
static bool takes(const char *step)
{
    const char *steps = getenv("LADDER");
    size_t len = strlen(step);
    for (const char *at = steps; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, step, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    }
    return false;
}

static bool nagle, pieces, copy, counter, mutex, queue, herd;

__attribute__((constructor)) static void look_up(void)
{
    nagle = takes("nagle");
    pieces = takes("pieces");
    copy = takes("copy");
    counter = takes("counter");
    mutex = takes("mutex");
    queue = takes("queue");
    herd = takes("herd");
}

/* ---- a response leaves --------------------------------------------------------------------- */

int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    if (nagle && level == IPPROTO_TCP && name == TCP_NODELAY)
        return 0;
    return (int)syscall(SYS_setsockopt, fd, level, name, value, size);
}

static void count_response(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static unsigned long responses;
    pthread_mutex_lock(&lock);
    responses++;
    pthread_mutex_unlock(&lock);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    ssize_t sent = 0;
    if (counter)
        count_response();
    if (!pieces)
        return syscall(SYS_sendmsg, fd, message, flags);
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        const struct iovec *part = &message->msg_iov[i];
        ssize_t n = part->iov_len ? send(fd, part->iov_base, part->iov_len, flags & ~MSG_MORE) : 0;
        if (n < 0)
            return sent ? sent : -1;
        sent += n;
        if ((size_t)n < part->iov_len)
            break;
    }
    return sent;
}

ssize_t sendfile(int to, int from, off_t *at, size_t count)
{
    static __thread char piece[PIECE_BYTES];
    if (!copy)
        return syscall(SYS_sendfile, to, from, at, count);
    ssize_t n = pread(from, piece, count < sizeof(piece) ? count : sizeof(piece), *at);
    if (n > 0)
        n = send(to, piece, (size_t)n, MSG_NOSIGNAL);
    if (n > 0)
        *at += n;
    return n;
}

/* ---- accepting ----------------------------------------------------------------------------- */

static int plain_accept(int listener)
{
    return (int)syscall(SYS_accept4, listener, NULL, NULL, SOCK_CLOEXEC);
}

static int accept_in_turn(int listener)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    int client = plain_accept(listener);
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return client;
}

static int accept_in_a_herd(int listener)
{
    struct pollfd fd = {.fd = listener, .events = POLLIN};
    static __thread bool is_set;
    if (!is_set)
        fcntl(listener, F_SETFL, fcntl(listener, F_GETFL) | O_NONBLOCK);
    is_set = true;
    poll(&fd, 1, TICK_MS);
    return plain_accept(listener); /* EAGAIN: another worker was faster */
}

/* ---- a queue between the thread that accepts and the threads that serve -------------------- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied;
    int clients[BACKLOG];
    unsigned in, out; /* how many clients came, and how many left: in - out are waiting */
} waiting = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .filled = PTHREAD_COND_INITIALIZER,
    .emptied = PTHREAD_COND_INITIALIZER,
};

static void *accept_for_all(void *argument)
{
    const int *listener = argument;
    for (;;) {
        int client = plain_accept(*listener);
        if (client < 0 && errno == EINVAL)
            return NULL; /* it has been shut down */
        if (client < 0)
            continue;
        pthread_mutex_lock(&waiting.lock);
        while (waiting.in - waiting.out == BACKLOG)
            pthread_cond_wait(&waiting.emptied, &waiting.lock);
        waiting.clients[waiting.in++ % BACKLOG] = client;
        pthread_mutex_unlock(&waiting.lock);
        pthread_cond_signal(&waiting.filled);
    }
}

static int queued_listener;

static void start_acceptor(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, accept_for_all, &queued_listener) == 0)
        pthread_detach(thread);
}

static struct timespec a_tick_from_now(void)
{
    struct timespec when;
    clock_gettime(CLOCK_MONOTONIC, &when);
    long ns = when.tv_nsec + TICK_MS * 1000000L;
    return (struct timespec){when.tv_sec + ns / 1000000000L, ns % 1000000000L};
}

static int take_from_queue(int listener)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct timespec deadline = a_tick_from_now();
    int error = 0, client = -1;
    pthread_mutex_lock(&waiting.lock);
    queued_listener = listener;
    pthread_once(&once, start_acceptor);
    while (waiting.in == waiting.out && error == 0)
        error = pthread_cond_clockwait(&waiting.filled, &waiting.lock, CLOCK_MONOTONIC, &deadline);
    if (waiting.in != waiting.out)
        client = waiting.clients[waiting.out++ % BACKLOG];
    pthread_mutex_unlock(&waiting.lock);
    pthread_cond_signal(&waiting.emptied);
    errno = EAGAIN;
    return client;
}

int accept4(int listener, struct sockaddr *address, socklen_t *size, int flags)
{
    (void)address, (void)size, (void)flags;
    if (mutex)
        return accept_in_turn(listener);
    if (queue)
        return take_from_queue(listener);
    if (herd)
        return accept_in_a_herd(listener);
    return plain_accept(listener);
}
