#include "redis_pool.h"

#include "process.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

/* ---- one connection ------------------------------------------------------------------------ */

static void redis_close(struct redis *redis)
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
    size_t sent = 0;
    ssize_t n = 0;
    if (!command->bytes)
        redis_prepare(&formatted);
    while (sent < formatted.len && (n >= 0 || errno == EINTR)) {
        n = write(fd, formatted.bytes + sent, formatted.len - sent);
        sent += n > 0 ? (size_t)n : 0;
    }
    if (!command->bytes)
        redisFreeCommand((char *)formatted.bytes); /* errno stays */
    return formatted.len > 0 && sent == formatted.len;
}

/* Reads until a reply is whole. Returns NULL if there is none, and *why says why. The first read(2)
 * waits by itself (SO_RCVTIMEO). The rest of a reply in pieces is waited for until the deadline. */
static redisReply *read_reply(struct redis *redis, int64_t deadline, int *why)
{
    char bytes[4096];
    redisReply *reply;
    struct pollfd rest = {.fd = redis->fd, .events = POLLIN};
    *why = REDIS_NO_CONNECTION;
    for (bool first = true; redis_next_reply(redis->server, redis->reader, &reply); first = false) {
        if (reply) {
            *why = 0;
            return reply;
        }
        int64_t left = deadline - clock_now_ms();
        while (!first && poll(&rest, 1, left > 0 ? (int)left : 0) < 0 && errno == EINTR)
            ;
        ssize_t n = first ? read(redis->fd, bytes, sizeof(bytes))
                          : recv(redis->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            *why = REDIS_NO_REPLY;
        if (n <= 0 || redisReaderFeed(redis->reader, bytes, (size_t)n) != REDIS_OK)
            return NULL;
    }
    return NULL;
}

/* One command on an open connection, behind AUTH if that is due. If Redis has hung up, it may have
 * said why before, and that is the reply. */
static redisReply *exchange(struct redis *redis, const struct redis_command *command,
                            bool with_auth, int *why)
{
    int64_t deadline = clock_now_ms() + redis->server->command_ms;
    redisReply *reply = NULL;
    bool sent = true;
    if (with_auth) {
        struct redis_command auth = redis_auth_command(redis->server);
        sent = send_command(redis->fd, &auth);
    }
    sent = sent && send_command(redis->fd, command);
    *why = !sent && errno == EAGAIN ? REDIS_NO_REPLY : REDIS_NO_CONNECTION;
    if (sent || errno == EPIPE || errno == ECONNRESET)
        reply = read_reply(redis, deadline, why);
    if (with_auth && reply) {
        redis_log_error(redis->server, reply, true);
        freeReplyObject(reply);
        reply = read_reply(redis, deadline, why);
    }
    if (reply)
        redis_log_error(redis->server, reply, false);
    /* A late or an extra reply must not become the next command's. And behind an error Redis may
     * hang up, or let in a new connection, if somebody has changed the password. */
    if (!reply || reply->type == REDIS_REPLY_ERROR || redis_has_more(redis->reader))
        redis_close(redis);
    return reply;
}

redisReply *redis_ask(struct redis *redis, const struct redis_command *command, int *why)
{
    bool is_new = redis->fd < 0;
    redis->why = *why = REDIS_NO_CONNECTION;
    if (is_new) {
        redis->fd = redis_connect(redis->server, 0);
        redis->reader = redis->fd >= 0 ? redis_open_reader() : NULL;
        if (!redis->reader) {
            redis_close(redis);
            return NULL;
        }
    }
    redisReply *reply = exchange(redis, command, is_new && *redis->server->password, why);
    /* A lost reply says something about this connection only. */
    redis->why = *why == REDIS_NO_CONNECTION ? 0 : *why;
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

void redis_pool_open(struct redis_pool *pool, const struct redis_server *server, int size)
{
    *pool = (struct redis_pool){.size = size};
    pool->all = calloc((size_t)size, sizeof(*pool->all));
    if (!pool->all)
        process_die(server->name, "no memory for %d connections to Redis", size);
    for (int i = 0; i < size; i++) {
        pool->all[i].server = server;
        pool->all[i].fd = -1;
        LL_PREPEND(pool->idle, &pool->all[i]);
    }
    pthread_mutex_init(&pool->lock, NULL);
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
