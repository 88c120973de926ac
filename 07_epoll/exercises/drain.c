/* Exercise 07/drain: an epoll loop that does not know how to stop.
 *
 * SIGTERM ends it where it stands, and with it everybody who was being served.
 *
 * Here: let it drain. From the signal on nobody new comes in; whoever has asked
 * is answered; whoever is silent is not waited for; then it ends, with status 0.
 * A handler could interrupt the loop anywhere. As an event it comes when the
 * loop has time for it: signalfd(2). net.h and waiting.h have what else is
 * needed.
 *
 * signalfd(2), sigprocmask(2), epoll_ctl(2)
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
static int epoll, listener;

static bool watch(int fd, uint32_t before, uint32_t now, void *whose)
{
    struct epoll_event event = {.events = now, .data.ptr = whose};
    int operation = !before ? EPOLL_CTL_ADD : !now ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    return before == now || epoll_ctl(epoll, operation, fd, &event) == 0;
}

/* While Redis is asked, the interest stays as it was: mostly nothing will come. */
static void watch_client(struct client *client)
{
    enum conn_state state = client->conn.state;
    if (state == CONN_ASKING || state == CONN_DONE)
        return;
    uint32_t wanted = state == CONN_WRITING ? EPOLLOUT : EPOLLIN;
    if (watch(client->conn.fd, client->interest, wanted, client))
        client->interest = wanted;
    else
        conn_give_up(&client->conn);
}

/* One who talks, or leaves, while Redis is asked for it is not listened to until then. */
static void mute(struct client *client)
{
    watch(client->conn.fd, client->interest, 0, client);
    client->interest = 0;
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
    watch_client((struct client *)client);
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

static void take_event(const struct epoll_event *event)
{
    void *whose = event->data.ptr;
    if (whose == &listener)
        accept_clients();
    else if (whose == &redis)
        redis_async_ready(&redis, event->events);
    else if (((struct client *)whose)->conn.state == CONN_ASKING)
        mute(whose);
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

/* Whoever has been answered is kept, for the next request. */
static int how_many_wait(const struct worker *unused)
{
    (void)unused;
    return 0;
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;

    net_options(&options, argc, argv, "drain", 0);
    app_start(&options);
    redis_start(&server, &options);
    struct board *board = board_open(1);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!board || epoll < 0)
        net_die(options.name, "%s", strerror(errno));
    status_start(&options, board, STATUS_EVENT_LOOP, "one process, epoll_wait()");
    listener = net_listen(&options, false);
    watch(listener, 0, EPOLLIN, &listener);
    redis_async_start(&redis, &server, answered);
    worker = (struct worker){
        .options = &options,
        .slot = board_claim(board, getpid()),
        .how_many_wait = how_many_wait,
    };
    net_ready(&options, listener);

    for (;;)
        one_round();
}
