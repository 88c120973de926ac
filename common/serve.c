#include "serve.h"

#include "net.h"
#include "process.h"

#include <poll.h>

enum {
    CROWD = 100,   /* more clients at once than this come from one program that opens them all, */
    NEW_MS = 2000, /* and may need so long to say something on each */
    FIRST_LOOK_MS = 2, /* for a client's last acknowledgement; then twice as long, up to a tick */
};

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

/* Must this connection, which is silent and owes nothing, make way for a client that waits? */
static bool must_make_way(const struct conn *conn)
{
    const struct worker *worker = conn->worker;
    int64_t left = conn->deadline - clock_now_ms();
    bool is_new =
        conn->state == CONN_FRESH && left > worker->options->timeout_ms / FRESH_PART - NEW_MS;
    if (is_new && worker->board->waiting > CROWD && !stop_requested())
        return false; /* a connection that can make way takes the request to do so */
    int waiting = worker->count_waiting(worker);
    return waiting > 0 && !(is_new && waiting > CROWD);
}

void serve_client(struct worker *worker, int client, struct redis_pool *pool)
{
    struct conn conn;
    conn_open(&conn, client, worker); /* owns client now */
    int pause_ms = FIRST_LOOK_MS;

    /* If conn_advance() makes no progress, a tick went by. That is the time to check the clock,
     * whether other clients wait, and whether the server has to stop. */
    while (conn_advance(&conn) != CONN_DONE) {
        if (conn.state == CONN_ASKING)
            ask_redis(&conn, pool);
        else if (conn.silent && conn_owes_nothing(&conn) && must_make_way(&conn))
            break;
        else if (clock_now_ms() >= conn.deadline)
            conn_expire(&conn);
        else if (stop_time_is_over())
            conn_drop(&conn);
        else if (conn.ended) { /* its acknowledgements are awaited, and no call waits for them */
            poll(NULL, 0, pause_ms);
            pause_ms = pause_ms < TICK_MS / 2 ? 2 * pause_ms : TICK_MS;
        }
    }
    conn_close(&conn);
}

void serve_unavailable(struct worker *worker, int client)
{
    struct conn conn;
    int64_t limit = clock_now_ms() + TICK_MS;
    conn_open(&conn, client, worker);
    conn.unavailable = true;
    while (conn_advance(&conn) != CONN_DONE && clock_now_ms() < limit)
        if (conn.ended)
            poll(NULL, 0, FIRST_LOOK_MS);
    conn_close(&conn);
}

int serve_waiting_in_queue(const struct worker *worker)
{
    if (stop_requested())
        return 1;
    int length = net_accept_queue_length(worker->listener);
    return length > 0 && board_has_free_worker(worker->board) ? 0 : length;
}

int serve_waiting_on_board(const struct worker *worker)
{
    if (stop_requested())
        return 1;
    /* a look without an exchange is cheaper, and finds 0 nearly always */
    return worker->board->waiting ? atomic_exchange(&worker->board->waiting, 0) : 0;
}
