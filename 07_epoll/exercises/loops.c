/* Exercise 07/loops: one loop, however many cores there are.
 *
 * --workers is read, and nothing comes of it.
 *
 * Here: as many loops as --workers says, each with a listener of its own for
 * the same port (SO_REUSEPORT), an epoll of its own, and a connection to Redis
 * of its own. They may be processes or threads. What is static below belongs to
 * one loop: a process has its own copy, a thread has not.
 *
 * All listeners are open before the banner is printed. SIGTERM ends all loops,
 * and then the program, with status 0.
 *
 * socket(7) SO_REUSEPORT, fork(2), epoll(7), prctl(2) PR_SET_PDEATHSIG
 */
#include "board.h"
#include "conn.h"
#include "net.h"
#include "redis_async.h"
#include "status.h"
#include "waiting.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
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

/* A listener for the address of --bind, at this port; 0: a free one. IPv4 alone, to be short. */
static int listen_on(const struct options *options, int port)
{
    const int on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || inet_pton(AF_INET, options->bind, &address.sin_addr) != 1 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(fd, options->backlog) < 0)
        net_die(options->name, "cannot listen on %s port %d: %s", options->bind, port,
                strerror(errno));
    return fd;
}

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

static int how_many_wait(const struct worker *unused)
{
    (void)unused;
    return waiting.stop_asked != 0;
}

/* One loop, from its first round to its last. */
static void serve(const struct options *options, const struct redis_server *server,
                  struct board *board)
{
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!watch(signals, 0, EPOLLIN, &signals) || !watch(listener, 0, EPOLLIN, &listener))
        net_die(options->name, "epoll: %s", strerror(errno));
    redis_async_start(&redis, server, answered);
    worker = (struct worker){
        .options = options,
        .slot = board_claim(board, getpid()),
        .how_many_wait = how_many_wait,
    };
    while (!waiting_is_over(&waiting))
        one_round();
    redis_async_close(&redis);
    waiting_close(&waiting);
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;

    net_options(&options, argc, argv, "loops", 2);
    app_start(&options);
    redis_start(&server, &options);
    struct board *board = board_open(options.workers);
    if (!board)
        net_die(options.name, "%s", strerror(errno));
    status_start(&options, board, STATUS_EVENT_LOOP, "a loop");
    signals = net_open_signals(&options);
    listener = listen_on(&options, options.port);
    net_ready(&options, listener);

    serve(&options, &server, board);
    net_report(&options, board_requests(board), board_connections(board));
    return 0;
}
