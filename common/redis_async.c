#include "redis_async.h"

#include "clock.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
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

static void join_queue(struct redis_async *redis, void *asker)
{
    redis->askers[redis->first + redis->unanswered] = asker;
    redis->unanswered++;
}

static void *leave_queue(struct redis_async *redis)
{
    void *asker = redis->askers[redis->first];
    redis->unanswered--;
    redis->first = redis->unanswered ? redis->first + 1 : 0;
    return asker;
}

/* ---- a connection's life ------------------------------------------------------------------- */

static void forget_connection(struct redis_async *redis)
{
    *redis = (struct redis_async){
        .server = redis->server,
        .answered = redis->answered,
        .opened = redis->opened,
        .closed = redis->closed,
        .fd = -1,
    };
}

/* Forgets the connection before it tells any asker. An asker that is told may ask again at once. It
 * must find no connection then, not a dying one. */
static void give_up(struct redis_async *redis, int why)
{
    struct redis_async lost = *redis;
    if (lost.fd < 0)
        return;
    close(lost.fd);
    redisReaderFree(lost.reader);
    buffer_free(&lost.out);
    forget_connection(redis);
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
        join_queue(redis, asker);
    }
    redis->out.failed = false; /* the commands in it are whole */
    if (!command->bytes)
        redisFreeCommand((char *)formatted.bytes);
    return has_room;
}

/* AUTH is the first command of a connection. Without memory for it there is no connection. */
static bool say_password(struct redis_async *redis)
{
    struct redis_command auth = redis_auth_command(redis->server);
    if (!*redis->server->password || enqueue(redis, &auth, NULL))
        return true;
    give_up(redis, REDIS_NO_CONNECTION);
    return false;
}

/* TCP_NODELAY: a command shall leave while the reply to an earlier one is still on its way (tcp(7);
 * a Unix socket does not know the option, and does not need it). */
static bool open_connection(struct redis_async *redis)
{
    const int on = 1;
    int fd = redis->closed ? -1 : redis_connect_nonblocking(redis->server);
    redisReader *reader = fd >= 0 ? redisReaderCreate() : NULL;
    if (!reader) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    redis->fd = fd;
    redis->events = POLLOUT;
    redis->opened++;
    redis->connect_deadline = clock_now_ms() + redis->server->connect_ms;
    redis->reader = reader;
    redis_limit_replies(reader, &redis->limits);
    return say_password(redis);
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

/* Has the connection ended? The loop will only be told in its next round. So it is checked here
 * before a command is lost on it, as in redis_pool_acquire(). While a reply is being delivered
 * there is no need, because the connection has just been read. */
static bool is_stale(const struct redis_async *redis)
{
    return redis->connected && redis->unanswered == 0 && !redis->answering &&
           redis_is_stale(redis->fd);
}

int redis_async_ask(struct redis_async *redis, const struct redis_command *command, void *asker)
{
    if (is_stale(redis))
        give_up(redis, REDIS_NO_CONNECTION);
    if (redis->fd < 0 && !open_connection(redis))
        return REDIS_NO_CONNECTION;
    return enqueue(redis, command, asker) ? 0 : REDIS_NO_CONNECTION;
}

/* Drops the bytes that the socket has taken. The rest moves to the front, but only if it is the
 * smaller part of all. */
static void drop_written(struct redis_async *redis)
{
    enum { KEPT_BYTES = 64 * 1024 };
    size_t left = redis->out.len - redis->written;
    if (left == 0)
        buffer_clear(&redis->out, KEPT_BYTES);
    else if (left < redis->written)
        memmove(redis->out.bytes, redis->out.bytes + redis->written, left);
    else
        return;
    redis->out.len = left;
    redis->written = 0;
}

/* Bytes that the socket has no room for wait until it is writable. */
void redis_async_flush(struct redis_async *redis)
{
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
    drop_written(redis);
    redis->events = redis->out.len > 0 ? POLLIN | POLLOUT : POLLIN;
}

/* ---- replies in ---------------------------------------------------------------------------- */

static void end_nonsense(struct redis_async *redis)
{
    redis_log_nonsense(redis->server, redis->reader, &redis->limits);
    give_up(redis, REDIS_NO_CONNECTION);
}

static void answer(struct redis_async *redis, void *asker, const redisReply *reply)
{
    redis_log_error(redis->server, reply);
    redis->answering = true;
    redis->answered(asker, reply, 0);
    redis->answering = false;
}

/* The first asker in the queue gets the reply. The reply to AUTH has no asker. Bytes behind the
 * last reply that was asked for must not become the reply to the next command. */
static void deliver(struct redis_async *redis, redisReply *reply)
{
    void *asker = leave_queue(redis);
    unsigned opened = redis->opened;
    redis->sent--;
    redis->heard = clock_now_ms();
    if (redis->sent == 0 && redis_has_more(redis->reader))
        give_up(redis, REDIS_NO_CONNECTION);
    int refusal = asker ? 0 : redis_auth_refusal(redis->server, reply);
    if (asker)
        answer(redis, asker, reply);
    else if (refusal && redis->opened == opened)
        give_up(redis, refusal);
    freeReplyObject(reply);
}

/* Delivers all replies that are whole. An asker that gets one may ask again, which may end this
 * connection and open another. Then nobody waits for the remaining bytes. */
static void deliver_all(struct redis_async *redis)
{
    unsigned opened = redis->opened;
    void *reply;
    do {
        if (redisReaderGetReply(redis->reader, &reply) != REDIS_OK) {
            end_nonsense(redis);
            return;
        }
        if (reply)
            deliver(redis, reply);
        if (redis->fd < 0 || redis->opened != opened)
            return;
    } while (reply);
    if (redis_is_too_large(redis->reader, &redis->limits))
        end_nonsense(redis);
}

/* Returns false if there is nothing more to read on this connection now. */
static bool read_once(struct redis_async *redis)
{
    char bytes[64 * 1024];
    unsigned opened = redis->opened;
    ssize_t n = read(redis->fd, bytes, sizeof(bytes));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (n <= 0 || redis->sent == 0 || redisReaderFeed(redis->reader, bytes, (size_t)n) != REDIS_OK)
        give_up(redis, REDIS_NO_CONNECTION);
    else
        deliver_all(redis);
    return redis->fd >= 0 && redis->opened == opened;
}

/* Reads as long as a command that was sent has no reply, for a fair turn at most. A loop that
 * served all its other clients between two reads would fall behind Redis when thousands ask at
 * once. */
static void read_replies(struct redis_async *redis)
{
    enum { READS = 64 };
    for (int reads = 0; reads < READS; reads++)
        if (!read_once(redis) || redis->sent == 0)
            return;
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

static int64_t deadline(const struct redis_async *redis)
{
    return redis->connected ? redis->heard + redis->server->command_ms : redis->connect_deadline;
}

static bool waits(const struct redis_async *redis)
{
    return redis->fd >= 0 && (!redis->connected || redis->sent > 0);
}

int redis_async_timeout(const struct redis_async *redis)
{
    if (!waits(redis))
        return -1;
    int64_t left = deadline(redis) - clock_now_ms();
    return left < 0 ? 0 : (int)left + 1;
}

/* Replies may have come and not been read, because this process was stopped or busy. */
static bool has_answered(struct redis_async *redis)
{
    int before = redis->sent; /* an asker may ask again at once, but that is not sent yet */
    unsigned opened = redis->opened;
    if (redis->connected && before > 0)
        read_replies(redis);
    return redis->opened != opened || redis->sent < before;
}

void redis_async_expire(struct redis_async *redis)
{
    bool late = waits(redis) && clock_now_ms() >= deadline(redis);
    struct pollfd last_look = {.fd = redis->fd, .events = POLLOUT};
    if (late && !redis->connected && poll(&last_look, 1, 0) == 1)
        finish_connecting(redis);
    else if (late && !redis->connected)
        give_up(redis, REDIS_NO_CONNECTION);
    else if (late && !has_answered(redis))
        give_up(redis, REDIS_NO_REPLY);
}
