#include "redis_pool.h"

#include "clock.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

/* A thread in line. It lives on that thread's stack, and is read and written with the lock held. */
struct redis_waiter {
    pthread_cond_t turn; /* signalled when it has left the line */
    struct redis *redis; /* the connection that it got, or */
    int why;             /* the reason why it gets none */
    struct redis_waiter *prev, *next;
};

bool redis_pool_open(struct redis_pool *pool, const struct redis_server *server, int size)
{
    *pool = (struct redis_pool){.size = size};
    pool->all = calloc((size_t)size, sizeof(*pool->all));
    if (!pool->all)
        return false;
    for (int i = 0; i < size; i++) {
        pool->all[i].server = server;
        pool->all[i].fd = -1;
        LL_PREPEND(pool->idle, &pool->all[i]);
    }
    pthread_mutex_init(&pool->lock, NULL);
    return true;
}

void redis_pool_close(struct redis_pool *pool)
{
    for (int i = 0; i < pool->size; i++)
        redis_close(&pool->all[i]);
    pthread_mutex_destroy(&pool->lock);
    free(pool->all);
}

/* Joins the line at its end, and waits to be handed a connection. With the lock held. */
static struct redis *wait_in_line(struct redis_pool *pool, int most_ms, int *why)
{
    struct timespec deadline = clock_deadline(most_ms);
    struct redis_waiter self = {.turn = PTHREAD_COND_INITIALIZER};
    int error = 0;
    DL_APPEND(pool->line, &self);
    while (!self.redis && !self.why && error != ETIMEDOUT)
        error = pthread_cond_clockwait(&self.turn, &pool->lock, CLOCK_MONOTONIC, &deadline);
    if (!self.redis && !self.why) {
        DL_DELETE(pool->line, &self);
        self.why = REDIS_NO_CONNECTION;
    }
    pthread_cond_destroy(&self.turn);
    *why = self.why;
    return self.redis;
}

/* Sends the first in line away, with a connection or with the reason why there is none. With the
 * lock held. */
static void serve_first(struct redis_pool *pool, struct redis *redis, int why)
{
    struct redis_waiter *first = pool->line;
    DL_DELETE(pool->line, first);
    first->redis = redis;
    first->why = why;
    pthread_cond_signal(&first->turn);
}

/* A connection is idle only while nobody is in line: a newcomer cannot overtake. */
struct redis *redis_pool_acquire(struct redis_pool *pool, int most_ms, int *why)
{
    *why = 0;
    pthread_mutex_lock(&pool->lock);
    struct redis *redis = pool->idle;
    if (redis)
        LL_DELETE(pool->idle, redis);
    else
        redis = wait_in_line(pool, most_ms, why);
    pthread_mutex_unlock(&pool->lock);

    if (redis)
        redis->why = 0;
    if (redis && redis->fd >= 0 && redis_is_stale(redis))
        redis_close(redis);
    return redis;
}

void redis_pool_release(struct redis_pool *pool, struct redis *redis)
{
    int why = redis->why; /* as soon as the lock is free, it is somebody else's */
    pthread_mutex_lock(&pool->lock);
    while (why && pool->line)
        serve_first(pool, NULL, why);
    if (pool->line)
        serve_first(pool, redis, 0);
    else
        LL_PREPEND(pool->idle, redis);
    pthread_mutex_unlock(&pool->lock);
}
