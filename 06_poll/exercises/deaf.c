/* Exercise 06/deaf: a poll() loop that serves files, and does something wrong.
 *
 * Visitors are served well. But when some of them are slow to read what they
 * have asked for, a core of the machine is busy, and nothing gets done. Fifty
 * clients that ask for a hundred files each and never read show it every time.
 *
 * There is no Redis here. The guestbook answers 503, which is not the bug.
 *
 * poll(2), sendmsg(2), tcp(7)
 */
#include "board.h"
#include "conn.h"
#include "net.h"
#include "options.h"
#include "process.h"
#include "status.h"
#include "stop.h"
#include "waiting.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_CLIENTS = 1000, ACCEPTS_A_ROUND = 64 };
enum { LISTENER, SIGNALS, CLIENTS }; /* places in fds; clients begin at CLIENTS */

static struct worker worker;
static struct waiting waiting; /* every client, in the queue of its state */
static int listener;           /* -1 once the server is stopping */
static int signals;

static struct pollfd fds[CLIENTS + MOST_CLIENTS];
static struct conn *whose[CLIENTS + MOST_CLIENTS];
static int count;

/* What poll() is asked about a client. A client that is being written to may also speak,
 * or leave, and we want to hear of both. */
static short interest(const struct conn *client)
{
    short events = POLLIN;
    if (client->state == CONN_WRITING)
        events |= POLLOUT;
    return events;
}

static void advance_client(struct conn *client)
{
    conn_advance(client);
    while (client->state == CONN_ASKING) {
        conn_reply(client, NULL, REDIS_NO_CONNECTION);
        conn_advance(client);
    }
    waiting_update(&waiting, client);
}

static void accept_clients(void)
{
    for (int i = 0; i < ACCEPTS_A_ROUND && waiting.count < MOST_CLIENTS; i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct conn *client = fd >= 0 ? malloc(sizeof(*client)) : NULL;
        if (!client) {
            if (fd >= 0)
                close(fd);
            else
                net_handle_accept_error(); /* no descriptors: the whole loop waits for a tick */
            return;
        }
        conn_open(client, fd, &worker); /* owns fd now */
        waiting_add(&waiting, client);  /* owns client now */
        advance_client(client);
    }
}

static void add_fd(int fd, short events, struct conn *client)
{
    fds[count] = (struct pollfd){.fd = fd, .events = events};
    whose[count++] = client;
}

static void build_fds(void)
{
    count = 0;
    add_fd(waiting.count < MOST_CLIENTS ? listener : -1, POLLIN, NULL);
    add_fd(signals, POLLIN, NULL);
    for (enum conn_state state = CONN_FRESH; state < CONN_DONE; state++)
        for (struct conn *client = waiting.queues[state]; client; client = client->next)
            add_fd(client->fd, interest(client), client);
}

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
    if (poll(fds, (nfds_t)count, waiting_timeout(&waiting)) < 0)
        return;

    for (int i = CLIENTS; i < count; i++)
        if (fds[i].revents)
            advance_client(whose[i]);
    if (fds[LISTENER].revents)
        accept_clients();
    if (fds[SIGNALS].revents)
        stop_accepting();

    waiting_expire(&waiting, advance_client);
    waiting_free_done(&waiting); /* last, because whose[] may name them until here */
}

static int claim_waiting_clients(const struct worker *unused)
{
    (void)unused;
    return waiting.stop_asked != 0;
}

int main(int argc, char **argv)
{
    struct options options;

    options_parse(&options, argc, argv, "deaf", 0);
    process_start();
    app_start(&options);
    struct board *board = board_open(1);
    if (!board)
        process_die(options.name, "out of memory");
    status_start(&options, board, STATUS_EVENT_LOOP, "one process, poll()");
    signals = stop_open_signalfd(&options);
    listener = net_listen(&options, false);
    worker = (struct worker){
        .options = &options,
        .slot = board_claim(board, getpid()),
        .claim_waiting_clients = claim_waiting_clients,
    };
    net_announce(&options, listener);

    while (!waiting_is_over(&waiting))
        run_once();

    waiting_close(&waiting);
    process_report(&options, board_requests(board), board_connections(board));
    return 0;
}
