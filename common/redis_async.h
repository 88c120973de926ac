/* redis_async: Redis for event loops, which must not block (chapters 6 and 7).
 * All clients share one connection. Redis answers commands in the order in which
 * they were sent, so a queue of askers is enough to know whose reply comes next.
 *
 *  - The chapter decides how to watch the descriptor.
 *  - Commands are collected in a buffer. redis_async_flush(), called once a
 *    round, sends the commands of all clients in one write(2).
 *  - A connection is always lost in the same way, whatever the reason. It is
 *    closed and forgotten, and then every asker that still waits gets no reply.
 *    An asker that asks again within that call opens a new one.
 *  - AUTH leaves in one write with the commands behind it. If Redis refuses it, they
 *    get an error.
 *  - A command for which there is no memory is not asked. The others go on.
 *  - If the queue of Redis' Unix socket is full, connect(2) fails with EAGAIN at
 *    once. That is a 503, and the next command tries again.
 */
#ifndef REDIS_ASYNC_H
#define REDIS_ASYNC_H

#include "redis.h"
#include "text.h"

struct redis_async {
    const struct redis_server *server;
    /* Gets the reply for `asker`, or NULL and why there is none. The reply is freed later. */
    void (*answered)(void *asker, const redisReply *, int why);
    unsigned opened; /* connections so far: a new one may have the same descriptor */
    bool closed;     /* for good */

    /* The connection. If there is none, fd is -1 and the rest is zero. */
    int fd;       /* to be watched; -1: no connection */
    short events; /* to watch it for: POLLIN, POLLOUT */
    bool connected;

    struct redis_queue {
        struct buffer buffer;
        size_t gone; /* so many bytes at its beginning have left the queue */
    } out, askers;   /* commands; and pointers to those who asked them. NULL stands for AUTH */
    redisReader *reader;
    int unanswered;   /* commands whose reply has not come yet, */
    int sent;         /* and how many of them redis_async_flush() has handed over */
    bool paused;      /* its turn was over: replies may be in the reader for the next round */
    bool answering;   /* answered() is being called with a reply */
    int64_t deadline; /* clock_now_ms() by which it is connected, or completes its next reply */
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
 * error counts as something to read. Reads as long as replies are there, 4 MiB at most, and
 * delivers them for some milliseconds. redis_async_expire() delivers the rest. */
void redis_async_ready(struct redis_async *, unsigned events);

/* clock_now_ms() when connecting, or the next reply, has taken too long; INT64_MAX if neither is
 * awaited; 0 if replies are to be delivered in the next round. */
int64_t redis_async_deadline(const struct redis_async *);

/* To be called at the end of each round. Delivers replies that have had no turn. If Redis is late,
 * and has sent nothing while the loop was busy or stopped, gives up the connection and answers
 * every asker that waits:
 *  - 503 if the connection was not made in time;
 *  - 504 if Redis owes a reply and has completed none for command_ms. An asker may wait longer, as
 *    long as those in front of it get their replies. */
void redis_async_expire(struct redis_async *);

/* Gives up the connection, and answers every asker that waits. The next one opens another. */
void redis_async_drop(struct redis_async *);

/* Closes the connection for good. Every asker that waits is answered, and none can ask again. */
void redis_async_close(struct redis_async *);

#endif
