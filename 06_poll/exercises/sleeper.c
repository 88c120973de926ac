/* Exercise 06/sleeper: a poll() loop that sleeps in a second place.
 *
 * It is chapter 6's loop, cut down to what is needed here. No client is waited
 * for. But when a page needs something of Redis, ask_redis() waits for the
 * reply, and whoever wants something else meanwhile waits with it.
 *
 * Here: let poll() wait for Redis, too. redis_async.h does the asking; the loop
 * has to watch its descriptor, hand on what has happened to it, keep its
 * deadlines, and send once a round what was asked.
 *
 * poll(2), and common/redis_async.h
 */
#include "board.h"
#include "conn.h"
#include "net.h"
#include "redis_async.h"
#include "redis_pool.h"
#include "status.h"
#include "waiting.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_CLIENTS = 1000 };
enum { LISTENER, SIGNALS, CLIENTS }; /* places in fds; clients from CLIENTS on */

static struct worker worker;
static struct waiting waiting;  /* every client, by what it waits for */
static struct redis_pool redis; /* of one connection */
static int listener;            /* -1 once we are stopping */
static int signals;

static struct pollfd fds[CLIENTS + MOST_CLIENTS];
static struct conn *whose[CLIENTS + MOST_CLIENTS];
static int count;

/* All the questions of one page, one after the other. */
static void ask_redis(struct conn *client)
{
    int why;
    struct redis *connection = redis_pool_acquire(&redis, worker.options->timeout_ms, &why);
    while (client->state == CONN_ASKING) {
        redisReply *reply = connection ? redis_ask(connection, &client->app.ask, &why) : NULL;
        conn_reply(client, reply, why);
        freeReplyObject(reply);
    }
    if (connection)
        redis_pool_release(&redis, connection);
}

static void go_on(struct conn *client)
{
    conn_advance(client);
    if (client->state == CONN_ASKING) {
        ask_redis(client);
        conn_advance(client);
    }
    waiting_update(&waiting, client);
}

static void accept_client(void)
{
    int fd = waiting.count < MOST_CLIENTS
                 ? accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)
                 : -1;
    struct conn *client = fd >= 0 ? malloc(sizeof(*client)) : NULL;
    if (!client) {
        if (fd >= 0)
            close(fd);
        return;
    }
    conn_open(client, fd, &worker); /* owns fd now */
    waiting_add(&waiting, client);  /* owns client now */
    go_on(client);
}

static void add(int fd, short events, struct conn *client)
{
    fds[count] = (struct pollfd){.fd = fd, .events = events};
    whose[count++] = client;
}

static void collect(void)
{
    count = 0;
    add(waiting.count < MOST_CLIENTS ? listener : -1, POLLIN, NULL);
    add(signals, POLLIN, NULL);
    for (enum conn_state state = CONN_FRESH; state < CONN_DONE; state++)
        for (struct conn *client = waiting.queues[state]; client; client = client->next)
            add(client->fd, state == CONN_WRITING ? POLLOUT : POLLIN, client);
}

static void begin_to_stop(void)
{
    net_take_signal(signals);
    waiting_stop(&waiting);
    close(listener);
    listener = -1;
}

static void one_round(void)
{
    collect();
    if (poll(fds, (nfds_t)count, waiting_timeout(&waiting)) < 0)
        return;

    for (int i = CLIENTS; i < count; i++)
        if (fds[i].revents)
            go_on(whose[i]);
    if (fds[LISTENER].revents)
        accept_client();
    if (fds[SIGNALS].revents)
        begin_to_stop();

    waiting_expire(&waiting, go_on);
    waiting_bury(&waiting); /* the arrays have named them until here */
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

    net_options(&options, argc, argv, "sleeper", 0);
    app_start(&options);
    redis_start(&server, &options);
    struct board *board = board_open(1);
    if (!board || !redis_pool_open(&redis, &server, 1))
        net_die(options.name, "out of memory");
    status_start(&options, board, STATUS_EVENT_LOOP, "one process, poll()");
    signals = net_open_signals(&options);
    listener = net_listen(&options, false);
    worker = (struct worker){
        .options = &options,
        .slot = board_claim(board, getpid()),
        .how_many_wait = how_many_wait,
    };
    net_ready(&options, listener);

    while (!waiting_is_over(&waiting))
        one_round();

    redis_pool_close(&redis);
    waiting_close(&waiting);
    net_report(&options, board_requests(board), board_connections(board));
    return 0;
}
