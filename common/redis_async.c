#include "redis_async.h"

#include "clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the queue of askers ------------------------------------------------------------------- */

/* Makes room for one more at the end. Free places in front of the first asker are used again before
 * the array grows, but only if they are more than half of it. Only then moving the rest is worth
 * it. */
static bool make_room(struct redis_async *redis)
{
    enum { AT_FIRST = 64 };
    if (redis->first + redis->unanswered < redis->room)
        return true;
    if (redis->first > redis->room / 2) {
        memmove(redis->askers, redis->askers + redis->first,
                (size_t)redis->unanswered * sizeof(*redis->askers));
        redis->first = 0;
        return true;
    }
    int room = redis->room ? 2 * redis->room : AT_FIRST;
    void **askers = realloc(redis->askers, (size_t)room * sizeof(*askers));
    if (!askers)
        return false;
    redis->askers = askers;
    redis->room = room;
    return true;
}

static void *leave_queue(struct redis_async *redis)
{
    void *asker = redis->askers[redis->first];
    redis->unanswered--;
    redis->first = redis->unanswered ? redis->first + 1 : 0;
    return asker;
}

/* ---- a connection's life ------------------------------------------------------------------- */

static void give_up(struct redis_async *redis, int why)
{
    struct redis_async lost = *redis;
    if (lost.fd < 0)
        return;
    close(lost.fd);
    redisReaderFree(lost.reader);
    buffer_free(&lost.out);

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
        void *asker = leave_queue(&lost);
        if (asker)
            redis->answered(asker, NULL, why);
    }
    free(lost.askers);
}

/* Puts a command into the buffer and its asker into the queue. Without memory it does neither. */
static bool enqueue(struct redis_async *redis, const struct redis_command *command, void *asker)
{
    struct redis_command formatted = *command;
    if (!make_room(redis))
        return false;
    if (!command->bytes)
        redis_prepare(&formatted);
    bool has_room = formatted.bytes && buffer_reserve(&redis->out, formatted.len);
    if (has_room) {
        buffer_append(&redis->out, formatted.bytes, formatted.len);
        redis->askers[redis->first + redis->unanswered++] = asker;
    }
    redis->out.failed = false; /* the commands in it are whole */
    if (!command->bytes)
        redisFreeCommand((char *)formatted.bytes);
    return has_room;
}

static bool open_connection(struct redis_async *redis)
{
    const int on = 1;
    int fd = redis->closed ? -1 : redis_connect_nonblocking(redis->server);
    if (fd < 0)
        return false;
    /* A command shall leave while the reply to an earlier one is still on its way (tcp(7); a Unix
     * socket does not know the option, and does not need it). */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    redis->fd = fd;
    redis->events = POLLOUT;
    redis->opened++;
    redis->connect_deadline = clock_now_ms() + redis->server->connect_ms;
    redis->reader = redisReaderCreate();
    if (redis->reader) {
        struct redis_command auth = redis_auth_command(redis->server);
        redis_limit_replies(redis->reader, &redis->limits);
        if (!*redis->server->password || enqueue(redis, &auth, NULL))
            return true;
    }
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
    redis->heard = clock_now_ms();
}

void redis_async_start(struct redis_async *redis, const struct redis_server *server,
                       void (*answered)(void *asker, const redisReply *, int why))
{
    *redis = (struct redis_async){.server = server, .answered = answered, .fd = -1};
}

void redis_async_close(struct redis_async *redis)
{
    redis->closed = true;
    give_up(redis, REDIS_NO_CONNECTION);
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

/* Bytes that the socket has no room for wait until it is writable. */
void redis_async_flush(struct redis_async *redis)
{
    enum { KEPT_BYTES = 64 * 1024 };
    if (!redis->connected || redis->out.len == 0)
        return;
    if (redis->sent == 0)
        redis->heard = clock_now_ms();
    redis->sent = redis->unanswered;
    while (redis->written < redis->out.len) {
        ssize_t n =
            write(redis->fd, redis->out.bytes + redis->written, redis->out.len - redis->written);
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0 && errno != EINTR) {
            give_up(redis, REDIS_NO_CONNECTION);
            return;
        }
        redis->written += n > 0 ? (size_t)n : 0;
    }
    size_t left = redis->out.len - redis->written;
    redis->events = left > 0 ? POLLIN | POLLOUT : POLLIN;

    /* Drops what the socket has taken. The rest moves to the front only if it is the smaller part,
     * so that no byte is moved again and again. */
    if (left >= redis->written)
        return;
    if (left == 0)
        buffer_clear(&redis->out, KEPT_BYTES);
    else
        memmove(redis->out.bytes, redis->out.bytes + redis->written, left);
    redis->out.len = left;
    redis->written = 0;
}

/* ---- replies in ---------------------------------------------------------------------------- */

/* The first asker in the queue gets the reply. The reply to AUTH has no asker. */
static void deliver(struct redis_async *redis, redisReply *reply)
{
    void *asker = leave_queue(redis);
    unsigned opened = redis->opened;
    redis->sent--;
    redis->heard = clock_now_ms();
    /* Bytes behind the last reply that was asked for must not become the reply to the next
     * command. */
    if (redis->sent == 0 && redis_has_more(redis->reader))
        give_up(redis, REDIS_NO_CONNECTION);
    if (reply->type == REDIS_REPLY_ERROR)
        redis_log(redis->server, "says", reply->str, (size_t)reply->len);
    if (asker) {
        redis->answering = true;
        redis->answered(asker, reply, 0);
        redis->answering = false;
    } else {
        int refusal = redis_auth_refusal(reply);
        if (refusal && redis->opened == opened)
            give_up(redis, refusal);
    }
    freeReplyObject(reply);
}

/* Delivers all replies that are whole. An asker that gets one may ask again, which may end this
 * connection and open another. Then nobody waits for the remaining bytes. */
static void deliver_all(struct redis_async *redis)
{
    unsigned opened = redis->opened;
    while (redis->fd >= 0 && redis->opened == opened) {
        void *reply = NULL;
        if (redisReaderGetReply(redis->reader, &reply) != REDIS_OK ||
            (!reply && redis_is_too_large(redis->reader, &redis->limits))) {
            redis_log_nonsense(redis->server, redis->reader, &redis->limits);
            give_up(redis, REDIS_NO_CONNECTION);
            return;
        }
        if (!reply)
            return;
        deliver(redis, reply);
    }
}

/* Reads as long as a command that was sent has no reply, for a fair turn at most. A loop that
 * served all its other clients between two reads would fall behind Redis when thousands ask at
 * once. */
static void read_replies(struct redis_async *redis)
{
    enum { READS = 64 };
    char bytes[64 * 1024];
    unsigned opened = redis->opened;
    for (int reads = 0; reads < READS; reads++) {
        ssize_t n = read(redis->fd, bytes, sizeof(bytes));
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || redis->sent == 0 ||
            redisReaderFeed(redis->reader, bytes, (size_t)n) != REDIS_OK) {
            give_up(redis, REDIS_NO_CONNECTION);
            return;
        }
        deliver_all(redis);
        if (redis->fd < 0 || redis->opened != opened || redis->sent == 0)
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

/* The time of clock_now_ms() at which Redis is late; INT64_MAX if nothing is awaited. */
static int64_t deadline(const struct redis_async *redis)
{
    if (redis->fd < 0 || (redis->connected && redis->sent == 0))
        return INT64_MAX;
    return redis->connected ? redis->heard + redis->server->command_ms : redis->connect_deadline;
}

int redis_async_timeout(const struct redis_async *redis)
{
    int64_t when = deadline(redis), now = clock_now_ms();
    if (when == INT64_MAX)
        return -1;
    return when < now ? 0 : (int)(when - now) + 1;
}

void redis_async_expire(struct redis_async *redis)
{
    if (clock_now_ms() < deadline(redis))
        return;
    if (!redis->connected) {
        struct pollfd last_look = {.fd = redis->fd, .events = POLLOUT};
        if (poll(&last_look, 1, 0) == 1)
            finish_connecting(redis);
        else
            give_up(redis, REDIS_NO_CONNECTION);
        return;
    }
    /* Replies may have come and not been read, because this process was stopped or busy. An asker
     * that gets one may ask again at once, but that is not sent yet. */
    int before = redis->sent;
    unsigned opened = redis->opened;
    read_replies(redis);
    if (redis->opened == opened && redis->sent >= before)
        give_up(redis, REDIS_NO_REPLY);
}
