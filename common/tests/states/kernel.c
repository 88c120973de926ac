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

enum { DESCRIPTORS = 8, FIRST = KERNEL_LISTENER };

static struct descriptor {
    enum kind { FREE, IS_LISTENER, IS_SIGNALS, IS_EPOLL, IS_PEER } kind;
    int peer;
    bool blocks;
    bool is_watched; /* by epoll, */
    struct epoll_event event;
} descriptors[DESCRIPTORS];
static struct pollfd *polled; /* or by poll() */
static nfds_t polled_count;
static bool accepted[CLIENTS_THERE];
static int64_t scarce_at; /* there was no descriptor at this time */

/* NULL: one of the real kernel, as those of files are. */
static struct descriptor *find(int fd)
{
    if (fd < FIRST || fd >= FIRST + DESCRIPTORS)
        return NULL;
    must(descriptors[fd - FIRST].kind != FREE, "a closed descriptor is used");
    return &descriptors[fd - FIRST];
}

/* Takes the lowest one that is free. */
static int open_descriptor(enum kind kind, int peer, bool blocks)
{
    int i = 0;
    while (descriptors[i].kind != FREE)
        i++;
    descriptors[i] = (struct descriptor){.kind = kind, .peer = peer, .blocks = blocks};
    return FIRST + i;
}

void kernel_begin(void)
{
    memset(descriptors, 0, sizeof(descriptors));
    memset(accepted, 0, sizeof(accepted));
    polled_count = 0;
    scarce_at = 0;
    open_descriptor(IS_LISTENER, 0, false);
    open_descriptor(IS_SIGNALS, 0, false);
    open_descriptor(IS_EPOLL, 0, false);
}

void kernel_mix(void)
{
    for (const struct descriptor *d = descriptors; d < descriptors + DESCRIPTORS; d++) {
        mix(d->kind), mix(d->peer), mix(d->is_watched), mix(d->event.events);
        mix(d->event.events & EPOLLET && world_peers[d->peer].news);
    }
    mix(accepted[0]), mix(accepted[1]), mix(scarce_at == world_now);
}

int kernel_connections(void)
{
    int count = 0;
    for (int i = 0; i < DESCRIPTORS; i++)
        count += descriptors[i].kind == IS_PEER;
    return count;
}

short kernel_watches(int fd)
{
    const struct descriptor *d = find(fd);
    for (nfds_t i = 0; i < polled_count; i++)
        if (polled[i].fd == fd)
            return polled[i].events;
    return d->is_watched ? (short)d->event.events : 0;
}

/* ---- waiting ------------------------------------------------------------------------------- */

static short ready_peer(const struct peer *p, bool is_redis)
{
    short in = p->len > 0 || p->ended || p->reset ? POLLIN : 0;
    short out = !p->full || p->reset ? POLLOUT : 0;
    short over = p->reset || (p->ended && p->shut) ? POLLHUP : 0;
    if (is_redis && !p->here)
        return p->refused ? POLLIN | POLLOUT | POLLERR | POLLHUP : 0;
    return (short)(in | out | over | (p->reset ? POLLERR : 0));
}

static int next_to_accept(void)
{
    for (int i = 0; i < CLIENTS_THERE; i++)
        if (world_peers[i].here && !accepted[i])
            return i;
    return -1;
}

static short ready(const struct descriptor *d)
{
    switch (d->kind) {
    case IS_LISTENER:
        return next_to_accept() >= 0 ? POLLIN : 0;
    case IS_SIGNALS:
        return world_signal ? POLLIN : 0;
    case IS_PEER:
        return ready_peer(&world_peers[d->peer], d->peer == REDIS_THERE);
    default:
        return 0;
    }
}

/* What poll(2) reports. */
static int look(struct pollfd *fds, nfds_t count)
{
    int found = 0;
    for (nfds_t i = 0; i < count; i++) {
        short events = (short)(fds[i].events | POLLERR | POLLHUP);
        fds[i].revents = fds[i].fd < 0 ? 0 : ready(find(fds[i].fd)) & events;
        found += fds[i].revents != 0;
    }
    return found;
}

/* Edge-triggered, only what is new is reported. */
static uint32_t events_of(const struct descriptor *d)
{
    bool known = d->kind == IS_PEER && d->event.events & EPOLLET && !world_peers[d->peer].news;
    uint32_t wanted = d->event.events | EPOLLERR | EPOLLHUP;
    return d->is_watched && !known ? wanted & (uint16_t)ready(d) : 0;
}

/* What epoll_wait(2) reports, beginning with descriptor number `first`. */
static int look_around(struct epoll_event *found, int first)
{
    int count = 0;
    for (int i = 0; i < DESCRIPTORS; i++) {
        const struct descriptor *d = &descriptors[(first + i) % DESCRIPTORS];
        if (events_of(d))
            found[count++] = (struct epoll_event){events_of(d), d->event.data};
    }
    return count;
}

static bool is_ready(void)
{
    struct epoll_event found[DESCRIPTORS];
    return look(polled, polled_count) + look_around(found, 0) > 0;
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    polled = fds;
    polled_count = count;
    if (count > 1) /* the loop's own */
        world_goes_on(timeout, is_ready);
    polled_count = 0;
    return look(fds, count);
}

/* Reports the events in one of two orders. */
int epoll_wait(int epoll, struct epoll_event *found, int most, int timeout)
{
    (void)epoll, (void)most;
    world_goes_on(timeout, is_ready);
    int count = look_around(found, 0);
    if (count > 1 && search_choose(2, 2))
        look_around(found, DESCRIPTORS / 2);
    for (int i = 0; i < PEERS; i++)
        world_peers[i].news = false;
    return count;
}

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    struct descriptor *d = find(fd);
    (void)epoll;
    must(d->is_watched == (operation != EPOLL_CTL_ADD), "epoll_ctl(): EEXIST or ENOENT");
    d->is_watched = operation != EPOLL_CTL_DEL;
    if (d->kind == IS_PEER)
        world_peers[d->peer].news = true;
    d->event = d->is_watched ? *event : (struct epoll_event){0};
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
    if (scarce_at == world_now || search_choose(1, 2)) {
        search_tell("But there is no descriptor for the client.", "");
        scarce_at = world_now;
        return fail(EMFILE);
    }
    accepted[peer] = true;
    return open_descriptor(IS_PEER, peer, !(flags & SOCK_NONBLOCK));
}

int socket(int domain, int type, int protocol)
{
    (void)domain, (void)protocol;
    return open_descriptor(IS_PEER, REDIS_THERE, !(type & SOCK_NONBLOCK));
}

int connect(int fd, const struct sockaddr *address, socklen_t size)
{
    (void)fd, (void)address, (void)size;
    world_calls_redis();
    return fail(world_peers[REDIS_THERE].refused ? ECONNREFUSED : EINPROGRESS);
}

int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict size)
{
    (void)level, (void)name, (void)size;
    *(int *)value = world_peers[find(fd)->peer].refused ? ECONNREFUSED : 0;
    return 0;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    (void)level, (void)value, (void)size;
    world_peers[find(fd)->peer].forgotten = name == SO_LINGER;
    return 0;
}

/* SIOCOUTQ: a client acknowledges at once. */
int ioctl(int fd, unsigned long request, ...)
{
    va_list rest;
    (void)fd;
    va_start(rest, request);
    *va_arg(rest, int *) = 0;
    va_end(rest);
    return 0;
}

int shutdown(int fd, int how)
{
    (void)how;
    world_peers[find(fd)->peer].shut = true;
    return 0;
}

int close(int fd)
{
    struct descriptor *d = find(fd);
    if (!d)
        return (int)syscall(SYS_close, fd);
    if (d->kind == IS_PEER)
        world_is_dropped(d->peer);
    *d = (struct descriptor){0};
    return 0;
}

/* ---- bytes --------------------------------------------------------------------------------- */

ssize_t recv(int fd, void *bytes, size_t size, int flags)
{
    const struct descriptor *d = find(fd);
    struct peer *p = &world_peers[d->peer];
    size_t len = size < p->len ? size : p->len;
    if (len == 0 && (p->reset || p->ended))
        return p->reset ? fail(ECONNRESET) : 0;
    must(len > 0 || !d->blocks || flags & MSG_DONTWAIT, "the loop blocks in recv()");
    if (len == 0)
        return fail(EAGAIN);
    memcpy(bytes, p->unread, len);
    if (flags & MSG_PEEK)
        return (ssize_t)len;
    p->len -= len;
    memmove(p->unread, p->unread + len, p->len);
    return (ssize_t)len;
}

/* What a program with _FORTIFY_SOURCE calls instead. */
ssize_t __recv_chk(int, void *, size_t, size_t, int);
ssize_t __recv_chk(int fd, void *bytes, size_t size, size_t room, int flags)
{
    must(size <= room, "the loop receives more than there is room for");
    return recv(fd, bytes, size, flags);
}

ssize_t read(int fd, void *bytes, size_t size)
{
    const struct descriptor *d = find(fd);
    if (!d)
        return syscall(SYS_read, fd, bytes, size);
    if (d->kind != IS_SIGNALS)
        return recv(fd, bytes, size, 0);
    if (!world_signal)
        return fail(EAGAIN);
    world_signal = false;
    return sizeof(struct signalfd_siginfo);
}

/* The socket takes all of the bytes, none, or half of them. */
static ssize_t take(int fd, size_t len)
{
    static const char *const told[] = {"All is sent.", "Nothing is sent: the socket is full.",
                                       "Half is sent: then the socket is full."};
    const struct descriptor *d = find(fd);
    struct peer *p = &world_peers[d->peer];
    if (p->reset || (d->peer == REDIS_THERE && p->ended))
        return fail(EPIPE);
    int how = p->full ? 1 : search_choose(1, len > 1 ? 3 : 2);
    must(how == 0 || !d->blocks, "the loop blocks in send()");
    search_tell(told[how], "");
    p->full = how != 0;
    return how == 0 ? (ssize_t)len : how == 1 ? fail(EAGAIN) : (ssize_t)(len + 1) / 2;
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    (void)flags;
    ssize_t n = take(fd, len);
    if (n > 0)
        world_hears(find(fd)->peer, bytes, (size_t)n);
    return n;
}

ssize_t write(int fd, const void *bytes, size_t len)
{
    return find(fd) ? send(fd, bytes, len, 0) : syscall(SYS_write, fd, bytes, len);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    const struct iovec *head = message->msg_iov, *content = head + 1;
    (void)flags;
    ssize_t n = take(fd, head->iov_len + content->iov_len);
    size_t sent = n > 0 ? (size_t)n : 0, of_head = sent < head->iov_len ? sent : head->iov_len;
    if (of_head > 0)
        world_hears(find(fd)->peer, head->iov_base, of_head);
    if (sent > of_head)
        world_hears(find(fd)->peer, content->iov_base, sent - of_head);
    return n;
}

ssize_t sendfile(int fd, int file, off_t *at, size_t len)
{
    (void)file;
    ssize_t n = take(fd, len);
    if (n > 0)
        world_hears(find(fd)->peer, NULL, (size_t)n);
    *at += n > 0 ? n : 0;
    return n;
}
