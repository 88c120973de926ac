#include "redis_async.h"

#include "net.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

/* Of hiredis' contexts we use, beside its functions, what its README names: `err`, `data`, the
 * hooks in `ev`, and the descriptor. Two uses go beyond that, and say so. They were read in hiredis
 * 0.14.1 and 1.2.0. */

/* hiredis is about to free this context, or has begun to: nothing can be asked on it any more. (One
 * that we free ourselves has been forgotten before.) */
static bool is_dying(const redisAsyncContext *context)
{
    return context->err != 0;
}

/* Has the connection come to its end? The loop will only be told in its next round. Before a
 * command is lost on it we look, as redis_take() does; but not while hiredis calls us back, because
 * then it has just read the connection. */
static bool is_stale(const struct redis_async *redis)
{
    char byte;
    return redis->connected && redis->unanswered == 0 && !redis->answering &&
           (recv(redis->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN);
}

static void set_context(struct redis_async *redis, redisAsyncContext *context)
{
    redis->context = context;
    redis->connected = false;
    redis->unanswered = redis->sent = 0;
    redis->fd = context ? context->c.fd : -1;
    redis->events = 0;
}

/* ---- hiredis' hooks ------------------------------------------------------------------------ */

/* An old context may still be cleaned up when a new one has taken its place, and has no say then.
 */
static void want(redisAsyncContext *context, short events, bool wanted)
{
    struct redis_async *redis = context->data;
    if (redis->context == context)
        redis->events = (short)(wanted ? redis->events | events : redis->events & ~events);
}

static void add_read(void *context)
{
    want(context, POLLIN, true);
}

static void delete_read(void *context)
{
    want(context, POLLIN, false);
}

static void add_write(void *context)
{
    want(context, POLLOUT, true);
}

static void delete_write(void *context)
{
    want(context, POLLOUT, false);
}

static void clean_up(void *context)
{
    want(context, POLLIN | POLLOUT, false);
}

static void install_hooks(redisAsyncContext *context)
{
    context->ev.data = context;
    context->ev.addRead = add_read;
    context->ev.delRead = delete_read;
    context->ev.addWrite = add_write;
    context->ev.delWrite = delete_write;
    context->ev.cleanup = clean_up;
}

/* ---- a connection's life ------------------------------------------------------------------- */

/* Forgetting comes first: freeing calls everybody back with NULL, and whoever asks again then must
 * find no context, not a dying one. */
static void give_up(struct redis_async *redis, int why)
{
    redisAsyncContext *context = redis->context;
    set_context(redis, NULL);
    redis->why = why;
    if (context)
        redisAsyncFree(context);
    redis->why = REDIS_NO_CONNECTION;
}

static void on_connect(const redisAsyncContext *context, int status)
{
    struct redis_async *redis = context->data;
    if (redis->context != context)
        return;
    redis->why = REDIS_NO_CONNECTION;
    if (status == REDIS_OK)
        redis->connected = true;
    else
        set_context(redis, NULL); /* hiredis frees it, and will not call on_disconnect() */
}

/* hiredis frees a context on its own when the connection ends. */
static void on_disconnect(const redisAsyncContext *context, int status)
{
    struct redis_async *redis = context->data;
    (void)status;
    if (redis->context == context)
        set_context(redis, NULL);
}

/* A reply is owed from now on, and with it silence has a limit; and here is one. */
static void await_reply(struct redis_async *redis)
{
    if (redis->unanswered++ == 0)
        redis->heard = net_now();
}

static void hear_reply(struct redis_async *redis)
{
    redis->unanswered--;
    redis->sent--;
    redis->heard = net_now();
}

/* Has hiredis read more than it has handed out? (`pos` and `len` are fields of the public struct
 * redisReader, but not documented.) */
static bool says_more(const redisAsyncContext *context)
{
    return context->c.reader->pos < context->c.reader->len;
}

/* Bytes behind the last reply that anybody waits for must not become the reply to the next command.
 * (hiredis frees the context when this call is over.) */
static void on_reply(redisAsyncContext *context, void *answer, void *asker)
{
    struct redis_async *redis = context->data;
    const redisReply *reply = answer;
    if (reply && reply->type == REDIS_REPLY_ERROR)
        redis_tell(redis->server, reply->str, (size_t)reply->len);
    if (!reply)
        redis_tell_nonsense(redis->server, &context->c, &redis->bounds);
    if (redis->context == context) {
        hear_reply(redis);
        if (reply && redis->unanswered == 0 && says_more(context))
            give_up(redis, REDIS_NO_CONNECTION);
    }
    redis->answering = true;
    redis->answered(asker, reply, redis->why);
    redis->answering = false;
}

/* The reply to AUTH is nobody's. If it is a refusal, hiredis calls those who have asked behind it
 * back with NULL when this call is over: until the next connection, NULL means that. */
static void on_auth(redisAsyncContext *context, void *reply, void *nobody)
{
    struct redis_async *redis = context->data;
    (void)nobody;
    if (redis->context != context)
        return;
    hear_reply(redis);
    bool refused = reply && !redis_admits(redis->server, reply);
    if (refused || (reply && redis->unanswered == 0 && says_more(context)))
        give_up(redis, REDIS_NO_CONNECTION);
    if (refused)
        redis->why = REDIS_NOT_ADMITTED;
}

static bool open_connection(struct redis_async *redis)
{
    const struct redis_server *server = redis->server;
    set_context(redis, NULL);
    if (redis->closed)
        return false;
    redisAsyncContext *context = server->path ? redisAsyncConnectUnix(server->path)
                                              : redisAsyncConnect(server->host, server->port);
    if (!context)
        return false;
    if (context->err) {
        redisAsyncFree(context);
        return false;
    }
    context->data = redis;
    set_context(redis, context);
    redis->opened++;
    redis_bound(context->c.reader, &redis->bounds);
    redis->connect_deadline = net_now() + server->connect_ms;
    install_hooks(context); /* before the callbacks: setting them asks to be told of writability */
    redisAsyncSetConnectCallback(context, on_connect);
    redisAsyncSetDisconnectCallback(context, on_disconnect);
    return true;
}

void redis_async_start(struct redis_async *redis, const struct redis_server *server,
                       void (*answered)(void *asker, const redisReply *, int why))
{
    *redis = (struct redis_async){
        .server = server, .answered = answered, .fd = -1, .why = REDIS_NO_CONNECTION};
}

/* Hands a command to hiredis. False: it will not call back. If the context has an error then, the
 * connection is lost, and everybody's commands with it. */
static bool ask(redisAsyncContext *context, const struct redis_command *command,
                redisCallbackFn *call_back, void *asker)
{
#if HIREDIS_MAJOR < 1
    const redisCallback *last = context->replies.tail;
#endif
    int status =
        command->bytes
            ? redisAsyncFormattedCommand(context, call_back, asker, command->bytes, command->len)
            : redisAsyncCommandArgv(context, call_back, asker, command->count,
                                    (const char **)command->words, command->lens);
#if HIREDIS_MAJOR < 1
    /* Without memory to remember who asks, hiredis 0.14 sends the command all the same, and each
     * reply would go to the next asker. hiredis 1 marks the context instead, and so do we. */
    if (status == REDIS_OK && context->replies.tail == last)
        status = context->err = REDIS_ERR_OOM;
#endif
    return status == REDIS_OK;
}

/* AUTH is the first command of a connection. Without memory for it there is no connection. */
static bool say_password(struct redis_async *redis)
{
    struct redis_command auth = redis_auth(redis->server);
    if (!*redis->server->password)
        return true;
    if (ask(redis->context, &auth, on_auth, NULL))
        await_reply(redis);
    else
        give_up(redis, REDIS_NO_CONNECTION);
    return redis->context != NULL;
}

int redis_async_ask(struct redis_async *redis, const struct redis_command *command, void *asker)
{
    if (redis->context && !is_dying(redis->context) && is_stale(redis))
        give_up(redis, REDIS_NO_CONNECTION);
    bool none = !redis->context || is_dying(redis->context);
    if (none && !(open_connection(redis) && say_password(redis)))
        return REDIS_NO_CONNECTION;
    if (ask(redis->context, command, on_reply, asker)) {
        await_reply(redis);
        return 0;
    }
    if (is_dying(redis->context))
        give_up(redis, REDIS_NO_CONNECTION); /* the command is in its buffer, and goes with it */
    return REDIS_NO_CONNECTION;
}

/* HandleWrite before the connect callback would take the connection for made. */
void redis_async_flush(struct redis_async *redis)
{
    if (redis->context && redis->connected && !is_dying(redis->context)) {
        redis->sent = redis->unanswered;
        redisAsyncHandleWrite(redis->context);
    }
}

/* Reads, and answers. What hiredis cannot answer with yet stays in its buffer, which must not grow
 * without end. */
static void read_some(struct redis_async *redis)
{
    unsigned seen = redis->opened;
    redisAsyncHandleRead(redis->context);
    if (redis->context && redis->opened == seen &&
        redis_exceeds(redis->context->c.reader, &redis->bounds))
        give_up(redis, REDIS_NO_CONNECTION);
}

/* hiredis reads 16 KiB at a time. A loop that served all its other clients between two such reads
 * would fall behind Redis when thousands ask at once. So we read on as long as replies to what was
 * sent are missing and there is something to read, up to a fair turn. */
static void read_replies(struct redis_async *redis)
{
    enum { READS = 64 };
    unsigned opened = redis->opened;
    for (int reads = 0; reads < READS; reads++) {
        int before = redis->sent;
        errno = 0;
        read_some(redis);
        if (!redis->context || redis->opened != opened || redis->sent <= 0 ||
            (redis->sent == before && errno == EAGAIN))
            return;
    }
}

void redis_async_ready(struct redis_async *redis, unsigned events)
{
    unsigned seen = redis->opened;
    /* Made or failed, a connection reports POLLOUT. Anything else was found on the one before it,
     * which somebody has replaced in this round. */
    if (!redis->connected && !(events & POLLOUT))
        return;
    if (redis->context && events & ~(unsigned)POLLOUT) {
        if (redis->unanswered == 0) /* the end, or what nobody asked for: hiredis would abort() */
            give_up(redis, REDIS_NO_CONNECTION);
        else
            read_replies(redis);
    }
    /* Reading may have freed the context, found it dead, or put a new one in its place: look again.
     */
    if (redis->context && events & POLLOUT && redis->opened == seen && !is_dying(redis->context))
        redisAsyncHandleWrite(redis->context);
}

static int64_t deadline(const struct redis_async *redis)
{
    return redis->connected ? redis->heard + redis->server->command_ms : redis->connect_deadline;
}

static bool waits(const struct redis_async *redis)
{
    return redis->context && (!redis->connected || redis->unanswered > 0);
}

int redis_async_timeout(const struct redis_async *redis)
{
    if (!waits(redis))
        return -1;
    int64_t left = deadline(redis) - net_now();
    return left < 0 ? 0 : (int)left + 1;
}

/* Replies may have come and not been read: this process was stopped, or was busy. */
static bool has_answered(struct redis_async *redis)
{
    int before = redis->sent; /* who is answered may ask again at once, but that is not sent yet */
    unsigned opened = redis->opened;
    if (redis->connected && before > 0)
        read_replies(redis);
    return redis->opened != opened || redis->sent < before;
}

void redis_async_expire(struct redis_async *redis, bool oldest_is_overdue)
{
    bool late = waits(redis) && net_now() >= deadline(redis);
    if (late && !redis->connected)
        give_up(redis, REDIS_NO_CONNECTION);
    else if ((late || oldest_is_overdue) && !has_answered(redis))
        give_up(redis, REDIS_NO_REPLY);
}

void redis_async_close(struct redis_async *redis)
{
    redis->closed = true;
    give_up(redis, REDIS_NO_CONNECTION);
}
