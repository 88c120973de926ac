/* Chapter 6: poll. One process that waits for everybody at once.
 *
 * The model: no descriptor blocks. poll() sleeps until something has happened
 * to any of them; the loop does what can be done about it without waiting, and
 * sleeps again. Where a thread had its stack to remember how far a client had
 * got, there is an object with a state (conn.h), in the queue of those who
 * wait for the same thing (waiting.h).
 *
 * What blocks whom: nobody waits for a client, or for Redis. But all share one
 * thread: a page that computed for 20 ms would make everybody 20 ms late, and
 * so does a slow disk, since poll() takes every file for ready.
 *
 * What it costs: the kernel looks at every descriptor in every round, however
 * few have something to say, and so do we: a thousand idle clients make each
 * busy one dearer.
 *
 * poll(2), accept4(2), signalfd(2), fcntl(2) O_NONBLOCK
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
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ACCEPTS_A_ROUND = 64 }; /* so that a crowd at the door does not starve those inside */

/* ---- the loop's state: there is one thread, and nobody to share it with -------------------- */

static struct worker worker;
static struct waiting waiting;   /* every client, by what it waits for */
static struct redis_async redis; /* one connection, shared by all clients */
static int listener;             /* -1 once we are stopping */
static int signals;
static int64_t door_shut_until; /* net_now(); no descriptors: accepting makes no sense before */

/* What poll() is asked about, made anew each round from the queues. whose[i]
 * is the client behind fds[i], so that no entry can be stale. */
static struct pollfd *fds;
static struct conn **whose;
static int count, room;

enum { LISTENER, SIGNALS, REDIS, CLIENTS }; /* places in fds; clients from CLIENTS on */

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

/* Lets in whoever stands at the door. Out of descriptors or memory it stays
 * shut for a tick, because poll() would report the same client at once. */
static void accept_clients(void)
{
    for (int i = 0; i < ACCEPTS_A_ROUND; i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct conn *client = fd >= 0 ? malloc(sizeof(*client)) : NULL;
        if (!client) {
            if (net_out_of_resources(errno))
                door_shut_until = net_now() + TICK_MS;
            if (fd >= 0)
                close(fd);
            return;
        }
        conn_open(client, fd, &worker); /* owns fd now */
        waiting_add(&waiting, client);  /* owns client now */
        go_on(client);                  /* what it wants to say has often come already */
    }
}

/* ---- what poll() is asked ------------------------------------------------------------------ */

/* Room in both arrays. Without memory for it, the last clients are not looked
 * at in this round, and perhaps in the next. */
static void make_room(int needed)
{
    if (needed <= room)
        return;
    struct pollfd *more_fds = realloc(fds, 2 * (size_t)needed * sizeof(*fds));
    fds = more_fds ? more_fds : fds;
    struct conn **more_whose = realloc(whose, 2 * (size_t)needed * sizeof(struct conn *));
    whose = more_whose ? more_whose : whose;
    if (more_fds && more_whose)
        room = 2 * needed;
}

static void add(int fd, short events, struct conn *client)
{
    if (count == room)
        return;
    fds[count] = (struct pollfd){.fd = fd, .events = events}; /* poll() skips an fd of -1 */
    whose[count++] = client;
}

static void add_all(enum conn_state state, short events)
{
    for (struct conn *client = waiting.queues[state]; client; client = client->next)
        add(client->fd, events, client);
}

/* Each state says what it waits for. Room for writing is asked for only by
 * those who have something to write: most sockets have room nearly always, and
 * poll() would never sleep. Who waits for Redis is not asked about at all. */
static void collect(void)
{
    make_room(CLIENTS + waiting.count);
    count = 0;
    add(net_now() < door_shut_until ? -1 : listener, POLLIN, NULL);
    add(signals, POLLIN, NULL);
    add(redis.fd, redis.events, NULL);
    add_all(CONN_FRESH, POLLIN);
    add_all(CONN_IDLE, POLLIN);
    add_all(CONN_READING, POLLIN);
    add_all(CONN_WRITING, POLLOUT);
    add_all(CONN_LINGERING, POLLIN);
}

/* Until the next deadline of anybody; for ever if there is none. */
static int time_out(void)
{
    int ms = net_earlier(waiting_timeout(&waiting), redis_async_timeout(&redis));
    return net_now() < door_shut_until ? net_earlier(ms, TICK_MS) : ms;
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
    close(listener);
    listener = -1;
}

static void one_round(void)
{
    collect();
    if (poll(fds, (nfds_t)count, time_out()) < 0 && net_out_of_resources(errno))
        poll(NULL, 0, TICK_MS); /* nobody is ready, as far as we know; the rest frees memory */

    for (int i = CLIENTS; i < count; i++)
        if (fds[i].revents)
            go_on(whose[i]);
    if (fds[REDIS].revents)
        redis_async_ready(&redis, (unsigned)fds[REDIS].revents);
    if (fds[LISTENER].revents)
        accept_clients();
    if (fds[SIGNALS].revents)
        begin_to_stop();

    waiting_expire(&waiting, go_on);
    redis_async_expire(&redis, waiting_redis_is_overdue(&waiting));
    redis_async_flush(&redis); /* what all of them asked, in one write */
    waiting_bury(&waiting);    /* the arrays have named them until here */
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;

    net_options(&options, argc, argv, "poll", 0);
    app_start(&options);
    redis_start(&server, &options);
    struct board *board = board_open(1);
    make_room(CLIENTS);
    if (!board || !room)
        net_die(options.name, "%s", strerror(errno));
    status_start(&options, board, STATUS_EVENT_LOOP, "one process, poll()");
    signals = net_open_signals(&options);
    listener = net_listen(&options, false);
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
    free(fds);
    free(whose);
    net_report(&options, board_requests(board), board_connections(board));
    return 0;
}
