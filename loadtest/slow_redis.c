/* slow_redis: a Redis further away. It relays every connection to Redis, and passes the replies on
 * some milliseconds late.
 *
 *   slow_redis MS LISTEN REDIS
 *
 * LISTEN is ADDRESS:PORT, where port 0 means a free one. REDIS is unix:PATH or ADDRESS:PORT. When
 * it is ready, it prints where it listens. A signal ends it.
 *
 * - Replies are late, commands are not. A round trip takes MS more in any case. But this way Redis
 *   has executed every command, even if the client does not wait for the reply.
 * - A chunk is the bytes of one recv(). Each is MS late, however many are under way, on one
 *   connection or on a thousand: distance delays them together, not one after the other.
 * - All have the same delay, so they are due in the order in which they came. One queue and one
 *   timer are enough.
 * - The end of a connection is an empty chunk. Connecting is left to the kernel, and not delayed.
 * - send() may wait: Redis always reads, and so does a client that has asked something.
 *
 * epoll(7), epoll_pwait2(2), recv(2), unix(7), tcp(7)
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK_BYTES = 65536, EVENTS = 256, BACKLOG = 4096 };

/* One socket of a pair. */
struct end {
    struct end *other;
    int fd;
    bool is_redis;
    bool was_told; /* that the other end sends no more */
};

struct chunk {
    struct chunk *next;
    struct end *to;
    int64_t due_ns;
    size_t length;
    char bytes[];
};

static struct chunk *late; /* all chunks that have not been passed on, the first to be due first */
static struct chunk **last_late = &late;
static int64_t delay_ns;
static int epoll;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void watch(int fd, struct end *end)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = end};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        err(1, "epoll_ctl");
}

/* ---- bytes --------------------------------------------------------------------------------- */

/* Sends all of it; no bytes are the end. When both ends have been told, nobody watches them any
 * more, and no chunk is for them. If the other side is gone, its bytes are dropped. */
static void pass_on(struct end *to, const char *bytes, size_t length)
{
    if (length == 0) {
        shutdown(to->fd, SHUT_WR);
        to->was_told = true;
    }
    for (ssize_t sent; length > 0; bytes += sent, length -= (size_t)sent)
        if ((sent = send(to->fd, bytes, length, MSG_NOSIGNAL)) < 0)
            break;
    if (to->was_told && to->other->was_told) {
        close(to->fd);
        close(to->other->fd);
        free(to->is_redis ? to->other : to); /* the first of the two */
    }
}

/* Reads one chunk. To Redis it goes at once, from Redis into the queue. */
static void receive(struct end *from)
{
    static char bytes[CHUNK_BYTES];
    ssize_t got = recv(from->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN)
        return;
    size_t length = got > 0 ? (size_t)got : 0; /* a reset is an end, too */
    if (length == 0)
        epoll_ctl(epoll, EPOLL_CTL_DEL, from->fd, NULL);
    if (!from->is_redis) {
        pass_on(from->other, bytes, length);
        return;
    }
    struct chunk *chunk = malloc(sizeof(*chunk) + length);
    if (!chunk)
        err(1, "malloc");
    *chunk = (struct chunk){.to = from->other, .due_ns = now_ns() + delay_ns, .length = length};
    memcpy(chunk->bytes, bytes, length);
    *last_late = chunk;
    last_late = &chunk->next;
}

/* ---- sockets ------------------------------------------------------------------------------- */

/* The address for bind() and connect(), valid until the next call. */
static struct sockaddr *address_of(const char *where, socklen_t *length)
{
    static struct sockaddr_un local = {.sun_family = AF_UNIX};
    static struct sockaddr_in ip = {.sin_family = AF_INET};
    char host[INET_ADDRSTRLEN];
    int end = 0;
    if (sscanf(where, "unix:%107s", local.sun_path) == 1) {
        *length = sizeof(local);
        return (struct sockaddr *)&local;
    }
    if (sscanf(where, "%15[0-9.]:%n", host, &end) != 1 || !end || !inet_aton(host, &ip.sin_addr))
        errx(2, "'%s' is neither unix:PATH nor ADDRESS:PORT", where);
    ip.sin_port = htons((uint16_t)strtoul(where + end, NULL, 10));
    *length = sizeof(ip);
    return (struct sockaddr *)&ip;
}

static int listen_on(const char *where)
{
    socklen_t length;
    struct sockaddr *address = address_of(where, &length);
    const struct sockaddr_in *ip = (const struct sockaddr_in *)address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) < 0 ||
        bind(fd, address, length) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, address, &length) < 0)
        err(1, "%s", where);
    printf("slow_redis: listening on %s:%d\n", inet_ntoa(ip->sin_addr), ntohs(ip->sin_port));
    fflush(stdout);
    return fd;
}

/* Accepts a client and connects it to Redis. If Redis refuses, that ends one connection. A lack of
 * descriptors ends the program: figures with fewer connections than intended would be wrong. */
static void accept_one(int listener, const char *redis)
{
    socklen_t length;
    struct sockaddr *address = address_of(redis, &length);
    int asks = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    int answers = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct end *pair = malloc(2 * sizeof(*pair));
    if (asks < 0 || answers < 0 || !pair)
        err(1, "accept");
    pair[0] = (struct end){.other = &pair[1], .fd = asks};
    pair[1] = (struct end){.other = &pair[0], .fd = answers, .is_redis = true};
    if (connect(answers, address, length) < 0) {
        close(asks);
        close(answers);
        free(pair);
        return;
    }
    for (int i = 0; i < 2; i++) { /* TCP must send at once; other sockets do */
        setsockopt(pair[i].fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        watch(pair[i].fd, &pair[i]);
    }
}

/* ---- the loop ------------------------------------------------------------------------------ */

/* Sleeps until something happens, or until the first chunk is due. */
static int next_events(struct epoll_event *events)
{
    int64_t left = late ? late->due_ns - now_ns() : 0;
    if (left < 0)
        left = 0;
    struct timespec until = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
    int count = epoll_pwait2(epoll, events, EVENTS, late ? &until : NULL, NULL);
    if (count < 0 && errno != EINTR)
        err(1, "epoll_pwait2");
    return count;
}

static void pass_on_what_is_due(void)
{
    int64_t now = now_ns();
    for (struct chunk *chunk; (chunk = late) && chunk->due_ns <= now; free(chunk)) {
        late = chunk->next;
        last_late = late ? last_late : &late;
        pass_on(chunk->to, chunk->bytes, chunk->length);
    }
}

int main(int argc, char **argv)
{
    struct epoll_event events[EVENTS];
    if (argc != 4)
        errx(2, "Usage: slow_redis MS LISTEN REDIS");
    delay_ns = strtol(argv[1], NULL, 10) * 1000000;
    prctl(PR_SET_TIMERSLACK, 1UL); /* wake when the time has come, not 50 microseconds later */
    epoll = epoll_create1(EPOLL_CLOEXEC);
    int listener = listen_on(argv[2]);
    watch(listener, NULL);
    for (;;) {
        int count = next_events(events);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr)
                receive(events[i].data.ptr);
            else
                accept_one(listener, argv[3]);
        }
        pass_on_what_is_due();
    }
}
