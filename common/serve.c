#include "serve.h"

#include "clock.h"
#include "memory.h"
#include "net.h"
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

enum { CROWD = 100 }; /* so many clients at once come from one program that opens them all */

/* A program that opens a crowd of connections needs a while before it has sent something on each. A
 * browser's spare connection may be silent for ever. (A worker that claims waiting clients promises
 * to make way for them, see chapter 2. So only a worker that can make way asks.) */
static bool makes_way(const struct conn *conn)
{
    if (!conn_can_make_way(conn))
        return false;
    if (memory_is_short())
        return !conn_has_input(conn);
    int waiting = conn->worker->claim_waiting_clients(conn->worker);
    bool slow_to_speak = waiting > CROWD && conn_is_new(conn);
    return waiting > 0 && !slow_to_speak && !conn_has_input(conn);
}

/* How long the worker has waited for its client to take responses, and what the client had taken of
 * them when that began. */
struct pace {
    int64_t last; /* clock_now_ms() of the last look; 0: no response was being sent then */
    int64_t ms;
    uint64_t taken;
};

static uint64_t taken_by_client(const struct conn *conn)
{
    uint64_t in_flight = (uint64_t)conn_in_flight(conn);
    return conn->taken > in_flight ? conn->taken - in_flight : 0;
}

/* A client that reads a byte now and then makes progress, so its deadline never passes. While other
 * clients wait, it has to take LEAST_RATE of its responses, on average over --timeout. The time
 * between two responses, when the next request has come already, does not count: there is nothing
 * to take. */
static bool is_too_slow(const struct conn *conn, struct pace *pace)
{
    enum { LEAST_RATE = 8 * 1024 }; /* bytes a second */
    enum { LONGEST = 2 * TICK_MS }; /* between two looks, if the server itself was not held up */
    bool writes = (conn->state == CONN_WRITING && conn->answering) || conn->state == CONN_LINGERING;
    int64_t now = clock_now_ms(), passed = now - pace->last;
    if (pace->last != 0)
        pace->ms += passed < LONGEST ? passed : LONGEST;
    else if (pace->ms == 0 && writes)
        pace->taken = taken_by_client(conn);
    pace->last = writes ? now : 0;
    if (!writes || pace->ms < conn->worker->options->timeout_ms)
        return false;
    uint64_t taken = taken_by_client(conn);
    bool slow = (taken - pace->taken) * 1000 < (uint64_t)pace->ms * LEAST_RATE;
    *pace = (struct pace){.last = pace->last, .taken = taken};
    return slow && conn->worker->claim_waiting_clients(conn->worker) > 0;
}

/* Nothing more has come, so the worker is about to wait for its client. */
static void call_before_waiting(struct conn *conn)
{
    conn->dont_wait = false;
    conn->worker->before_waiting();
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
        else if (conn.dont_wait)
            call_before_waiting(&conn);
        else if (clock_now_ms() >= conn.deadline)
            conn_expire(&conn);
        else if (is_too_slow(&conn, &pace))
            conn_reset(&conn);
        else if (stop_time_is_over())
            conn_drop(&conn);
        else if (makes_way(&conn))
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
