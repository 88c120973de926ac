/* redis_pool: connections to Redis that several threads share (chapter 4). A
 * process or a thread that shares with no other has a pool of one connection.
 */
#ifndef REDIS_POOL_H
#define REDIS_POOL_H

#include "redis.h"

#include <pthread.h>

struct redis_pool {
    pthread_mutex_t lock;
    struct redis *idle;        /* used last first: that connection is the likeliest to be alive */
    struct redis_waiter *line; /* utlist's DL, in order of arrival */
    struct redis *all;
    int size;
};

/* Makes `size` connections, and opens none yet. A child must not use a pool that was made before
 * the fork. Returns false if there is no memory. */
bool redis_pool_open(struct redis_pool *, const struct redis_server *, int size);
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
