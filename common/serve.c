#include "serve.h"

#include "clock.h"
#include "net.h"
#include "polite.h"
#include "stop.h"

/* Asks the commands of one request, one after the other, and waits for each reply. */
static void ask_redis(struct conn *conn, struct redis_pool *pool)
{
    int why;
    struct redis *redis = redis_pool_acquire(pool, conn->worker->options->timeout_ms, &why);
    do {
        redisReply *reply = NULL;
        if (stop_time_is_over())
            why = REDIS_NO_CONNECTION;
        else if (redis)
            reply = redis_ask(redis, &conn->app.ask, &why);
        conn_reply(conn, reply, why);
        freeReplyObject(reply);
    } while (conn->state == CONN_ASKING);
    if (redis)
        redis_pool_release(pool, redis);
}

void serve_client(struct worker *worker, int client, struct redis_pool *pool)
{
    struct conn conn;
    conn_open(&conn, client, worker); /* owns client now */
    conn.dont_wait = worker->before_waiting != NULL;
    struct pace pace = {0};

    /* If conn_advance() makes no progress, a tick went by. That is the time to check the clock,
     * whether other clients wait, and whether the server has to stop. */
    while (conn_advance(&conn) != CONN_DONE) {
        if (conn.state == CONN_ASKING)
            ask_redis(&conn, pool);
        else if (conn.dont_wait && worker->before_waiting) { /* nothing more has come */
            conn.dont_wait = false;
            worker->before_waiting();
        } else if (clock_now_ms() >= conn.deadline)
            conn_expire(&conn);
        else if (polite_is_too_slow(worker, &pace, conn_taken_by_client(&conn)))
            conn_reset(&conn);
        else if (stop_time_is_over())
            conn_drop(&conn);
        else if (conn_can_make_way(&conn) && polite_must_make_way(worker, conn_is_new(&conn)) &&
                 !conn_has_input(&conn))
            break;
    }
    conn_close(&conn);
}

void serve_unavailable(struct worker *worker, int client)
{
    struct conn conn;
    int64_t limit = clock_now_ms() + TICK_MS;
    conn_open(&conn, client, worker);
    conn.refuse_with = 503;
    while (conn_advance(&conn) != CONN_DONE && clock_now_ms() < limit)
        ;
    conn_close(&conn);
}

int serve_waiting_clients(const struct worker *worker)
{
    return stop_requested() ? 1 : net_accept_queue_length(worker->listener);
}
