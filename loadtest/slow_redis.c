/* slow_redis: a Redis further away. It relays every connection to Redis, and passes the replies on
 * some milliseconds late.
 *
 *   slow_redis --delay MS --listen WHERE --redis WHERE
 *
 * WHERE is unix:PATH or ADDRESS:PORT (0: a free one). When it is ready, it prints where it listens.
 * A signal ends it.
 *
 * - Replies are late, commands are not. A round trip takes MS more in any case. But this way Redis
 *   has executed every command, even if the client does not wait for the reply.
 * - A chunk is the bytes of one recv(). Each is MS late, however many are under way, on one
 *   connection or on a thousand: distance delays them together, not one after the other.
 * - All have the same delay, so they are due in the order in which they came. One queue and one
 *   timer are enough.
 * - The end of a connection is an empty chunk. Connecting is left to the kernel, and not delayed.
 * - While MOST_QUEUED bytes wait for one socket, their sender is not read.
 *
 * epoll(7), epoll_pwait2(2), recv(2), unix(7), tcp(7)
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
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

enum { CHUNK_BYTES = 65536, MOST_QUEUED = 4 << 20, EVENTS = 256, BACKLOG = 4096, MOST_MS = 60000 };

struct chunk {
    struct chunk *next;
    struct end *to;
    int64_t due_ns;
    size_t length, sent;
    char bytes[];
};

/* One socket, and the chunks that are to be sent to it. */
struct end {
    struct end *other;
    int fd;
    bool is_redis;
    bool has_ended;       /* sends no more */
    bool was_told;        /* that the other has ended */
    uint32_t interest;    /* what epoll watches it for; 0: it is not watched */
    size_t queued;        /* bytes of memory that its chunks take, due or not */
    struct chunk *unsent; /* those that are due; NULL unless the socket is full */
    struct chunk **last;
    struct end *spare; /* the next pair that is over */
};

static struct chunk *late; /* all chunks that are not due yet, the first to be due first */
static struct chunk **last_late = &late;
static struct end *spare; /* pairs that are over; events of this round may still name them */
static int64_t delay_ns;
static int epoll;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "slow_redis: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* An end is read while there is room for its bytes, and written while a chunk is due. If it is
 * watched for neither, epoll forgets it: a hang-up would be reported even if not asked for. */
static void watch(struct end *end)
{
    bool read = !end->has_ended && end->other->queued < MOST_QUEUED;
    uint32_t wanted = (read ? EPOLLIN : 0u) | (end->unsent ? EPOLLOUT : 0u);
    struct epoll_event event = {.events = wanted, .data.ptr = end};
    int operation = !end->interest ? EPOLL_CTL_ADD : !wanted ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    if (wanted != end->interest && epoll_ctl(epoll, operation, end->fd, &event) < 0)
        die("epoll_ctl");
    end->interest = wanted;
}

/* Closes both sockets, and keeps the memory for a new pair. */
static void close_pair(struct end *end)
{
    struct end *pair = end->is_redis ? end->other : end; /* the first of the two */
    close(pair[0].fd);                                   /* which ends the watching, too */
    close(pair[1].fd);
    pair->spare = spare;
    spare = pair;
}

/* Sends the chunks that are due, until the socket is full. If its other side is gone, drops
 * them. */
static void send_due(struct end *to)
{
    struct chunk *chunk;
    while ((chunk = to->unsent) != NULL) {
        size_t left = chunk->length - chunk->sent;
        ssize_t sent = send(to->fd, chunk->bytes + chunk->sent, left, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN)
            break;
        chunk->sent += sent < 0 ? left : (size_t)sent;
        if (chunk->sent < chunk->length)
            continue;
        if (chunk->length == 0) {
            shutdown(to->fd, SHUT_WR);
            to->was_told = true;
        }
        to->unsent = chunk->next;
        to->queued -= sizeof(*chunk) + chunk->length;
        free(chunk);
    }
    watch(to);
    watch(to->other); /* there may be room again for its bytes */
    if (to->was_told && to->other->was_told)
        close_pair(to);
}

/* A chunk is due: it goes behind those that are due already. */
static void pass_on(struct chunk *chunk)
{
    struct end *to = chunk->to;
    *(to->unsent ? to->last : &to->unsent) = chunk;
    to->last = &chunk->next;
    chunk->next = NULL;
    send_due(to);
}

/* Reads one chunk. To Redis it goes at once, from Redis into the queue. */
static void receive(struct end *from)
{
    static char bytes[CHUNK_BYTES];
    ssize_t got = recv(from->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN)
        return;
    size_t length = got > 0 ? (size_t)got : 0; /* a reset is an end, too */
    struct chunk *chunk = malloc(sizeof(*chunk) + length);
    if (!chunk)
        die("malloc");
    *chunk = (struct chunk){.to = from->other, .due_ns = now_ns() + delay_ns, .length = length};
    memcpy(chunk->bytes, bytes, length);
    from->other->queued += sizeof(*chunk) + length;
    from->has_ended = length == 0;
    watch(from);
    if (from->is_redis && delay_ns > 0) {
        *last_late = chunk;
        last_late = &chunk->next;
    } else {
        pass_on(chunk);
    }
}

/* ---- sockets ------------------------------------------------------------------------------- */

/* A whole number up to `most`, or -1. */
static long number(const char *text, long most)
{
    char *end;
    long n = strtol(text, &end, 10);
    return end == text || *end || n < 0 || n > most ? -1 : n;
}

/* The address for bind() and connect(), valid until the next call. */
static struct sockaddr *address_of(const char *where, socklen_t *length)
{
    static struct sockaddr_un local;
    static struct sockaddr_in ip;
    const char *colon = strrchr(where, ':');
    char host[INET_ADDRSTRLEN] = "";
    if (strncmp(where, "unix:", 5) == 0 && strlen(where + 5) < sizeof(local.sun_path)) {
        local.sun_family = AF_UNIX;
        snprintf(local.sun_path, sizeof(local.sun_path), "%s", where + 5);
        *length = sizeof(local);
        return (struct sockaddr *)&local;
    }
    long port = colon ? number(colon + 1, 65535) : -1;
    if (port >= 0 && (size_t)(colon - where) < sizeof(host))
        memcpy(host, where, (size_t)(colon - where));
    ip.sin_family = AF_INET;
    ip.sin_port = htons((uint16_t)port);
    *length = sizeof(ip);
    if (inet_pton(AF_INET, host, &ip.sin_addr))
        return (struct sockaddr *)&ip;
    fprintf(stderr, "slow_redis: '%s' is neither unix:PATH nor ADDRESS:PORT\n", where);
    exit(2);
}

static int listen_on(const char *where)
{
    socklen_t length;
    struct sockaddr *address = address_of(where, &length);
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, address, length) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, address, &length) < 0)
        die(where);
    const struct sockaddr_in *ip = (const struct sockaddr_in *)address;
    if (address->sa_family == AF_UNIX)
        printf("slow_redis: listening on %s\n", where);
    else
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
    struct end *pair = spare ? spare : malloc(2 * sizeof(*pair));
    if (asks < 0 || answers < 0 || !pair)
        die("accept");
    spare = spare ? spare->spare : NULL;
    pair[0] = (struct end){.other = &pair[1], .fd = asks};
    pair[1] = (struct end){.other = &pair[0], .fd = answers, .is_redis = true};
    if (connect(answers, address, length) < 0) {
        close_pair(pair);
        return;
    }
    for (int i = 0; i < 2; i++) { /* TCP shall send at once; other sockets do */
        setsockopt(pair[i].fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        watch(&pair[i]);
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
        die("epoll_pwait2");
    return count;
}

static void pass_on_what_is_due(void)
{
    int64_t now = now_ns();
    while (late && late->due_ns <= now) {
        struct chunk *chunk = late;
        late = chunk->next;
        last_late = late ? last_late : &late;
        pass_on(chunk);
    }
}

/* An end may be watched for both. Then the call for what did not happen gives EAGAIN. */
static void take_event(struct end *end)
{
    if (end->interest & EPOLLOUT)
        send_due(end);
    if (end->interest & EPOLLIN)
        receive(end);
}

static void relay(int listener, const char *redis)
{
    struct epoll_event events[EVENTS], door = {.events = EPOLLIN, .data.ptr = &door};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &door) < 0)
        die("epoll_ctl");
    for (;;) {
        int count = next_events(events);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == &door)
                accept_one(listener, redis);
            else
                take_event(events[i].data.ptr);
        }
        pass_on_what_is_due();
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"delay", required_argument, NULL, 'd'},
                                            {"listen", required_argument, NULL, 'l'},
                                            {"redis", required_argument, NULL, 'r'},
                                            {NULL, 0, NULL, 0}};
    const char *given[128] = {['d'] = "", ['l'] = "", ['r'] = ""}; /* by letter */
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) > 0)
        given[option] = optarg;
    long ms = number(given['d'], MOST_MS);
    if (optind < argc || ms < 0) {
        fprintf(stderr, "Usage: slow_redis --delay MS --listen WHERE --redis WHERE\n");
        return 2;
    }
    socklen_t unused;
    address_of(given['r'], &unused); /* or ends the program */
    delay_ns = ms * 1000000;
    prctl(PR_SET_TIMERSLACK, 1UL); /* wake when the time has come, not 50 microseconds later */
    epoll = epoll_create1(EPOLL_CLOEXEC);
    relay(listen_on(given['l']), given['r']);
}
