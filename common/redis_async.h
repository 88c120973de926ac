/* redis_async: Redis for event loops, which must not block (chapters 6 and 7).
 * All clients share one connection. Redis answers commands in the order in which
 * they were sent, so a queue of askers is enough to know whose reply comes next.
 *
 *  - The queue is ours. hiredis has an asynchronous half with its own queue, but
 *    in 0.14 that half does not check what malloc(3) returns.
 *  - The chapter decides how to watch the descriptor.
 *  - Commands are collected in a buffer. redis_async_flush(), called once a
 *    round, sends the commands of all clients in one write(2).
 *  - A connection is always lost in the same way, whatever the reason. It is
 *    closed and forgotten, and then every asker that still waits is told that
 *    there is no reply. One that asks again within that call opens a new
 *    connection.
 *  - If there is a password, AUTH is the first command on a connection, and leaves
 *    in one write with those behind it. If Redis refuses it, the connection is lost.
 *  - A command for which there is no memory is not asked. The others go on.
 *  - If the queue of Redis' Unix socket is full, redis_connect() waits for a
 *    place. Here connect(2) fails with EAGAIN at once. That is a 503, and the
 *    next command tries again.
 */
#ifndef REDIS_ASYNC_H
#define REDIS_ASYNC_H

#include "redis.h"
#include "text.h"

struct redis_async {
    const struct redis_server *server;
    /* Gets the reply for `asker`, or NULL and why there is none. The reply is freed on return. */
    void (*answered)(void *asker, const redisReply *, int why);
    unsigned opened; /* connections so far: a new one may have the same descriptor */
    bool closed;     /* for good */

    /* The connection. If there is none, fd is -1 and the rest is zero. */
    int fd;       /* to be watched; -1: no connection */
    short events; /* to watch it for: POLLIN, POLLOUT */
    bool connected;
    int64_t connect_deadline; /* while it is not */

    struct buffer out; /* commands, */
    size_t written;    /* and how many bytes of them the socket has taken */
    redisReader *reader;
    struct redis_limits limits;

    void **askers;  /* a queue in an array with `room` places. NULL stands for AUTH */
    int first;      /* the place of the asker whose reply is next */
    int unanswered; /* commands whose reply has not come yet, */
    int sent;       /* and how many of them redis_async_flush() has handed over */
    int room;
    bool answering; /* answered() is being called with a reply */
    int64_t heard;  /* clock_now_ms() of the last reply, or of the first command after a pause */
};

/* Sets up the object. Opens nothing yet. */
void redis_async_start(struct redis_async *, const struct redis_server *,
                       void (*answered)(void *asker, const redisReply *, int why));

/* Asks for `asker` (not NULL), and connects first if need be. Returns 0 if answered() will be
 * called, once and later. An error from Redis is a reply, too. Returns REDIS_NO_CONNECTION if
 * nothing was asked, so that there will be no reply. */
int redis_async_ask(struct redis_async *, const struct redis_command *, void *asker);

/* Sends the commands that were asked. To be called before the loop sleeps. */
void redis_async_flush(struct redis_async *);

/* Handles what poll(2) or epoll_wait(2) found on the descriptor. (Their bits are the same.) An
 * error counts as something to read. Reads as long as replies are there, 4 MiB at most. */
void redis_async_ready(struct redis_async *, unsigned events);

/* Milliseconds until connecting, or the next reply, has taken too long; -1 if neither is
 * awaited. */
int redis_async_timeout(const struct redis_async *);

/* To be called in each round. If Redis is late, gives up the connection and answers every asker
 * that waits:
 *  - 503 if the connection was not made in time;
 *  - 504 if Redis owes a reply and has completed none for command_ms. It reads once more first,
 *    because replies may be there. An asker may wait longer, as long as those in front of it get
 *    their replies. */
void redis_async_expire(struct redis_async *);

/* Closes the connection for good. Every asker that waits is answered, and none can ask again. */
void redis_async_close(struct redis_async *);

#endif
