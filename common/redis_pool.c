#include "redis_pool.h"

#include "clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

/* ---- one connection ------------------------------------------------------------------------ */

void redis_close(struct redis *redis)
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
    const long ms = redis->server->command_ms;
    const struct timeval limit = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    int fd = redis_connect(redis->server);
    redisReader *reader = fd >= 0 ? redisReaderCreate() : NULL;
    if (!reader) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    redis->fd = fd;
    redis->reader = reader;
    redis_limit_replies(reader, &redis->limits);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0)
        return true; /* for writing, connect_to() has set a limit already */
    redis_close(redis);
    return false;
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

/* Waits for the rest of a reply that comes in pieces. If the deadline has passed, checks once. */
static bool is_readable(int fd, int64_t deadline)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    int ready;
    do {
        int64_t left = deadline - clock_now_ms();
        ready = poll(&wanted, 1, left > 0 ? (int)left : 0);
    } while (ready < 0 && errno == EINTR);
    if (ready == 0)
        errno = EAGAIN;
    return ready > 0;
}

/* Reads until a reply is whole. The first read waits by itself (SO_RCVTIMEO). Returns NULL with
 * errno set, to EAGAIN if the time is over. */
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
        if (!sense || redis_is_too_large(redis->reader, &redis->limits)) {
            errno = EPROTO;
            return NULL;
        }
    }
}

/* One command on an open connection. */
static redisReply *exchange(struct redis *redis, const struct redis_command *command, int *why)
{
    int64_t deadline = clock_now_ms() + redis->server->command_ms;
    redisReply *reply = NULL;
    errno = 0;
    if (send_command(redis->fd, command))
        reply = read_reply(redis, deadline);
    *why = reply ? 0 : errno == EAGAIN ? REDIS_NO_REPLY : REDIS_NO_CONNECTION;
    if (reply)
        redis_log_error(redis->server, reply);
    if (!reply)
        redis_log_nonsense(redis->server, redis->reader, &redis->limits);
    if (!reply || redis_has_more(redis->reader))
        redis_close(redis); /* a late or an extra reply must not become the next command's */
    return reply;
}

/* Opens the connection, and sends the password. */
static bool connect_and_authenticate(struct redis *redis, int *why)
{
    *why = REDIS_NO_CONNECTION;
    if (!open_connection(redis))
        return false;
    if (!*redis->server->password)
        return true;
    struct redis_command auth = redis_auth_command(redis->server);
    redisReply *reply = exchange(redis, &auth, why);
    int refusal = reply ? redis_auth_refusal(redis->server, reply) : 0;
    if (refusal) {
        redis_close(redis);
        *why = refusal;
    } else if (reply && redis->fd < 0) { /* Redis sent more than the reply */
        *why = REDIS_NO_CONNECTION;
    }
    freeReplyObject(reply);
    return redis->fd >= 0;
}

redisReply *redis_ask(struct redis *redis, const struct redis_command *command, int *why)
{
    redisReply *reply = NULL;
    bool ready = redis->fd >= 0 || connect_and_authenticate(redis, why);
    if (ready)
        reply = exchange(redis, command, why);
    /* A lost reply says something about this connection only. */
    redis->why = ready && *why == REDIS_NO_CONNECTION ? 0 : *why;
    return reply;
}

/* ---- the pool ------------------------------------------------------------------------------ */

/* A thread in line. It lives on that thread's stack, and is read and written with the lock held. */
struct redis_waiter {
    pthread_cond_t turn; /* signalled when it has left the line */
    struct redis *redis; /* the connection that it got, or */
    int why;             /* the reason why it gets none */
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
        redis_close(&pool->all[i]);
    pthread_mutex_destroy(&pool->lock);
    free(pool->all);
}

/* Joins the line at its end, and waits to be handed a connection. With the lock held. */
static struct redis *wait_in_line(struct redis_pool *pool, int most_ms, int *why)
{
    struct timespec deadline = clock_deadline(most_ms);
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
struct redis *redis_pool_acquire(struct redis_pool *pool, int most_ms, int *why)
{
    *why = 0;
    pthread_mutex_lock(&pool->lock);
    struct redis *redis = pool->idle;
    if (redis)
        LL_DELETE(pool->idle, redis);
    else
        redis = wait_in_line(pool, most_ms, why);
    pthread_mutex_unlock(&pool->lock);

    if (redis)
        redis->why = 0;
    if (redis && redis->fd >= 0 && redis_is_stale(redis->fd))
        redis_close(redis);
    return redis;
}

void redis_pool_release(struct redis_pool *pool, struct redis *redis)
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
