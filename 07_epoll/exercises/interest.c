/* Exercise 07/interest: an epoll loop that tells the kernel too much.
 *
 * It works, and it is simple: whenever something has happened to a client, it
 * is taken off the kernel's list, and put back with what it waits for now. Each
 * of these is a system call, and most of them undo each other.
 *
 * Here: another policy in rewatch(), and wherever it takes you, so that a
 * request on a kept connection costs 1.2 epoll_ctl() at most; five for a
 * thousand can be had. What a client may do while Redis is asked for it (talk, leave,
 * reset) must not keep the loop from sleeping.
 *
 * epoll_ctl(2), epoll(7)
 */
#include "board.h"
#include "conn.h"
#include "net.h"
#include "redis_async.h"
#include "status.h"
#include "waiting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS_A_ROUND = 256, ACCEPTS_A_ROUND = 64 };

struct client {
    struct conn conn;  /* first: a pointer to one is a pointer to the other */
    uint32_t interest; /* what the kernel was last told; 0: it is not watched */
};

static struct worker worker;
static struct waiting waiting;   /* every client, by what it waits for */
static struct redis_async redis; /* one connection, shared by all clients */
static int epoll, listener, signals;

/* Tells the kernel what a descriptor is watched for; `before` and `now` may be 0: not at all. */
static bool watch(int fd, uint32_t before, uint32_t now, void *whose)
{
    struct epoll_event event = {.events = now, .data.ptr = whose};
    int operation = !before ? EPOLL_CTL_ADD : !now ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    return before == now || epoll_ctl(epoll, operation, fd, &event) == 0;
}

/* A client that waits for Redis is not listened to meanwhile. */
static void rewatch(struct client *client)
{
    enum conn_state state = client->conn.state;
    watch(client->conn.fd, client->interest, 0, client);
    client->interest = state == CONN_ASKING || state == CONN_DONE ? 0
                       : state == CONN_WRITING                    ? EPOLLOUT
                                                                  : EPOLLIN;
    if (!watch(client->conn.fd, 0, client->interest, client))
        conn_give_up(&client->conn); /* nobody would ever hear of it again */
}

static void watch_redis(void)
{
    static unsigned seen;
    static uint32_t interest;
    if (redis.opened != seen)
        interest = 0;
    seen = redis.opened;
    if (redis.fd >= 0 && watch(redis.fd, interest, (uint32_t)redis.events, &redis))
        interest = (uint32_t)redis.events;
}

static void settle(struct conn *client)
{
    int why;
    if (client->state == CONN_ASKING &&
        (why = redis_async_ask(&redis, &client->app.ask, client)) != 0) {
        conn_reply(client, NULL, why);
        conn_advance(client);
    }
    rewatch((struct client *)client);
    waiting_update(&waiting, client);
}

static void go_on(struct conn *client)
{
    conn_advance(client);
    settle(client);
}

static void answered(void *client, const redisReply *reply, int why)
{
    conn_reply(client, reply, why);
    go_on(client);
}

static void accept_clients(void)
{
    for (int i = 0; i < ACCEPTS_A_ROUND; i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct client *client = fd >= 0 ? calloc(1, sizeof(*client)) : NULL;
        if (!client) {
            if (fd >= 0)
                close(fd);
            return;
        }
        conn_open(&client->conn, fd, &worker); /* owns fd now */
        waiting_add(&waiting, &client->conn);  /* owns client now */
        go_on(&client->conn);
    }
}

static void begin_to_stop(void)
{
    net_take_signal(signals);
    waiting_stop(&waiting);
    close(listener); /* which ends the watching too */
    listener = -1;
}

static void take_event(const struct epoll_event *event)
{
    void *whose = event->data.ptr;
    if (whose == &listener)
        accept_clients();
    else if (whose == &signals)
        begin_to_stop();
    else if (whose == &redis)
        redis_async_ready(&redis, event->events);
    else
        go_on(whose);
}

static void one_round(void)
{
    struct epoll_event events[EVENTS_A_ROUND];
    watch_redis();
    int ms = net_earlier(waiting_timeout(&waiting), redis_async_timeout(&redis));
    int count = epoll_wait(epoll, events, EVENTS_A_ROUND, ms);
    for (int i = 0; i < count; i++)
        take_event(&events[i]);

    waiting_expire(&waiting, go_on);
    redis_async_expire(&redis, waiting_redis_is_overdue(&waiting));
    redis_async_flush(&redis);
    waiting_bury(&waiting); /* the events have named them until here */
}

static int how_many_wait(const struct worker *unused)
{
    (void)unused;
    return waiting.stop_asked != 0;
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;

    net_options(&options, argc, argv, "interest", 0);
    app_start(&options);
    redis_start(&server, &options);
    struct board *board = board_open(1);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!board || epoll < 0)
        net_die(options.name, "%s", strerror(errno));
    status_start(&options, board, STATUS_EVENT_LOOP, "one process, epoll_wait()");
    signals = net_open_signals(&options);
    listener = net_listen(&options, false);
    watch(signals, 0, EPOLLIN, &signals);
    watch(listener, 0, EPOLLIN, &listener);
    redis_async_start(&redis, &server, answered);
    worker = (struct worker){
        .options = &options,
        .slot = board_claim(board, getpid()),
        .how_many_wait = how_many_wait,
    };
    net_ready(&options, listener);

    while (!waiting_is_over(&waiting))
        one_round();

    redis_async_close(&redis);
    waiting_close(&waiting);
    net_report(&options, board_requests(board), board_connections(board));
    return 0;
}
