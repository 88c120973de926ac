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
#include "app.h"
#include "loop.h"
#include "net.h"
#include "process.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS_A_ROUND = 256 }; /* fetched at once; more wait for the next round */

static struct loop loop; /* every client, in the queue of its state */
static int epoll;
static uint32_t listener_interest; /* what the kernel was last told about the listener */

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
 * it was. Most clients send nothing meanwhile, and then there is nothing to change. One that has
 * sent its FIN stays readable for ever, so it is not watched: only the clock ends its connection.
 */
static void watch_client(struct client *client)
{
    const struct conn *conn = &client->conn;
    if (conn->state == CONN_ASKING || conn->state == CONN_DONE)
        return;
    uint32_t wanted = conn->state == CONN_WRITING ? EPOLLOUT : conn->ended ? 0 : EPOLLIN;
    if (set_interest(conn->fd, client->interest, wanted, client))
        client->interest = wanted;
    else
        conn_drop(&client->conn); /* ENOMEM, ENOSPC: it would get no events */
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
    struct redis_async *redis = &loop.redis;
    if (redis->opened != seen)
        interest = 0;
    seen = redis->opened;
    if (redis->fd >= 0 && set_interest(redis->fd, interest, (uint32_t)redis->events, redis))
        interest = (uint32_t)redis->events;
    else
        redis_async_drop(redis); /* if there is one. ENOMEM, ENOSPC: it would get no events */
}

/* The same for the listener, which is not watched while descriptors or memory have run out. If
 * there is no memory to watch it again, the next attempt is a tick later. */
static void watch_listener(void)
{
    uint32_t wanted = loop_accepts(&loop) ? EPOLLIN : 0;
    if (loop.worker.listener < 0 || wanted == listener_interest)
        return;
    if (set_interest(loop.worker.listener, listener_interest, wanted, &loop.worker.listener))
        listener_interest = wanted;
    else
        loop_pause_accepting(&loop);
}

/* ---- the loop ------------------------------------------------------------------------------ */

/* The pointer says whose event it is. A client that has ended in this round is
 * not freed yet. It is at CONN_DONE, where loop_advance() finds nothing to do. */
static void handle_event(const struct epoll_event *event)
{
    void *whose = event->data.ptr;
    struct client *client = whose;
    if (whose == &loop.worker.listener)
        loop_accept(&loop);
    else if (whose == &loop.signals)
        loop_stop(&loop);
    else if (whose == &loop.redis)
        redis_async_ready(&loop.redis, event->events);
    else if (client->conn.state == CONN_ASKING)
        unwatch_client(client);
    else
        loop_advance(&loop, client);
}

static void run_once(void)
{
    struct epoll_event events[EVENTS_A_ROUND];
    watch_redis();
    watch_listener();
    int count = epoll_wait(epoll, events, EVENTS_A_ROUND, loop_timeout(&loop));
    for (int i = 0; i < count; i++) /* -1 is EINTR: there are no events */
        handle_event(&events[i]);
    loop_end_round(&loop); /* frees ended clients: until here an event could still name them */
}

int main(int argc, char **argv)
{
    struct options options = {.name = "epoll"};
    struct redis_server server;

    options_parse(&options, argc, argv);
    struct board *board = app_start(&options, &server, 1, "one process, epoll_wait()");
    loop.worker = (struct worker){
        .options = &options,
        .board = board,
        .slot = board_claim(board, getpid()),
        .listener = net_listen(&options, false),
        .count_waiting = loop_count_waiting,
    };
    loop.signals = stop_open_signalfd(&options);
    loop.moved = watch_client;
    loop_start(&loop, &server);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0 || !set_interest(loop.signals, 0, EPOLLIN, &loop.signals))
        process_die(options.name, "cannot start: epoll: %s", strerror(errno));
    net_announce(&options, loop.worker.listener);

    while (!loop_is_over(&loop))
        run_once();

    loop_close(&loop);
    close(epoll);
    process_report(&options, board_requests(board), board_connections(board));
    return 0;
}
