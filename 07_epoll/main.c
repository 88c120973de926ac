/* Chapter 7: epoll. One process, and a kernel that remembers what it waits for.
 *
 * The model: chapter 6's loop. But instead of showing the kernel every
 * descriptor in every round, we tell it once what we are interested in;
 * epoll_wait() brings back only those with something to say, each with the
 * pointer we left with it: no table, and nothing to search.
 *
 * What blocks whom: as in chapter 6: nobody waits for a client or for Redis,
 * all wait for whoever computes, and for the disk.
 *
 * What it costs: a round costs what happened in it, however many are idle. A
 * change of interest is a system call of its own, so there are few: reading is
 * watched from the start and left so, and the kernel hears of a change only
 * when a socket is full, or when a client talks while it has to wait for Redis.
 *
 * Level-triggered: an event comes again until it has been dealt with, so that
 * nobody who gets less than a fair turn in one round is forgotten.
 *
 * epoll(7), epoll_ctl(2), epoll_wait(2), accept4(2), signalfd(2)
 */
#include "board.h"
#include "clock.h"
#include "conn.h"
#include "net.h"
#include "options.h"
#include "process.h"
#include "redis_async.h"
#include "status.h"
#include "stop.h"
#include "waiting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    EVENTS_A_ROUND = 256, /* fetched at once; more wait for the next round */
    ACCEPTS_A_ROUND = 64, /* so that a crowd at the door does not starve those inside */
};

/* A client is a connection, and what the kernel was last told about it. */
struct client {
    struct conn conn;  /* first: a pointer to one is a pointer to the other */
    uint32_t interest; /* EPOLLIN or EPOLLOUT; 0: not watched at all */
};

/* ---- the loop's state: there is one thread, and nobody to share it with -------------------- */

static struct worker worker;
static struct waiting waiting;   /* every client, by what it waits for */
static struct redis_async redis; /* one connection, shared by all clients */
static int epoll;
static int listener; /* -1 once we are stopping */
static int signals;
static bool door_shut; /* no descriptors: the listener is not watched until the tick is over */
static int64_t door_shut_until;

/* ---- what the kernel is told --------------------------------------------------------------- */

/* Tells the kernel what a descriptor is watched for; `before` and `now` may be 0: not at all. The
 * pointer comes back with each event, and says whose it is. */
static bool watch(int fd, uint32_t before, uint32_t now, void *whose)
{
    struct epoll_event event = {.events = now, .data.ptr = whose};
    int operation = !before ? EPOLL_CTL_ADD : !now ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    return before == now || epoll_ctl(epoll, operation, fd, &event) == 0;
}

/* A client's interest follows its state, lazily: while Redis is asked it stays
 * as it was, because mostly nothing will come, and nothing needs to change. */
static void watch_client(struct client *client)
{
    enum conn_state state = client->conn.state;
    if (state == CONN_ASKING || state == CONN_DONE)
        return;
    uint32_t wanted = state == CONN_WRITING ? EPOLLOUT : EPOLLIN;
    if (watch(client->conn.fd, client->interest, wanted, client))
        client->interest = wanted;
    else
        conn_give_up(&client->conn); /* ENOMEM: nobody would ever hear of it again */
}

/* While Redis is asked for a client it talks, or is gone, or has the room it was
 * watched for: the kernel would say so in every round. Not watching it for any of
 * that would not be enough, since errors are always reported. */
static void mute(struct client *client)
{
    watch(client->conn.fd, client->interest, 0, client);
    client->interest = 0;
}

/* redis_async.c opens and closes Redis' connection (closing ends the watching
 * too). What it wants to be told of is looked up before the loop sleeps. */
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

/* If there is no memory to open it, it stays shut for another tick. */
static void watch_door(bool open)
{
    if (listener < 0 || watch(listener, open ? 0 : EPOLLIN, open ? EPOLLIN : 0, &listener))
        door_shut = !open;
    door_shut_until = net_now() + TICK_MS;
}

/* ---- clients ------------------------------------------------------------------------------- */

/* Sees a client into the next round: whoever has a question asks it, and
 * everybody queues up for what they wait for. */
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

/* Something has happened to a client: it goes on as far as it can without waiting. */
static void go_on(struct conn *client)
{
    conn_advance(client);
    settle(client);
}

/* Redis has answered a client; redis_async.c calls this. */
static void answered(void *client, const redisReply *reply, int why)
{
    conn_reply(client, reply, why);
    go_on(client);
}

/* Lets in whoever stands at the door. Out of descriptors or memory it is shut
 * for a tick, because epoll_wait() would report the same client at once. */
static void accept_clients(void)
{
    for (int i = 0; i < ACCEPTS_A_ROUND; i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct client *client = fd >= 0 ? malloc(sizeof(*client)) : NULL;
        if (!client) {
            if (net_out_of_resources(errno))
                watch_door(false);
            if (fd >= 0)
                close(fd);
            return;
        }
        client->interest = 0;
        conn_open(&client->conn, fd, &worker); /* owns fd now */
        waiting_add(&waiting, &client->conn);  /* owns client now */
        go_on(&client->conn);                  /* what it wants to say has often come already */
    }
}

/* ---- the loop ------------------------------------------------------------------------------ */

/* Whoever comes is let in; nobody has to make way but for the end. */
static int how_many_wait(const struct worker *unused)
{
    (void)unused;
    return waiting.stop_asked != 0;
}

/* The first signal: nobody new comes in, and those inside are served. */
static void begin_to_stop(void)
{
    net_take_signal(signals);
    waiting_stop(&waiting);
    close(listener); /* which ends the watching too */
    listener = -1;
}

/* The pointer says whose event it is. A client that has ended in this round is
 * still there, at CONN_DONE, where go_on() finds nothing to do. */
static void take_event(const struct epoll_event *event)
{
    void *whose = event->data.ptr;
    if (whose == &listener)
        accept_clients();
    else if (whose == &signals)
        begin_to_stop();
    else if (whose == &redis)
        redis_async_ready(&redis, event->events);
    else if (((struct client *)whose)->conn.state == CONN_ASKING)
        mute(whose);
    else
        go_on(whose);
}

/* Until the next deadline of anybody; for ever if there is none. */
static int time_out(void)
{
    int ms = net_earlier(waiting_timeout(&waiting), redis_async_timeout(&redis));
    return door_shut ? net_earlier(ms, TICK_MS) : ms;
}

static void one_round(void)
{
    struct epoll_event events[EVENTS_A_ROUND];
    watch_redis();
    int count = epoll_wait(epoll, events, EVENTS_A_ROUND, time_out());
    for (int i = 0; i < count; i++) /* -1: EINTR, and nothing has happened */
        take_event(&events[i]);

    if (door_shut && net_now() >= door_shut_until)
        watch_door(true);
    waiting_expire(&waiting, go_on);
    redis_async_expire(&redis, waiting_redis_is_overdue(&waiting));
    redis_async_flush(&redis); /* what all of them asked, in one write */
    waiting_bury(&waiting);    /* the events have named them until here */
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;

    net_options(&options, argc, argv, "epoll", 0);
    app_start(&options);
    redis_start(&server, &options);
    struct board *board = board_open(1);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!board || epoll < 0)
        net_die(options.name, "%s", strerror(errno));
    status_start(&options, board, STATUS_EVENT_LOOP, "one process, epoll_wait()");
    signals = net_open_signals(&options);
    listener = net_listen(&options, false);
    if (!watch(signals, 0, EPOLLIN, &signals) || !watch(listener, 0, EPOLLIN, &listener))
        net_die(options.name, "epoll_ctl: %s", strerror(errno));
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
