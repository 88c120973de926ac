/* Chapter 7: epoll. One process, and a kernel that remembers what it waits for.
 *
 * The model: chapter 6's loop. But chapter 6 hands every descriptor to the
 * kernel in every round. Here the kernel is told once what we want to hear about,
 * and keeps the list. epoll_wait() returns an event for each descriptor that is
 * ready, and with it the pointer that we gave to epoll_ctl(). So there is no
 * table of descriptors, and no search.
 *
 * What blocks whom: as in chapter 6. No client waits for another client's
 * network, or for another client's replies from Redis. All of them wait while
 * a page computes, and while the disk is slow.
 *
 * What it costs: the work of a round depends on how many clients are ready, and
 * not on how many are idle. Each change of interest is a system call of its own,
 * so this program makes few.
 *
 * Level-triggered: the kernel reports an event again until it has been dealt
 * with. So a client that has had its fair turn, and has more to do, is not
 * forgotten.
 *
 * epoll(7), epoll_ctl(2), epoll_wait(2), accept4(2), signalfd(2)
 */
#include "board.h"
#include "clock.h"
#include "conn.h"
#include "net.h"
#include "process.h"
#include "redis_async.h"
#include "start.h"
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
    ACCEPTS_A_ROUND = 64, /* so that a burst of new clients does not starve the others */
};

/* A client is a connection, and what the kernel was last told about it. */
struct client {
    struct conn conn;  /* first: a pointer to one is a pointer to the other */
    uint32_t interest; /* EPOLLIN or EPOLLOUT; 0: not watched at all */
};

/* ---- the loop's state: one thread uses it, so it needs no lock ------------------------------ */

static struct worker worker;
static struct waiting waiting;   /* every client, in the queue of its state */
static struct redis_async redis; /* one connection, which all clients share */
static int epoll;
static int listener; /* -1 once the server is stopping */
static int signals;
static bool accept_paused; /* no descriptors: the listener is not watched until the tick is over */
static int64_t accept_paused_until;

/* ---- what the kernel is told --------------------------------------------------------------- */

/* Changes what the kernel watches a descriptor for, from `before` to `now`. 0 means: not watched.
 * The pointer comes back with each event, and says whose it is. */
static bool set_interest(int fd, uint32_t before, uint32_t now, void *whose)
{
    struct epoll_event event = {.events = now, .data.ptr = whose};
    int operation = !before ? EPOLL_CTL_ADD : !now ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    return before == now || epoll_ctl(epoll, operation, fd, &event) == 0;
}

/* A client's interest follows its state. While the client waits for Redis, its interest stays as
 * it was. Most clients send nothing meanwhile, and then there is nothing to change. */
static void watch_client(struct client *client)
{
    enum conn_state state = client->conn.state;
    if (state == CONN_ASKING || state == CONN_DONE)
        return;
    uint32_t wanted = state == CONN_WRITING ? EPOLLOUT : EPOLLIN;
    if (set_interest(client->conn.fd, client->interest, wanted, client))
        client->interest = wanted;
    else
        conn_drop(&client->conn); /* ENOMEM: without events it would be forgotten */
}

/* A client that waits for Redis has sent something, has left, or has room again. The kernel would
 * report this in every round, so the client is taken off the list. It is not enough to leave it
 * there with no events, because the kernel always reports errors. */
static void unwatch_client(struct client *client)
{
    set_interest(client->conn.fd, client->interest, 0, client);
    client->interest = 0;
}

/* redis_async.c opens and closes Redis' connection, and sets the events that it waits for. Before
 * the loop sleeps, this tells the kernel what has changed. (A closed connection is not watched.) */
static void watch_redis(void)
{
    static unsigned seen;
    static uint32_t interest;
    if (redis.opened != seen)
        interest = 0;
    seen = redis.opened;
    if (redis.fd >= 0 && set_interest(redis.fd, interest, (uint32_t)redis.events, &redis))
        interest = (uint32_t)redis.events;
}

/* If there is no memory to watch the listener again, the next attempt is a tick later. */
static void watch_listener(bool open)
{
    if (listener < 0 || set_interest(listener, open ? 0 : EPOLLIN, open ? EPOLLIN : 0, &listener))
        accept_paused = !open;
    accept_paused_until = clock_now_ms() + TICK_MS;
}

/* ---- clients ------------------------------------------------------------------------------- */

/* The command of a client in CONN_ASKING goes into a buffer for Redis, which is sent at the end of
 * the round. The client joins the queue of its state at once, whatever that state is. */
static void queue_client(struct conn *client)
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

/* Something has happened on a connection: the client goes on as far as it can without waiting. */
static void advance_client(struct conn *client)
{
    conn_advance(client);
    queue_client(client);
}

/* redis_async.c calls this with the reply to a client's command, or with NULL and the reason. */
static void on_reply(void *client, const redisReply *reply, int why)
{
    conn_reply(client, reply, why);
    advance_client(client);
}

/* Accepts the clients in the accept queue. If descriptors or memory run out, the loop accepts no
 * client for a tick, because epoll_wait() would report the same client again at once. */
static void accept_clients(void)
{
    for (int i = 0; i < ACCEPTS_A_ROUND; i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct client *client = fd >= 0 ? malloc(sizeof(*client)) : NULL;
        if (!client) {
            if (net_out_of_resources(errno))
                watch_listener(false);
            if (fd >= 0)
                close(fd);
            return;
        }
        client->interest = 0;
        conn_open(&client->conn, fd, &worker); /* owns fd now */
        waiting_add(&waiting, &client->conn);  /* owns client now */
        advance_client(&client->conn);         /* its request has often come already */
    }
}

/* ---- the loop ------------------------------------------------------------------------------ */

/* In a loop no client has to make way for another, until the server stops. Then all have to. */
static int claim_waiting_clients(const struct worker *unused)
{
    (void)unused;
    return waiting.stop_asked != 0;
}

/* After the first signal no new client is accepted. The connected ones are still served. */
static void stop_accepting(void)
{
    stop_read_signalfd(signals);
    waiting_stop(&waiting);
    close(listener); /* this also ends the watching */
    listener = -1;
}

/* The pointer says whose event it is. A client that has ended in this round is
 * not freed yet. It is at CONN_DONE, where advance_client() finds nothing to do. */
static void handle_event(const struct epoll_event *event)
{
    void *whose = event->data.ptr;
    if (whose == &listener)
        accept_clients();
    else if (whose == &signals)
        stop_accepting();
    else if (whose == &redis)
        redis_async_ready(&redis, event->events);
    else if (((struct client *)whose)->conn.state == CONN_ASKING)
        unwatch_client(whose);
    else
        advance_client(whose);
}

/* Milliseconds until the next deadline of all; -1 means for ever, because there is none. */
static int next_timeout(void)
{
    int ms = clock_earlier_timeout(waiting_timeout(&waiting), redis_async_timeout(&redis));
    return accept_paused ? clock_earlier_timeout(ms, TICK_MS) : ms;
}

static void run_once(void)
{
    struct epoll_event events[EVENTS_A_ROUND];
    watch_redis();
    int count = epoll_wait(epoll, events, EVENTS_A_ROUND, next_timeout());
    for (int i = 0; i < count; i++) /* -1 is EINTR: there are no events */
        handle_event(&events[i]);

    if (accept_paused && clock_now_ms() >= accept_paused_until)
        watch_listener(true);
    waiting_expire(&waiting, advance_client);
    redis_async_expire(&redis);
    redis_async_flush(&redis);   /* the commands of all clients, in one write */
    waiting_free_done(&waiting); /* until here an event could still name them */
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;

    options_parse(&options, argc, argv, "epoll", 0);
    struct board *board =
        start_server(&options, &server, 1, STATUS_EVENT_LOOP, "one process, epoll_wait()");
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0)
        process_die(options.name, "cannot start: %s", strerror(errno));
    signals = stop_open_signalfd(&options);
    listener = net_listen(&options, false);
    if (!set_interest(signals, 0, EPOLLIN, &signals) ||
        !set_interest(listener, 0, EPOLLIN, &listener))
        process_die(options.name, "cannot start: epoll_ctl: %s", strerror(errno));
    redis_async_start(&redis, &server, on_reply);
    worker = (struct worker){
        .options = &options,
        .slot = board_claim(board, getpid()),
        .claim_waiting_clients = claim_waiting_clients,
    };
    net_announce(&options, listener);

    while (!waiting_is_over(&waiting))
        run_once();

    redis_async_close(&redis);
    waiting_close(&waiting);
    process_report(&options, board_requests(board), board_connections(board));
    return 0;
}
