/* redis_pool: connections to Redis that several threads share (chapter 4). A pool of
 * one serves a process or a thread that shares with nobody.
 */
#ifndef REDIS_POOL_H
#define REDIS_POOL_H

#include "redis.h"

#include <pthread.h>

struct redis_pool {
    pthread_mutex_t lock;
    struct redis *idle; /* the one used last first: its connection is the likeliest to be alive */
    struct redis_waiter *line; /* utlist's DL, in the order in which they came */
    struct redis *all;
    int size;
};

/* Opens nothing yet. A child must not use a pool made before the fork. False: no memory. */
bool redis_pool_open(struct redis_pool *, const struct redis_server *, int size);
void redis_pool_close(struct redis_pool *);

/* Takes a connection for one request. If all are taken it waits in line, first come, first served,
 * for `most_ms` at most. If Redis cannot be reached any more, or does not answer in time, everybody
 * in line is told so at once: each would only find out the same, one after the other. That a
 * connection has ended says nothing about Redis, and concerns its own request only. NULL: none, and
 * *why says why. A connection that Redis has closed meanwhile is noticed here, before a first
 * command could be lost on it. */
struct redis *redis_pool_acquire(struct redis_pool *, int most_ms, int *why);

/* Gives it back: to the first in line, if somebody is. */
void redis_pool_release(struct redis_pool *, struct redis *);

#endif
