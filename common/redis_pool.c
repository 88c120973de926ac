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

static bool send_command(int fd, const struct redis_command *command)
{
    struct redis_command formatted = *command;
    if (!command->bytes)
        redis_prepare(&formatted);
    size_t sent = 0;
    ssize_t n = formatted.bytes ? 0 : -1;
    errno = formatted.bytes ? 0 : ENOMEM;
    while (sent < formatted.len && (n >= 0 || errno == EINTR)) {
        n = write(fd, formatted.bytes + sent, formatted.len - sent);
        sent += n > 0 ? (size_t)n : 0;
    }
    int reason = errno;
    if (!command->bytes)
        redisFreeCommand((char *)formatted.bytes);
    errno = reason;
    return n >= 0;
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

/* Reads until a reply is whole. Returns NULL with errno set, to EAGAIN if the time is over. */
static redisReply *read_reply(struct redis *redis, int64_t deadline)
{
    char bytes[16 * 1024];
    void *reply = NULL;
    for (bool first = true;; first = false) {
        if (!first && !is_readable(redis->fd, deadline))
            return NULL;
        ssize_t n = read(redis->fd, bytes, sizeof(bytes)); /* the first one waits (SO_RCVTIMEO) */
        if (n == 0)
            errno = ECONNRESET;
        if (n == 0 || (n < 0 && errno != EINTR))
            return NULL;
        if (n > 0 && redisReaderFeed(redis->reader, bytes, (size_t)n) != REDIS_OK) {
            errno = ENOMEM;
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
    redisReply *reply = send_command(redis->fd, command) ? read_reply(redis, deadline) : NULL;
    *why = 0;
    if (reply && reply->type == REDIS_REPLY_ERROR)
        redis_log(redis->server, "says", reply->str, (size_t)reply->len);
    if (!reply) {
        *why = errno == EAGAIN ? REDIS_NO_REPLY : REDIS_NO_CONNECTION;
        redis_log_nonsense(redis->server, redis->reader, &redis->limits);
    }
    if (!reply || redis_has_more(redis->reader))
        redis_close(redis); /* a late or an extra reply must not become the next command's */
    return reply;
}

/* Opens the connection, and sends the password. */
static bool open_connection(struct redis *redis, int *why)
{
    const long ms = redis->server->command_ms;
    const struct timeval limit = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    *why = REDIS_NO_CONNECTION;
    redis->fd = redis_connect(redis->server);
    if (redis->fd < 0)
        return false;
    redis->reader = redisReaderCreate();
    /* For writing, redis_connect() has set a limit already. */
    if (!redis->reader ||
        setsockopt(redis->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) != 0) {
        redis_close(redis);
        return false;
    }
    redis_limit_replies(redis->reader, &redis->limits);
    if (!*redis->server->password)
        return true;

    struct redis_command auth = redis_auth_command(redis->server);
    redisReply *reply = exchange(redis, &auth, why);
    int refusal = reply ? redis_auth_refusal(reply) : 0;
    if (refusal)
        redis_close(redis);
    if (reply && redis->fd < 0) /* refused, or Redis sent more than the reply */
        *why = refusal ? refusal : REDIS_NO_CONNECTION;
    freeReplyObject(reply);
    return redis->fd >= 0;
}

redisReply *redis_ask(struct redis *redis, const struct redis_command *command, int *why)
{
    redisReply *reply = NULL;
    bool ready = redis->fd >= 0 || open_connection(redis, why);
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
