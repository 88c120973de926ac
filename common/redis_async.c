#include "redis_async.h"

#include "process.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the two queues ------------------------------------------------------------------------ */

static size_t length(const struct redis_queue *queue)
{
    return queue->buffer.len - queue->gone;
}

/* The first `count` bytes leave the queue. The rest moves to the front only if it is the smaller
 * part, so that no byte is moved again and again. */
static void drop_front(struct redis_queue *queue, size_t count)
{
    enum { KEPT_BYTES = 64 * 1024 };
    queue->gone += count;
    size_t left = length(queue);
    if (left >= queue->gone)
        return;
    if (left == 0)
        buffer_clear(&queue->buffer, KEPT_BYTES);
    else
        memmove(queue->buffer.bytes, queue->buffer.bytes + queue->gone, left);
    queue->buffer.len = left;
    queue->gone = 0;
}

/* The first asker leaves the queue. */
static void *take_asker(struct redis_async *redis)
{
    void *asker;
    memcpy(&asker, redis->askers.buffer.bytes + redis->askers.gone, sizeof(asker));
    drop_front(&redis->askers, sizeof(asker));
    redis->unanswered--;
    return asker;
}

/* ---- a connection's life ------------------------------------------------------------------- */

/* All who wait get NULL and the reason. */
static void give_up(struct redis_async *redis, int why)
{
    struct redis_async lost = *redis;
    if (lost.fd < 0)
        return;
    close(lost.fd);
    redisReaderFree(lost.reader);
    buffer_clear(&lost.out.buffer, 0);

    /* The connection is forgotten before any asker is told. An asker that is told may ask again at
     * once. It must find no connection then, not a dying one. */
    *redis = (struct redis_async){
        .server = lost.server,
        .answered = lost.answered,
        .opened = lost.opened,
        .closed = lost.closed,
        .fd = -1,
    };
    while (lost.unanswered > 0) {
        void *asker = take_asker(&lost);
        if (asker)
            redis->answered(asker, NULL, why);
    }
    buffer_clear(&lost.askers.buffer, 0);
}

/* Puts a command and its asker into the queues. Without memory it does neither. */
static bool enqueue(struct redis_async *redis, const struct redis_command *command, void *asker)
{
    struct redis_command formatted = *command;
    struct buffer *out = &redis->out.buffer, *askers = &redis->askers.buffer;
    if (!command->bytes)
        redis_prepare(&formatted);
    bool has_room = formatted.bytes && buffer_reserve(out, formatted.len) &&
                    buffer_reserve(askers, sizeof(asker));
    if (has_room) {
        buffer_append(out, formatted.bytes, formatted.len);
        buffer_append(askers, (const char *)&asker, sizeof(asker));
        redis->unanswered++;
    }
    out->failed = askers->failed = false; /* what is in them is whole */
    if (!command->bytes)
        redisFreeCommand((char *)formatted.bytes);
    return has_room;
}

/* From now on Redis may take so long: to be there, or to complete its next reply. */
static void allow(struct redis_async *redis, int ms)
{
    redis->deadline = clock_now_ms() + ms;
}

static bool open_connection(struct redis_async *redis)
{
    const int on = 1;
    int fd = redis->closed ? -1 : redis_connect(redis->server, SOCK_NONBLOCK);
    if (fd < 0)
        return false;
    /* A command must leave while the reply to an earlier one is still on its way (tcp(7); a Unix
     * socket does not know the option, and does not need it). */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    redis->fd = fd;
    redis->events = POLLOUT;
    redis->opened++;
    allow(redis, redis->server->connect_ms);
    struct redis_command auth = redis_auth_command(redis->server);
    redis->reader = redis_open_reader();
    if (redis->reader && (!*redis->server->password || enqueue(redis, &auth, NULL)))
        return true;
    give_up(redis, REDIS_NO_CONNECTION); /* there is no memory for the reader, or for AUTH */
    return false;
}

/* The socket is writable: the connection is made, or has failed (connect(2)). */
static void finish_connecting(struct redis_async *redis)
{
    int error = 0;
    socklen_t size = sizeof(error);
    if (getsockopt(redis->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 || error != 0) {
        give_up(redis, REDIS_NO_CONNECTION);
        return;
    }
    redis->connected = true;
    redis->events = POLLIN;
    allow(redis, redis->server->command_ms);
}

void redis_async_start(struct redis_async *redis, const struct redis_server *server,
                       void (*answered)(void *asker, const redisReply *, int why))
{
    *redis = (struct redis_async){.server = server, .answered = answered, .fd = -1};
}

void redis_async_drop(struct redis_async *redis)
{
    give_up(redis, REDIS_NO_CONNECTION);
}

void redis_async_close(struct redis_async *redis)
{
    redis->closed = true;
    redis_async_drop(redis);
}

/* ---- commands out -------------------------------------------------------------------------- */

int redis_async_ask(struct redis_async *redis, const struct redis_command *command, void *asker)
{
    /* Has the connection ended? The loop will only be told in its next round. So it is checked here
     * before a command is lost on it, as in redis_pool_acquire(). While a reply is being delivered
     * there is no need, because the connection has just been read. */
    if (redis->connected && redis->unanswered == 0 && !redis->answering &&
        redis_is_stale(redis->fd))
        give_up(redis, REDIS_NO_CONNECTION);
    if (redis->fd < 0 && !open_connection(redis))
        return REDIS_NO_CONNECTION;
    return enqueue(redis, command, asker) ? 0 : REDIS_NO_CONNECTION;
}

/* Bytes that the socket has no room for wait until it is writable. If Redis has hung up, it may
 * have said why. That is read first, and then the end of the connection. */
void redis_async_flush(struct redis_async *redis)
{
    struct redis_queue *out = &redis->out;
    if (!redis->connected || length(out) == 0)
        return;
    if (redis->sent == 0)
        allow(redis, redis->server->command_ms);
    redis->sent = redis->unanswered;
    while (length(out) > 0) {
        ssize_t n = write(redis->fd, out->buffer.bytes + out->gone, length(out));
        if (n < 0 && (errno == EAGAIN || errno == EPIPE || errno == ECONNRESET))
            break;
        if (n < 0 && errno != EINTR) {
            give_up(redis, REDIS_NO_CONNECTION);
            return;
        }
        drop_front(out, n > 0 ? (size_t)n : 0);
    }
    redis->events = length(out) > 0 ? POLLIN | POLLOUT : POLLIN;
}

/* ---- replies in ---------------------------------------------------------------------------- */

/* The first asker in the queue gets the reply. The reply to AUTH has no asker. */
static void deliver(struct redis_async *redis, redisReply *reply)
{
    void *asker = take_asker(redis);
    redis_log_error(redis->server, reply, asker == NULL);
    redis->sent--;
    allow(redis, redis->server->command_ms);
    /* Bytes behind the last reply that was asked for must not become the reply to the next
     * command. And behind an error Redis may hang up, so nobody asks there any more. */
    bool is_error = reply->type == REDIS_REPLY_ERROR && asker && redis->unanswered == 0;
    if ((redis->sent == 0 && redis_has_more(redis->reader)) || is_error)
        give_up(redis, REDIS_NO_CONNECTION);
    if (asker) {
        redis->answering = true;
        redis->answered(asker, reply, 0);
        redis->answering = false;
    }
    freeReplyObject(reply);
}

/* Reads as long as a command that was sent has no reply, for a fair turn at most. A loop that
 * served all its other clients between two reads would fall behind Redis when thousands ask at
 * once. But each reply may become a page that computes for long, so the turn is also over after
 * some milliseconds. An asker that gets a reply may ask again, which may end this connection and
 * open another: then nobody waits for the rest. */
static void read_replies(struct redis_async *redis)
{
    enum { READS = 64, TURN_MS = 10 };
    int64_t turn_ends = clock_now_ms() + TURN_MS;
    char bytes[64 * 1024];
    unsigned opened = redis->opened;
    for (int reads = 0; reads < READS; reads++) {
        ssize_t n = redis->paused ? 0 : read(redis->fd, bytes, sizeof(bytes));
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        bool was_asked =
            redis->paused || (n > 0 && redis->sent > 0 &&
                              redisReaderFeed(redis->reader, bytes, (size_t)n) == REDIS_OK);
        redis->paused = false;
        for (;;) {
            redisReply *reply;
            if (!was_asked || !redis_next_reply(redis->server, redis->reader, &reply)) {
                give_up(redis, REDIS_NO_CONNECTION);
                return;
            }
            if (!reply)
                break;
            deliver(redis, reply);
            if (redis->fd < 0 || redis->opened != opened)
                return;
            redis->paused = redis->sent > 0 && clock_now_ms() >= turn_ends;
            if (redis->paused)
                return;
        }
        if (redis->sent == 0)
            return;
    }
}

/* The events may be those of a connection that was replaced in this round. Then they mean nothing
 * for the new one, except that it may seem connected too early, and write(2) gives EAGAIN. */
void redis_async_ready(struct redis_async *redis, unsigned events)
{
    if (redis->fd >= 0 && !redis->connected && events & POLLOUT)
        finish_connecting(redis);
    else if (redis->connected && events & ~(unsigned)POLLOUT)
        read_replies(redis);
}

/* ---- time ---------------------------------------------------------------------------------- */

int64_t redis_async_deadline(const struct redis_async *redis)
{
    bool waits = redis->fd >= 0 && !(redis->connected && redis->sent == 0);
    return redis->paused ? 0 : waits ? redis->deadline : INT64_MAX;
}

void redis_async_expire(struct redis_async *redis)
{
    if (clock_now_ms() > redis_async_deadline(redis)) { /* what it waits for may be there */
        struct pollfd made = {.fd = redis->fd, .events = POLLOUT};
        if (redis->connected)
            read_replies(redis);
        else if (poll(&made, 1, 0) > 0)
            finish_connecting(redis);
    }
    if (!redis->paused && clock_now_ms() > redis_async_deadline(redis))
        give_up(redis, redis->connected ? REDIS_NO_REPLY : REDIS_NO_CONNECTION);
}
