#include "redis.h"

#include "net.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

/* ---- where it is --------------------------------------------------------------------------- */

/* The byte that two hexadecimal digits stand for; -1: they are none, or stand for NUL. */
static int read_hex(const char *digits)
{
    char two[3] = {0};
    if (!isxdigit((unsigned char)digits[0]) || !isxdigit((unsigned char)digits[1]))
        return -1;
    memcpy(two, digits, 2);
    long byte = strtol(two, NULL, 16);
    return byte > 0 ? (int)byte : -1;
}

/* ":password", up to `end`. */
static bool read_password(struct redis_server *server, const char *at, const char *end)
{
    size_t len = 0;
    if (*at++ != ':')
        return false;
    for (; at < end && len < REDIS_MAX_PASSWORD; len++) {
        int byte = *at == '%' ? read_hex(at + 1) : *at;
        if (*at == '%' && byte < 0)
            return false;
        server->password[len] = (char)byte;
        at += *at == '%' ? 3 : 1;
    }
    server->password[len] = '\0';
    return len > 0 && at == end;
}

static const char *locate_host(struct redis_server *server, const char *where)
{
    char host[256];
    const char *colon = strrchr(where, ':');
    size_t len = colon ? (size_t)(colon - where) : 0;
    if (!colon || len == 0 || len >= sizeof(host))
        return "host:port, or unix:PATH";
    bool brackets = where[0] == '[' && where[len - 1] == ']';
    snprintf(host, sizeof(host), "%.*s", (int)len - (brackets ? 2 : 0), where + brackets);

    char *end;
    long port = strtol(colon + 1, &end, 10);
    if (end == colon + 1 || *end != '\0' || port < 1 || port > 65535)
        return "host:port, with a port from 1 to 65535";

    /* where "localhost" is both, Redis more often listens on 127.0.0.1 */
    struct addrinfo *address, hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_INET};
    struct addrinfo hints_6 = {.ai_socktype = SOCK_STREAM, .ai_family = AF_INET6};
    if (getaddrinfo(host, NULL, &hints, &address) != 0 &&
        getaddrinfo(host, NULL, &hints_6, &address) != 0)
        return "a host that can be found";
    getnameinfo(address->ai_addr, address->ai_addrlen, server->host, sizeof(server->host), NULL, 0,
                NI_NUMERICHOST);
    freeaddrinfo(address);
    server->port = (int)port;
    return NULL;
}

static const char scheme[] = "redis://";

static bool is_url(const char *where)
{
    return strncmp(where, scheme, strlen(scheme)) == 0;
}

const char *redis_locate(struct redis_server *server, const char *where)
{
    if (strncmp(where, "unix:", 5) == 0) {
        server->path = where + 5;
        return strlen(server->path) > 0 && strlen(server->path) < 108 ? NULL
                                                                      : "a path of 1 to 107 bytes";
    }
    const char *host = is_url(where) ? where + strlen(scheme) : where;
    const char *at = is_url(where) ? strrchr(host, '@') : NULL;
    if (at && !read_password(server, host, at))
        return "redis://:password@host:port";
    return locate_host(server, at ? at + 1 : host);
}

/* ---- what it says -------------------------------------------------------------------------- */

enum { TOLD_ERRORS = 16, TOLD_BYTES = 200 };

/* Hashes of what was said; 0: room for one. All processes of a server share it. */
struct redis_told {
    _Atomic uint32_t hashes[TOLD_ERRORS];
};

static uint32_t hash_of(const char *bytes, size_t len)
{
    uint32_t hash = 2166136261; /* FNV-1a */
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 16777619;
    return hash ? hash : 1;
}

/* Whoever puts the hash into a free place is the one who says it. */
static bool is_news(struct redis_told *told, uint32_t hash)
{
    for (int i = 0; i < TOLD_ERRORS; i++) {
        uint32_t there = 0;
        if (atomic_compare_exchange_strong(&told->hashes[i], &there, hash))
            return true;
        if (there == hash)
            return false;
    }
    return false;
}

static void tell(const struct redis_server *server, const char *does, const char *error, size_t len)
{
    char line[TOLD_BYTES * 4 + 1];
    len = len < TOLD_BYTES ? len : TOLD_BYTES;
    if (!server->told || !is_news(server->told, hash_of(error, len)))
        return;
    net_write_visible(error, len, line, sizeof(line));
    fprintf(stderr, "%s: Redis %s: %s\n", server->name, does, line);
}

void redis_tell(const struct redis_server *server, const char *error, size_t len)
{
    tell(server, "says", error, len);
}

void redis_tell_nonsense(const struct redis_server *server, const redisReader *reader,
                         const struct redis_bounds *bounds)
{
    const char *error = bounds->exceeded                    ? "a reply larger than a page can be"
                        : reader->err == REDIS_ERR_PROTOCOL ? reader->errstr
                                                            : NULL;
    if (error)
        tell(server, "makes no sense", error, strlen(error));
}

/* ---- how large a reply may be -------------------------------------------------------------- */

/* hiredis makes its objects by functions that may fail, for want of memory. These fail beyond the
 * bounds, before anything is allocated. */
#if HIREDIS_MAJOR < 1
typedef int element_count;
#else
typedef size_t element_count;
#endif

static void *create_array(const redisReadTask *task, element_count elements)
{
    struct redis_bounds *bounds = task->privdata;
    bool is_flat = task->type == REDIS_REPLY_ARRAY && !task->parent; /* no map, no set */
    bounds->exceeded = !is_flat || elements > REDIS_MAX_ELEMENTS;
    return bounds->exceeded ? NULL : bounds->plain->createArray(task, elements);
}

static void *create_string(const redisReadTask *task, char *text, size_t len)
{
    struct redis_bounds *bounds = task->privdata;
    bounds->exceeded = len > REDIS_MAX_STRING;
    return bounds->exceeded ? NULL : bounds->plain->createString(task, text, len);
}

/* maxbuf: hiredis 0.14 gives an empty buffer of more than 16 KiB back for a new one, and abort()s
 * if there is no memory for that. So it keeps it; how large it gets is bounded. */
void redis_bound(redisReader *reader, struct redis_bounds *bounds)
{
    reader->maxbuf = 0;
    *bounds = (struct redis_bounds){.functions = *reader->fn, .plain = reader->fn};
    bounds->functions.createArray = create_array;
    bounds->functions.createString = create_string;
    reader->fn = &bounds->functions;
    reader->privdata = bounds;
}

bool redis_exceeds(const redisReader *reader, struct redis_bounds *bounds)
{
    enum { AROUND = sizeof("$16384\r\n\r\n") };
    bounds->exceeded |= reader->len - reader->pos > REDIS_MAX_STRING + AROUND;
    return bounds->exceeded;
}

/* ---- one connection ------------------------------------------------------------------------ */

static struct timeval timeval_of(int64_t ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
}

/* A socket that is connected within `ms`; with 0 milliseconds a non-blocking one, whose connection
 * may still be on its way. -1 with errno set. We connect by ourselves, because hiredis 0.14 does
 * not survive that without memory. A blocking connect(2) ends after SO_SNDTIMEO, with EINPROGRESS
 * or EAGAIN (socket(7), unix(7)). */
static int connect_to(const struct sockaddr *address, socklen_t size, int64_t ms)
{
    const struct timeval limit = timeval_of(ms);
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | (ms ? 0 : SOCK_NONBLOCK), 0);
    if (fd >= 0 && (!ms || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0) &&
        (connect(fd, address, size) == 0 || (!ms && errno == EINPROGRESS)))
        return fd;
    int reason = errno;
    if (fd >= 0)
        close(fd);
    errno = reason;
    return -1;
}

static int connect_once(const struct redis_server *server, int64_t ms)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct addrinfo *found,
        hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    char port[8];
    if (server->path) {
        snprintf(local.sun_path, sizeof(local.sun_path), "%s", server->path);
        return connect_to((struct sockaddr *)&local, sizeof(local), ms);
    }
    snprintf(port, sizeof(port), "%d", server->port);
    if (getaddrinfo(server->host, port, &hints, &found) != 0) {
        errno = ENOMEM; /* it is an address already: nothing else can be wrong */
        return -1;
    }
    int fd = connect_to(found->ai_addr, found->ai_addrlen, ms);
    int reason = errno;
    freeaddrinfo(found);
    errno = reason;
    return fd;
}

/* The same, within the time that connecting has. Tried again meanwhile: EAGAIN, and EINTR. */
static int connect_in_time(const struct redis_server *server)
{
    int64_t deadline = net_now() + server->connect_ms;
    for (;;) {
        int64_t left = deadline - net_now();
        int fd = connect_once(server, left > 0 ? left : 1);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || net_now() >= deadline)
            return fd;
        poll(NULL, 0, 5);
    }
}

int redis_begin_to_connect(const struct redis_server *server)
{
    return connect_once(server, 0);
}

/* The environment, unlike the command line, is not shown to everybody by ps. */
static void find_password(struct redis_server *server, const struct options *o)
{
    const char *password = getenv("REDISCLI_AUTH");
    if (*server->password || !password)
        return;
    if (strlen(password) > REDIS_MAX_PASSWORD)
        net_die(o->name, "REDISCLI_AUTH: a password of at most %d bytes", REDIS_MAX_PASSWORD);
    memcpy(server->password, password, strlen(password) + 1);
}

void redis_start(struct redis_server *server, const struct options *o)
{
    *server = (struct redis_server){
        .name = o->name,
        .connect_ms = net_connect_ms(o),
        .command_ms = net_redis_ms(o),
    };
    const char *right = redis_locate(server, o->redis);
    const char *password = is_url(o->redis) ? strrchr(o->redis, '@') : NULL;
    const char *shown = password ? password + 1 : o->redis; /* what may stand in a log */
    if (right)
        net_bad_option(o->name, "--redis", shown, right);
    find_password(server, o);
    server->told = mmap(NULL, sizeof(*server->told), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (server->told == MAP_FAILED)
        net_die(o->name, "%s", strerror(errno));

    int fd = connect_in_time(server);
    if (fd < 0)
        fprintf(stderr,
                "%s: no Redis at %s (%s): files are served, the guestbook answers 503 until "
                "there is one\n",
                o->name, shown, strerror(errno == EINPROGRESS ? ETIMEDOUT : errno));
    else
        close(fd);
}

static void hang_up(struct redis *redis)
{
    if (redis->fd < 0)
        return;
    close(redis->fd);
    redisReaderFree(redis->reader);
    redis->fd = -1;
    redis->reader = NULL;
}

static bool open_connection(struct redis *redis)
{
    const struct timeval limit = timeval_of(redis->server->command_ms);
    int fd = connect_in_time(redis->server);
    redisReader *reader = fd >= 0 ? redisReaderCreate() : NULL;
    if (!reader) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    redis->fd = fd;
    redis->reader = reader;
    redis_bound(reader, &redis->bounds);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0)
        return true;
    hang_up(redis);
    return false;
}

/* Has the other side closed, or said something nobody asked for, while the connection was idle? */
static bool is_stale(const struct redis *redis)
{
    char byte;
    return recv(redis->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

/* The casts: an argument of hiredis' is const-incorrect by one level. */
void redis_prepare(struct redis_command *command)
{
    char *bytes;
    long long len = redisFormatCommandArgv(&bytes, command->count, (const char **)command->words,
                                           command->lens);
    if (len > 0) {
        command->bytes = bytes;
        command->len = (size_t)len;
    }
}

static bool write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno != EINTR)
            return false;
        bytes += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool send_command(int fd, const struct redis_command *command)
{
    if (command->bytes)
        return write_all(fd, command->bytes, command->len);
    struct redis_command formatted = *command;
    redis_prepare(&formatted);
    bool sent = formatted.bytes && write_all(fd, formatted.bytes, formatted.len);
    int reason = errno;
    redisFreeCommand((char *)formatted.bytes);
    errno = reason;
    return sent;
}

ssize_t redis_read(int fd, redisReader *reader)
{
    char bytes[16 * 1024];
    ssize_t n = read(fd, bytes, sizeof(bytes));
    if (n <= 0 || redisReaderFeed(reader, bytes, (size_t)n) == REDIS_OK)
        return n;
    errno = ENOMEM;
    return -1;
}

/* `pos` and `len` are fields of the public struct redisReader, but not documented; read in hiredis
 * 0.14.1 and 1.2.0. */
bool redis_says_more(const redisReader *reader)
{
    return reader->pos < reader->len;
}

/* Waits for the rest of a reply that comes in drops; one last look, if it is late. */
static bool is_readable(int fd, int64_t deadline)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    int ready;
    do {
        int64_t left = deadline - net_now();
        ready = poll(&wanted, 1, left > 0 ? (int)left : 0);
    } while (ready < 0 && errno == EINTR);
    if (ready == 0)
        errno = EAGAIN;
    return ready > 0;
}

/* Reads until a reply is whole. The first read waits by itself (SO_RCVTIMEO). NULL: errno is EAGAIN
 * if the time is over. */
static redisReply *read_reply(struct redis *redis, int64_t deadline)
{
    void *reply = NULL;
    for (bool first = true;; first = false) {
        if (!first && !is_readable(redis->fd, deadline))
            return NULL;
        ssize_t n = redis_read(redis->fd, redis->reader);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            errno = n == 0 ? ECONNRESET : errno;
            return NULL;
        }
        bool sense = redisReaderGetReply(redis->reader, &reply) == REDIS_OK;
        if (sense && reply)
            return reply;
        if (!sense || redis_exceeds(redis->reader, &redis->bounds)) {
            errno = EPROTO;
            return NULL;
        }
    }
}

/* One command on an open connection. */
static redisReply *exchange(struct redis *redis, const struct redis_command *command, int *why)
{
    int64_t deadline = net_now() + redis->server->command_ms;
    redisReply *reply = NULL;
    errno = 0;
    if (send_command(redis->fd, command))
        reply = read_reply(redis, deadline);
    *why = reply ? 0 : errno == EAGAIN ? REDIS_NO_REPLY : REDIS_NO_CONNECTION;
    if (reply && reply->type == REDIS_REPLY_ERROR)
        redis_tell(redis->server, reply->str, (size_t)reply->len);
    if (!reply)
        redis_tell_nonsense(redis->server, redis->reader, &redis->bounds);
    if (!reply || redis_says_more(redis->reader))
        hang_up(redis); /* what comes late, or too much, is never the next command's reply */
    return reply;
}

struct redis_command redis_auth(const struct redis_server *server)
{
    return (struct redis_command){
        .count = 2,
        .words = {"AUTH", server->password},
        .lens = {strlen("AUTH"), strlen(server->password)},
    };
}

bool redis_admits(const struct redis_server *server, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR)
        redis_tell(server, reply->str, (size_t)reply->len);
    return reply->type == REDIS_REPLY_STATUS;
}

/* Opens the connection, and says the password. */
static bool make_ready(struct redis *redis, int *why)
{
    *why = REDIS_NO_CONNECTION;
    if (!open_connection(redis))
        return false;
    if (!*redis->server->password)
        return true;
    struct redis_command auth = redis_auth(redis->server);
    redisReply *reply = exchange(redis, &auth, why);
    if (reply && !redis_admits(redis->server, reply)) {
        hang_up(redis);
        *why = REDIS_NOT_ADMITTED;
    } else if (reply && redis->fd < 0) { /* it said more than that */
        *why = REDIS_NO_CONNECTION;
    }
    freeReplyObject(reply);
    return redis->fd >= 0;
}

redisReply *redis_ask(struct redis *redis, const struct redis_command *command, int *why)
{
    redisReply *reply = NULL;
    bool ready = redis->fd >= 0 || make_ready(redis, why);
    if (ready)
        reply = exchange(redis, command, why);
    /* A lost reply says something of this connection only. */
    redis->why = ready && *why == REDIS_NO_CONNECTION ? 0 : *why;
    return reply;
}

/* ---- a pool of connections ----------------------------------------------------------------- */

/* A thread in line. It lives on that thread's stack, and is read and written with the lock held. */
struct redis_waiter {
    pthread_cond_t turn; /* signalled when it has left the line */
    struct redis *redis; /* what it was handed; or */
    int why;             /* why it gets nothing */
    struct redis_waiter *prev, *next;
};

bool redis_pool_open(struct redis_pool *pool, const struct redis_server *server, int size)
{
    *pool = (struct redis_pool){.size = size};
    pool->all = calloc((size_t)size, sizeof(*pool->all));
    if (!pool->all)
        return false;
    for (int i = 0; i < size; i++) {
        pool->all[i].server = server;
        pool->all[i].fd = -1;
        LL_PREPEND(pool->idle, &pool->all[i]);
    }
    pthread_mutex_init(&pool->lock, NULL);
    return true;
}

void redis_pool_close(struct redis_pool *pool)
{
    for (int i = 0; i < pool->size; i++)
        hang_up(&pool->all[i]);
    pthread_mutex_destroy(&pool->lock);
    free(pool->all);
}

/* Joins the line at its end, and waits to be handed a connection. With the lock held. */
static struct redis *wait_in_line(struct redis_pool *pool, int most_ms, int *why)
{
    struct timespec deadline = net_time_from_now(most_ms);
    struct redis_waiter self = {.turn = PTHREAD_COND_INITIALIZER};
    int error = 0;
    DL_APPEND(pool->line, &self);
    while (!self.redis && !self.why && error != ETIMEDOUT)
        error = pthread_cond_clockwait(&self.turn, &pool->lock, CLOCK_MONOTONIC, &deadline);
    if (!self.redis && !self.why) {
        DL_DELETE(pool->line, &self);
        self.why = REDIS_NO_CONNECTION;
    }
    pthread_cond_destroy(&self.turn);
    *why = self.why;
    return self.redis;
}

/* Sends the first in line away, with a connection or with the reason why there is none. With the
 * lock held. */
static void serve_first(struct redis_pool *pool, struct redis *redis, int why)
{
    struct redis_waiter *first = pool->line;
    DL_DELETE(pool->line, first);
    first->redis = redis;
    first->why = why;
    pthread_cond_signal(&first->turn);
}

/* A connection is idle only while nobody is in line: a newcomer cannot overtake. */
struct redis *redis_take(struct redis_pool *pool, int most_ms, int *why)
{
    *why = 0;
    pthread_mutex_lock(&pool->lock);
    struct redis *redis = pool->idle;
    if (redis)
        LL_DELETE(pool->idle, redis);
    else
        redis = wait_in_line(pool, most_ms, why);
    pthread_mutex_unlock(&pool->lock);

    if (redis && redis->fd >= 0 && is_stale(redis))
        hang_up(redis);
    return redis;
}

void redis_give(struct redis_pool *pool, struct redis *redis)
{
    int why = redis->why; /* as soon as the lock is free, it is somebody else's */
    pthread_mutex_lock(&pool->lock);
    while (why && pool->line)
        serve_first(pool, NULL, why);
    if (pool->line)
        serve_first(pool, redis, 0);
    else
        LL_PREPEND(pool->idle, redis);
    pthread_mutex_unlock(&pool->lock);
}
