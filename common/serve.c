#include "serve.h"

/* One request's questions, one after the other, each waiting for its reply. */
static void ask_redis(struct conn *conn, struct redis_pool *pool)
{
    struct redis *redis = redis_take(pool);
    do {
        int why = REDIS_NO_CONNECTION;
        redisReply *reply = redis ? redis_ask(redis, &conn->app.ask, &why) : NULL;
        conn_reply(conn, reply, why);
        freeReplyObject(reply);
    } while (conn->state == CONN_ASKING);
    if (redis)
        redis_give(pool, redis);
}

void serve_client(struct worker *worker, int client, struct redis_pool *pool)
{
    struct conn conn;
    conn_open(&conn, client, worker); /* owns client now */

    /* A state that comes back without progress means that a tick went by: the time to look at the
     * clock, and at who else is waiting. */
    while (conn_advance(&conn) != CONN_DONE) {
        if (conn.state == CONN_ASKING)
            ask_redis(&conn, pool);
        else if (net_now() >= conn.deadline)
            conn_expire(&conn);
        else if (conn_is_spare(&conn) && worker->somebody_waits(worker))
            break;
    }
    conn_close(&conn);
}

void serve_busy(struct worker *worker, int client)
{
    struct conn conn;
    int64_t limit = net_now() + TICK_MS;
    conn_open(&conn, client, worker);
    conn.refuse_with = 503;
    while (conn_advance(&conn) != CONN_DONE && net_now() < limit)
        ;
    conn_close(&conn);
}

bool serve_somebody_waits(const struct worker *worker)
{
    return net_stopping() || net_somebody_waits(worker->listener);
}
