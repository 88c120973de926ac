/* Chapter 6: poll. One process with one thread, which waits for all clients at once.
 *
 * The model: no descriptor blocks. poll() sleeps until something has happened on at
 * least one of them. The loop then does all work that needs no waiting, and sleeps
 * again. In chapter 5 a thread's stack remembered how far its client had got. Here an
 * object with a state (conn.h) does. All clients in one state wait for the same thing,
 * and are in one queue (waiting.h).
 *
 * What blocks whom: the loop never waits for a single client, nor for Redis alone. But
 * all clients share its thread. A page that computes for 20 ms makes every one of them
 * 20 ms late. A slow disk does the same, because to poll() a file is always ready.
 *
 * What it costs: in each round this program lists every descriptor and the kernel checks
 * every one, however few of them have news. So a thousand idle clients make each request
 * of a busy client more expensive.
 *
 * poll(2), accept4(2), signalfd(2), fcntl(2) O_NONBLOCK
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
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ACCEPTS_A_ROUND = 64 }; /* so that a burst of new clients does not starve the others */

/* ---- the loop's state: one thread uses it, so it needs no lock ------------------------------ */

static struct worker worker;
static struct waiting waiting;   /* every client, in the queue of its state */
static struct redis_async redis; /* one connection, which all clients share */
static int listener;             /* -1 once the server is stopping */
static int signals;
/* When descriptors or memory run out, clients are accepted again at this time (clock_now_ms()). */
static int64_t accept_paused_until;

/* What poll() is asked about, and whose[i], the client that fds[i] belongs to. Both arrays
 * are filled anew in each round, from the queues, so no entry names a client that is gone. */
static struct pollfd *fds;
static struct conn **whose;
static int count, room; /* entries in use, and entries that fit */

enum { LISTENER, SIGNALS, REDIS, CLIENTS }; /* places in fds; clients begin at CLIENTS */

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
 * client for a tick, because poll() would report the same client again at once. */
static void accept_clients(void)
{
    for (int i = 0; i < ACCEPTS_A_ROUND; i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct conn *client = fd >= 0 ? malloc(sizeof(*client)) : NULL;
        if (!client) {
            if (net_out_of_resources(errno))
                accept_paused_until = clock_now_ms() + TICK_MS;
            if (fd >= 0)
                close(fd);
            return;
        }
        conn_open(client, fd, &worker); /* owns fd now */
        waiting_add(&waiting, client);  /* owns client now */
        advance_client(client);         /* its request has often come already */
    }
}

/* ---- what poll() is asked ------------------------------------------------------------------ */

/* Makes room in both arrays. If there is no memory for that, poll() is not asked about the
 * clients that do not fit; perhaps they fit in the next round. */
static void grow_arrays(int needed)
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

static void add_fd(int fd, short events, struct conn *client)
{
    if (count == room)
        return;
    fds[count] = (struct pollfd){.fd = fd, .events = events}; /* poll() skips an fd of -1 */
    whose[count++] = client;
}

static void add_clients(enum conn_state state, short events)
{
    for (struct conn *client = waiting.queues[state]; client; client = client->next)
        add_fd(client->fd, events, client);
}

/* Each state says what its clients wait for. POLLOUT, room for writing, is only for clients
 * with something to write. Most sockets have room nearly always, so otherwise poll() would never
 * sleep. A client that waits for Redis is not in the array at all. */
static void build_fds(void)
{
    grow_arrays(CLIENTS + waiting.count);
    count = 0;
    add_fd(clock_now_ms() < accept_paused_until ? -1 : listener, POLLIN, NULL);
    add_fd(signals, POLLIN, NULL);
    add_fd(redis.fd, redis.events, NULL);
    add_clients(CONN_FRESH, POLLIN);
    add_clients(CONN_IDLE, POLLIN);
    add_clients(CONN_READING, POLLIN);
    add_clients(CONN_WRITING, POLLOUT);
    add_clients(CONN_LINGERING, POLLIN);
}

/* Milliseconds until the next deadline of all; -1 means for ever, because there is none. */
static int next_timeout(void)
{
    int ms = clock_earlier_timeout(waiting_timeout(&waiting), redis_async_timeout(&redis));
    return clock_now_ms() < accept_paused_until ? clock_earlier_timeout(ms, TICK_MS) : ms;
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
    close(listener);
    listener = -1;
}

static void run_once(void)
{
    build_fds();
    if (poll(fds, (nfds_t)count, next_timeout()) < 0 && net_out_of_resources(errno))
        poll(NULL, 0, TICK_MS); /* all revents are 0; the rest of the round may free memory */

    for (int i = CLIENTS; i < count; i++)
        if (fds[i].revents)
            advance_client(whose[i]);
    if (fds[REDIS].revents)
        redis_async_ready(&redis, (unsigned)fds[REDIS].revents);
    if (fds[LISTENER].revents)
        accept_clients();
    if (fds[SIGNALS].revents)
        stop_accepting();

    waiting_expire(&waiting, advance_client);
    redis_async_expire(&redis);
    redis_async_flush(&redis);   /* the commands of all clients, in one write */
    waiting_free_done(&waiting); /* last, because whose[] may name them until here */
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;

    options_parse(&options, argc, argv, "poll", 0);
    struct board *board =
        start_server(&options, &server, 1, STATUS_EVENT_LOOP, "one process, poll()");
    grow_arrays(CLIENTS);
    if (!room)
        process_die(options.name, "cannot start: %s", strerror(errno));
    signals = stop_open_signalfd(&options);
    listener = net_listen(&options, false);
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
    free(fds);
    free(whose);
    process_report(&options, board_requests(board), board_connections(board));
    return 0;
}
