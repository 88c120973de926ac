#include "loop.h"

#include "net.h"
#include "options.h"
#include "process.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <utlist.h>

enum {
    ACCEPTS_A_ROUND = 64,
    CLOCK_GRAIN_MS = 10, /* clock_now_ms() is coarse: a loop that slept exactly until a deadline
                            might wake just before it, again and again */
};

/* ---- the queues ---------------------------------------------------------------------------- */

static void add_to_queue(struct loop *loop, struct client *client)
{
    client->queued_as = client->conn.state;
    client->queued_until = client->conn.deadline;
    DL_APPEND(loop->queues[client->queued_as], client);
    loop->count++;
}

static void remove_from_queue(struct loop *loop, struct client *client)
{
    DL_DELETE(loop->queues[client->queued_as], client);
    loop->count--;
}

static void requeue(struct loop *loop, struct client *client)
{
    const struct conn *conn = &client->conn;
    if (loop->moved)
        loop->moved(client); /* may end it */
    if (client->queued_as == conn->state && client->queued_until == conn->deadline)
        return;
    remove_from_queue(loop, client);
    add_to_queue(loop, client);
}

/* ---- clients ------------------------------------------------------------------------------- */

void loop_advance(struct loop *loop, struct client *client)
{
    int why;
    struct conn *conn = &client->conn;
    conn_advance(conn);
    if (conn->state == CONN_ASKING &&
        (why = redis_async_ask(&loop->redis, &conn->app.ask, client)) != 0) {
        conn_reply(conn, NULL, why);
        conn_advance(conn);
    }
    requeue(loop, client);
}

/* redis_async.c calls this with the reply to a client's command, or with NULL and the reason. */
static void on_reply(void *asker, const redisReply *reply, int why)
{
    struct client *client = asker;
    conn_reply(&client->conn, reply, why);
    loop_advance((struct loop *)client->conn.worker, client);
}

bool loop_accepts(const struct loop *loop)
{
    return loop->worker.listener >= 0 && clock_now_ms() >= loop->accept_paused_until;
}

void loop_pause_accepting(struct loop *loop)
{
    loop->accept_paused_until = clock_now_ms() + TICK_MS;
}

void loop_accept(struct loop *loop)
{
    for (int i = 0; i < ACCEPTS_A_ROUND; i++) {
        int fd = accept4(loop->worker.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct client *client = fd >= 0 ? calloc(1, sizeof(*client)) : NULL;
        if (!client) {
            if (net_out_of_resources(errno))
                loop_pause_accepting(loop);
            if (fd >= 0)
                close(fd);
            return;
        }
        conn_open(&client->conn, fd, &loop->worker); /* owns fd now */
        add_to_queue(loop, client);                  /* owns client now */
        loop_advance(loop, client);                  /* its request has often come already */
    }
}

int loop_count_waiting(const struct worker *worker)
{
    return ((const struct loop *)worker)->stop_asked != 0;
}

/* ---- time ---------------------------------------------------------------------------------- */

int loop_timeout(const struct loop *loop)
{
    int64_t next = redis_async_deadline(&loop->redis), now = clock_now_ms();
    for (int state = 0; state < CONN_STATES; state++) {
        const struct client *first = loop->queues[state];
        if (state != CONN_ASKING && first && first->conn.deadline < next)
            next = first->conn.deadline;
    }
    if ((loop->stop_asked || now < loop->accept_paused_until) && now + TICK_MS < next)
        next = now + TICK_MS;
    return next == INT64_MAX ? -1 : next < now ? 0 : (int)(next - now) + CLOCK_GRAIN_MS;
}

/* The server stops: whoever owes no response has had a tick to send another request. */
static void give_up_silent(struct loop *loop)
{
    struct client *client, *next;
    for (enum conn_state state = 0; state < CONN_DONE; state++)
        DL_FOREACH_SAFE (loop->queues[state], client, next)
            if (conn_owes_nothing(&client->conn)) {
                conn_drop(&client->conn);
                requeue(loop, client);
            }
}

static void free_done(struct loop *loop)
{
    struct client *client;
    while ((client = loop->queues[CONN_DONE])) {
        remove_from_queue(loop, client);
        conn_close(&client->conn);
        free(client);
    }
}

void loop_end_round(struct loop *loop)
{
    struct client *first;
    for (enum conn_state state = 0; state < CONN_DONE; state++)
        while (state != CONN_ASKING && (first = loop->queues[state]) &&
               first->conn.deadline <= clock_now_ms()) {
            conn_expire(&first->conn);
            loop_advance(loop, first);
        }
    if (loop->stop_asked && clock_now_ms() - loop->stop_asked >= TICK_MS)
        give_up_silent(loop);
    redis_async_expire(&loop->redis);
    redis_async_flush(&loop->redis);
    free_done(loop); /* last, because an event that was already fetched may name one until here */
}

/* ---- the beginning and the end -------------------------------------------------------------- */

void loop_start(struct loop *loop, const struct redis_server *server)
{
    loop->worker.slot->is_loop = true;
    redis_async_start(&loop->redis, server, on_reply);
}

void loop_stop(struct loop *loop)
{
    stop_read_signalfd(loop->signals);
    loop->stop_asked = clock_now_ms();
    close(loop->worker.listener); /* this also ends the watching */
    loop->worker.listener = -1;
}

bool loop_is_over(const struct loop *loop)
{
    bool asks = loop->queues[CONN_ASKING] != NULL;
    int ms = STOP_MS + (asks ? loop->worker.options->timeout_ms / REDIS_PART : 0);
    return loop->stop_asked && (loop->count == 0 || clock_now_ms() - loop->stop_asked >= ms);
}

void loop_close(struct loop *loop)
{
    redis_async_close(&loop->redis); /* whoever asked it is answered, and asks no more */
    struct client *client;
    for (enum conn_state state = 0; state < CONN_DONE; state++)
        while ((client = loop->queues[state])) {
            conn_drop(&client->conn);
            requeue(loop, client);
        }
    free_done(loop);
    close(loop->signals);
}
