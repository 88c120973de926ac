/* Chapter 6: poll. One process with one thread, which waits for all clients at once.
 *
 * The model: no descriptor blocks. poll() sleeps until something has happened on at
 * least one of them. The loop then does all work that needs no waiting, and sleeps
 * again. On one page (bare.c), chapter 5's thread remembers on its stack how far its
 * client has got. Here an object with a state (conn.h) does. All clients in one state
 * wait for the same thing, and are in one queue (loop.h).
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
#include "app.h"
#include "loop.h"
#include "net.h"
#include "process.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct loop loop; /* every client, in the queue of its state */

/* What poll() is asked about, and whose[i], the client that fds[i] belongs to. Both arrays
 * are filled anew in each round, from the queues, so no entry names a client that is gone. */
static struct pollfd *fds;
static struct client **whose;
static int count, room; /* entries in use, and entries that fit */

enum { LISTENER, SIGNALS, REDIS, CLIENTS }; /* places in fds; clients begin at CLIENTS */

/* ---- what poll() is asked ------------------------------------------------------------------ */

/* Makes room in both arrays. If there is no memory for that, poll() is not asked about the
 * clients that do not fit; perhaps they fit in the next round. */
static void grow_arrays(int needed)
{
    if (needed <= room)
        return;
    struct pollfd *more_fds = realloc(fds, 2 * (size_t)needed * sizeof(*fds));
    fds = more_fds ? more_fds : fds;
    struct client **more_whose = realloc(whose, 2 * (size_t)needed * sizeof(struct client *));
    whose = more_whose ? more_whose : whose;
    if (more_fds && more_whose)
        room = 2 * needed;
}

static void add_fd(int fd, short events, struct client *client)
{
    if (count == room)
        return;
    fds[count] = (struct pollfd){.fd = fd, .events = events}; /* poll() skips an fd of -1 */
    whose[count++] = client;
}

/* A client that has sent its FIN stays readable for ever, and has nothing more to read. Only the
 * clock ends its connection. */
static void add_clients(enum conn_state state, short events)
{
    for (struct client *client = loop.queues[state]; client; client = client->next) {
        const struct conn *conn = &client->conn;
        add_fd(state == CONN_LINGERING && conn->ended ? -1 : conn->fd, events, client);
    }
}

/* Each state says what its clients wait for. POLLOUT, room for writing, is only for clients
 * with something to write. Most sockets have room nearly always, so otherwise poll() would never
 * sleep. A client that waits for Redis is not in the array at all. */
static void build_fds(void)
{
    grow_arrays(CLIENTS + loop.count);
    count = 0;
    add_fd(loop_accepts(&loop) ? loop.worker.listener : -1, POLLIN, NULL);
    add_fd(loop.signals, POLLIN, NULL);
    add_fd(loop.redis.fd, loop.redis.events, NULL);
    add_clients(CONN_FRESH, POLLIN);
    add_clients(CONN_IDLE, POLLIN);
    add_clients(CONN_READING, POLLIN);
    add_clients(CONN_WRITING, POLLOUT);
    add_clients(CONN_LINGERING, POLLIN);
}

/* ---- the loop ------------------------------------------------------------------------------ */

static void run_once(void)
{
    build_fds();
    if (poll(fds, (nfds_t)count, loop_timeout(&loop)) < 0 && errno != EINTR)
        poll(NULL, 0, TICK_MS); /* no memory: all revents are 0; the round may free some */

    for (int i = CLIENTS; i < count; i++)
        if (fds[i].revents)
            loop_advance(&loop, whose[i]);
    if (fds[REDIS].revents)
        redis_async_ready(&loop.redis, (unsigned)fds[REDIS].revents);
    if (fds[LISTENER].revents)
        loop_accept(&loop);
    if (fds[SIGNALS].revents)
        loop_stop(&loop);
    loop_end_round(&loop); /* frees ended clients: no event of this round names them any more */
}

int main(int argc, char **argv)
{
    struct options options = {.name = "poll"};
    struct redis_server server;

    options_parse(&options, argc, argv);
    struct board *board = app_start(&options, &server, 1, "one process, poll()");
    loop.worker = (struct worker){
        .options = &options,
        .board = board,
        .slot = board_claim(board, getpid()),
        .listener = net_listen(&options, false),
        .count_waiting = loop_count_waiting,
    };
    loop.signals = stop_open_signalfd(&options);
    loop_start(&loop, &server);
    grow_arrays(CLIENTS);
    if (!room)
        process_die(options.name, "no memory for %d clients", CLIENTS);
    net_announce(&options, loop.worker.listener);

    while (!loop_is_over(&loop))
        run_once();

    loop_close(&loop);
    free(fds);
    free(whose);
    process_report(&options, board_requests(board), board_connections(board));
    return 0;
}
