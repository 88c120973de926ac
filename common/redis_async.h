/* redis_async: Redis for event loops, which must not wait (chapters 6 and 7).
 * All clients share one connection. Commands go out in the order in which they
 * were asked, and Redis answers in that order, so a queue of askers is all that
 * is needed to know whose reply comes next.
 *
 *  - The queue is ours. hiredis has an asynchronous half with one of its own, but
 *    in 0.14 that half goes on with what malloc(3) did not give it.
 *  - How the descriptor is watched is the chapter's business.
 *  - Commands only pile up in a buffer; redis_async_flush(), once a round, sends
 *    those of all clients in one write(2).
 *  - There is one path for a lost Redis, however it was lost: the connection is
 *    closed and forgotten, then everybody who still waited is told that there is
 *    no reply. A client that asks again from within that call asks on a new
 *    connection.
 *  - If there is a password, AUTH is the first command on a connection, and leaves
 *    in one write with those behind it. If Redis refuses it, the connection is lost.
 *  - Without memory for a command it is not asked. Nobody else notices.
 *  - A Unix socket whose queue is full says EAGAIN to connect(2). redis_connect()
 *    tries again while it may; here that is a 503, and the next client that asks
 *    tries again.
 */
#ifndef REDIS_ASYNC_H
#define REDIS_ASYNC_H

#include "redis.h"
#include "text.h"

struct redis_async {
    const struct redis_server *server;
    /* A reply for `asker`; NULL: there is none, and why. The reply is freed on return. */
    void (*answered)(void *asker, const redisReply *, int why);
    unsigned opened; /* connections so far: a new one may have the old one's descriptor */
    bool closed;     /* for good */

    /* One connection. All zero but for fd, if there is none. */
    int fd;       /* to be watched; -1: none */
    short events; /* what for: POLLIN, POLLOUT */
    bool connected;
    int64_t connect_deadline; /* while it is not */

    struct buffer out; /* commands, */
    size_t written;    /* and how many bytes of them the socket has taken */
    redisReader *reader;
    struct redis_limits limits;

    void **askers; /* a queue in an array with `room` places. NULL: AUTH, whose reply is nobody's */
    int first;     /* the place of the one whose reply is next */
    int unanswered; /* commands whose reply has not come yet, */
    int sent;       /* and how many of them redis_async_flush() has handed over */
    int room;
    bool answering; /* answered() is being called with a reply */
    int64_t heard;  /* clock_now_ms() of the last reply, or of the first command after a pause */
};

/* Sets one up; opens nothing yet. */
void redis_async_start(struct redis_async *, const struct redis_server *,
                       void (*answered)(void *asker, const redisReply *, int why));

/* Asks for `asker` (not NULL), connecting first if need be. Returns 0: answered() will be called,
 * once and later; an error of Redis is a reply, and is told. Otherwise 503: there will be no reply,
 * nothing was asked. */
int redis_async_ask(struct redis_async *, const struct redis_command *, void *asker);

/* Sends what has been asked. To be called before the loop sleeps. */
void redis_async_flush(struct redis_async *);

/* What poll(2) or epoll_wait(2) found on the descriptor (their bits are the same): errors count as
 * something to read. Reads as long as replies are there, 1 MiB at most. */
void redis_async_ready(struct redis_async *, unsigned events);

/* Milliseconds until connecting takes too long, or Redis has been silent for too long; -1 if
 * nobody waits for either. */
int redis_async_timeout(const struct redis_async *);

/* To be called in each round. Gives the connection up where it has to, and answers everybody who
 * waits on it:
 *  - 503 if it has not been made in time;
 *  - 504 if Redis owes a reply and has been silent for command_ms, or if the oldest command is
 *    overdue, which the loop knows best. A last look comes first: replies may be there. */
void redis_async_expire(struct redis_async *, bool oldest_is_overdue);

/* Closes the connection for good: everybody who waits is answered, and nobody can ask again. */
void redis_async_close(struct redis_async *);

#endif
