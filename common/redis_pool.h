/* redis_pool: Redis for servers that may block. Connecting, asking, connecting
 * again, and connections that several threads share (chapter 4). A process or a
 * thread that shares with no other has a pool of one connection.
 *
 *  - A connection is opened when it is first needed, and kept.
 *  - A lost connection is opened again for the next request. The command whose
 *    reply was lost is never sent a second time: Redis may have executed it.
 */
#ifndef REDIS_POOL_H
#define REDIS_POOL_H

#include "redis.h"

#include <pthread.h>

/* One connection. Only the thread that took it from its pool may use it. */
struct redis {
    int fd; /* -1: not open */
    redisReader *reader;
    const struct redis_server *server;
    int why;            /* why any other connection would fail, too; 0: not known to */
    struct redis *next; /* in its pool */
};

/* Asks, and waits for the reply, which the caller frees (freeReplyObject()). Connects first if need
 * be. An error from Redis is a reply, and is logged, also one that Redis has sent before it hung
 * up. Returns NULL if there is no reply. Then *why says why, and the connection is closed. */
redisReply *redis_ask(struct redis *, const struct redis_command *, int *why);

struct redis_pool {
    pthread_mutex_t lock;
    struct redis *idle;        /* used last first: that connection is the likeliest to be alive */
    struct redis_waiter *line; /* utlist's DL, in order of arrival */
    struct redis *all;
    int size;
};

/* Makes `size` connections, and opens none yet. A child must not use a pool that was made before
 * the fork. Without memory the program ends, or the child that calls this. */
void redis_pool_open(struct redis_pool *, const struct redis_server *, int size);

/* Closes them all. To be called when all have been given back, and nobody waits for one. */
void redis_pool_close(struct redis_pool *);

/* Takes a connection for one request. If all are taken, it waits in line, first come, first served,
 * for `most_ms` at most. If Redis cannot be reached any more, or does not answer in time, every
 * thread in line is told at once, because each would only find out the same, one after the other. A
 * connection that merely ended says nothing about Redis, and fails its own request only. Returns
 * NULL if there is none, and *why says why. If Redis has closed the connection meanwhile, that is
 * noticed here, before a command could be lost on it. */
struct redis *redis_pool_acquire(struct redis_pool *, int most_ms, int *why);

/* Gives a connection back. The first thread in line gets it, if there is one. */
void redis_pool_release(struct redis_pool *, struct redis *);

#endif
