/* kernel: what the loop calls instead of the kernel. See states.h. */
#include "states.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { DESCRIPTORS = KERNEL_PEER - KERNEL_LISTENER + PEERS };

static struct descriptor {
    bool open, blocks, watched; /* by epoll, or in this round by poll() */
    struct epoll_event event;
} descriptors[DESCRIPTORS];

/* NULL: one of the real kernel, as those of files are. */
static struct descriptor *find(int fd)
{
    if (fd < KERNEL_LISTENER || fd >= KERNEL_LISTENER + DESCRIPTORS)
        return NULL;
    must(descriptors[fd - KERNEL_LISTENER].open, "a closed descriptor is used");
    return &descriptors[fd - KERNEL_LISTENER];
}

static struct peer *peer_of(int fd)
{
    return find(fd) && fd >= KERNEL_PEER ? &world_peers[fd - KERNEL_PEER] : NULL;
}

static int open_descriptor(int fd, bool blocks)
{
    descriptors[fd - KERNEL_LISTENER] = (struct descriptor){.open = true, .blocks = blocks};
    return fd;
}

void kernel_begin(void)
{
    memset(descriptors, 0, sizeof(descriptors));
    for (int fd = KERNEL_LISTENER; fd < KERNEL_PEER; fd++)
        open_descriptor(fd, false);
}

void kernel_mix(void)
{
    for (const struct descriptor *d = descriptors; d < descriptors + DESCRIPTORS; d++)
        mix(d->open), mix(d->watched), mix(d->event.events);
}

int kernel_connections(void)
{
    int count = 0;
    for (int i = KERNEL_PEER - KERNEL_LISTENER; i < DESCRIPTORS; i++)
        count += descriptors[i].open;
    return count;
}

short kernel_watches(int fd)
{
    return find(fd)->watched ? (short)find(fd)->event.events : 0;
}

/* ---- waiting ------------------------------------------------------------------------------- */

static int next_to_accept(void)
{
    for (int i = 0; i < CLIENTS_THERE; i++)
        if (world_peers[i].here && !world_peers[i].dropped &&
            !descriptors[KERNEL_PEER - KERNEL_LISTENER + i].open)
            return KERNEL_PEER + i;
    return -1;
}

static short ready(int fd)
{
    if (fd == KERNEL_LISTENER)
        return next_to_accept() >= 0 ? POLLIN : 0;
    if (fd == KERNEL_SIGNALS)
        return world_signal ? POLLIN : 0;
    const struct peer *p = peer_of(fd);
    if (fd == KERNEL_PEER + REDIS_THERE && !p->here)
        return p->refused ? POLLIN | POLLOUT | POLLERR | POLLHUP : 0;
    short in = p->len > 0 || p->ended || p->reset ? POLLIN : 0;
    short out = !p->full || p->reset ? POLLOUT : 0;
    short over = p->reset || (p->ended && p->shut) ? POLLHUP : 0;
    return (short)(in | out | over | (p->reset ? POLLERR : 0));
}

/* What the kernel reports of a descriptor. */
static uint32_t events_of(int fd)
{
    const struct descriptor *d = find(fd);
    return d->watched ? (d->event.events | EPOLLERR | EPOLLHUP) & (uint16_t)ready(fd) : 0;
}

static bool is_ready(void)
{
    for (int i = 0; i < DESCRIPTORS; i++)
        if (descriptors[i].open && events_of(KERNEL_LISTENER + i))
            return true;
    return false;
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    int found = 0;
    if (count == 1) {                      /* a look at Redis, for which no loop sleeps */
        struct pollfd *volatile one = fds; /* gcc takes poll(2) for a function that only writes */
        one->revents = (short)(one->events & (int)ready(one->fd));
        return one->revents != 0;
    }
    for (int i = 0; i < DESCRIPTORS; i++)
        descriptors[i].watched = false;
    for (nfds_t i = 0; i < count; i++)
        if (fds[i].fd >= 0) {
            find(fds[i].fd)->watched = true;
            find(fds[i].fd)->event.events = (uint16_t)fds[i].events;
        }
    world_goes_on(timeout, is_ready);
    for (nfds_t i = 0; i < count; i++) {
        fds[i].revents = fds[i].fd >= 0 ? (short)events_of(fds[i].fd) : 0;
        found += fds[i].revents != 0;
    }
    return found;
}

/* Reports the events in one of two orders. */
int epoll_wait(int epoll, struct epoll_event *found, int most, int timeout)
{
    int count = 0;
    (void)epoll, (void)most;
    world_goes_on(timeout, is_ready);
    for (int i = 0; i < DESCRIPTORS; i++)
        if (descriptors[i].open && events_of(KERNEL_LISTENER + i))
            found[count++] =
                (struct epoll_event){events_of(KERNEL_LISTENER + i), descriptors[i].event.data};
    if (count > 1 && search_choose(2, 2, false)) { /* the last one first */
        struct epoll_event last = found[count - 1];
        memmove(found + 1, found, (size_t)(count - 1) * sizeof(*found));
        found[0] = last;
    }
    return count;
}

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    struct descriptor *d = find(fd);
    (void)epoll;
    must(d->watched == (operation != EPOLL_CTL_ADD), "epoll_ctl(): EEXIST or ENOENT");
    d->watched = operation != EPOLL_CTL_DEL;
    d->event = d->watched ? *event : (struct epoll_event){0};
    return 0;
}

int clock_gettime(clockid_t id, struct timespec *time)
{
    if (id != CLOCK_MONOTONIC_COARSE)
        return (int)syscall(SYS_clock_gettime, id, time);
    *time = (struct timespec){world_now / 1000, world_now % 1000 * 1000000};
    return 0;
}

/* ---- connections --------------------------------------------------------------------------- */

static int fail(int why)
{
    errno = why;
    return -1;
}

int accept4(int fd, struct sockaddr *restrict address, socklen_t *restrict size, int flags)
{
    int peer = next_to_accept();
    (void)fd, (void)address, (void)size;
    if (peer < 0)
        return fail(EAGAIN);
    return open_descriptor(peer, !(flags & SOCK_NONBLOCK));
}

int socket(int domain, int type, int protocol)
{
    (void)domain, (void)protocol;
    must(!descriptors[DESCRIPTORS - 1].open, "there are two connections to Redis");
    return open_descriptor(KERNEL_PEER + REDIS_THERE, !(type & SOCK_NONBLOCK));
}

int connect(int fd, const struct sockaddr *address, socklen_t size)
{
    (void)address, (void)size;
    world_calls_redis();
    return fail(peer_of(fd)->refused ? ECONNREFUSED : EINPROGRESS);
}

int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict size)
{
    (void)level, (void)name, (void)size;
    *(int *)value = peer_of(fd)->refused ? ECONNREFUSED : 0;
    return 0;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    (void)level, (void)value, (void)size;
    peer_of(fd)->forgotten = name == SO_LINGER;
    return 0;
}

/* SIOCOUTQ: a client acknowledges at once what it takes. */
int ioctl(int fd, unsigned long request, ...)
{
    va_list rest;
    va_start(rest, request);
    *va_arg(rest, int *) = peer_of(fd)->full ? 2 : 0;
    va_end(rest);
    return 0;
}

int shutdown(int fd, int how)
{
    (void)how;
    peer_of(fd)->shut = true;
    return 0;
}

int close(int fd)
{
    struct descriptor *d = find(fd);
    if (!d)
        return (int)syscall(SYS_close, fd);
    if (fd >= KERNEL_PEER)
        world_is_dropped(fd - KERNEL_PEER);
    *d = (struct descriptor){0};
    return 0;
}

/* ---- bytes --------------------------------------------------------------------------------- */

ssize_t recv(int fd, void *bytes, size_t size, int flags)
{
    struct peer *p = peer_of(fd);
    size_t len = size < p->len ? size : p->len;
    if (len == 0 && (p->reset || p->ended))
        return p->reset ? fail(ECONNRESET) : 0;
    must(len > 0 || !find(fd)->blocks || flags & MSG_DONTWAIT, "the loop blocks in recv()");
    if (len == 0)
        return fail(EAGAIN);
    memcpy(bytes, p->unread, len);
    if (flags & MSG_PEEK)
        return (ssize_t)len;
    p->len -= len;
    memmove(p->unread, p->unread + len, p->len);
    return (ssize_t)len;
}

ssize_t read(int fd, void *bytes, size_t size)
{
    if (!find(fd))
        return syscall(SYS_read, fd, bytes, size);
    if (fd != KERNEL_SIGNALS)
        return recv(fd, bytes, size, 0);
    if (!world_signal)
        return fail(EAGAIN);
    world_signal = false;
    return sizeof(struct signalfd_siginfo);
}

/* What a program with _FORTIFY_SOURCE calls instead: with clang often, with gcc rarely. */
ssize_t __recv_chk(int, void *, size_t, size_t, int);
ssize_t __recv_chk(int fd, void *bytes, size_t size, size_t room, int flags)
{
    must(size <= room, "the loop receives more than there is room for");
    return recv(fd, bytes, size, flags);
}

ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __read_chk(int fd, void *bytes, size_t size, size_t room)
{
    must(size <= room, "the loop reads more than there is room for");
    return read(fd, bytes, size);
}

int __poll_chk(struct pollfd *, nfds_t, int, size_t);
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room)
{
    must(count <= room / sizeof(*fds), "the loop polls more than there is room for");
    return poll(fds, count, timeout);
}

/* The socket takes all of the bytes, none, or half of them. */
static ssize_t take(int fd, size_t len)
{
    static const char *const told[] = {"All is sent.", "Nothing is sent: the socket is full.",
                                       "Half is sent: then the socket is full."};
    struct peer *p = peer_of(fd);
    if (p->reset || (fd == KERNEL_PEER + REDIS_THERE && p->ended))
        return fail(EPIPE);
    int how = p->full ? 1 : search_choose(1, len > 1 ? 3 : 2, false);
    must(how == 0 || !find(fd)->blocks, "the loop blocks in send()");
    search_tell(told[how], "");
    p->full = how != 0;
    return how == 0 ? (ssize_t)len : how == 1 ? fail(EAGAIN) : (ssize_t)(len + 1) / 2;
}

static ssize_t send_part(int fd, const void *bytes, size_t len)
{
    ssize_t n = take(fd, len);
    if (n > 0)
        world_hears(fd - KERNEL_PEER, bytes, (size_t)n);
    return n;
}

/* Clients are sent 100 Continue by this, and their responses by sendmsg() and sendfile(). */
ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    (void)flags;
    ssize_t n = send_part(fd, bytes, len);
    if (n != (ssize_t)len)
        world_gives_up(fd - KERNEL_PEER);
    return n;
}

ssize_t write(int fd, const void *bytes, size_t len)
{
    return find(fd) ? send_part(fd, bytes, len) : syscall(SYS_write, fd, bytes, len);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    const struct iovec *head = message->msg_iov, *content = head + 1;
    (void)flags;
    ssize_t n = take(fd, head->iov_len + content->iov_len);
    size_t sent = n > 0 ? (size_t)n : 0, of_head = sent < head->iov_len ? sent : head->iov_len;
    if (of_head > 0)
        world_hears(fd - KERNEL_PEER, head->iov_base, of_head);
    if (sent > of_head)
        world_hears(fd - KERNEL_PEER, content->iov_base, sent - of_head);
    return n;
}

ssize_t sendfile(int fd, int file, off_t *at, size_t len)
{
    (void)file;
    ssize_t n = send_part(fd, NULL, len);
    *at += n > 0 ? n : 0;
    return n;
}
