/* Chapter 2: forking. A process for every connection.
 *
 * The model: the parent accepts a client and forks. The child serves that one
 * client and exits. The kernel switches between the children, so each of them
 * may sleep as long as it has to. The code that serves is chapter 1's.
 *
 * What blocks whom: no client blocks another, up to --workers children at once,
 * or as many as the system allows. Beyond that, new clients wait, as in chapter 1.
 *
 * What it costs: a fork for each connection, and a new Redis connection for
 * each child that needs one. A child cannot share its parent's: two processes
 * would read each other's replies.
 *
 * What it gives: a child that crashes ends one connection and no other.
 *
 * fork(2), waitpid(2), sigtimedwait(2), prctl(2) PR_SET_PDEATHSIG, signal-safety(7)
 */
#include "app.h"
#include "children.h"
#include "net.h"
#include "process.h"
#include "serve.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* The child's whole life. It begins with a copy of everything that the parent
 * has. It closes the descriptor it does not need, and opens its own connection
 * to Redis. It keeps the parent's signal settings: SIGINT and SIGTERM ask it to
 * stop, however often they come. SIGCHLD is blocked, and no child forks. */
static _Noreturn void serve_in_child(struct worker *worker, int client,
                                     const struct redis_server *server, pid_t parent)
{
    struct redis_pool redis;
    close(worker->listener);          /* only the parent accepts */
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* a child whose parent is killed stops, too... */
    if (getppid() != parent)
        raise(SIGTERM); /* ...even if the parent died before that call */
    worker->slot->owner = getpid();
    redis_pool_open(&redis, server, 1);   /* connects only if the request needs it */
    serve_client(worker, client, &redis); /* owns client now, closes it */
    redis_pool_close(&redis);
    _exit(0); /* exit() would also print what the parent's stdio buffers hold */
}

/* Forks a child for the client. After that both processes have all descriptors, so each closes the
 * one that belongs to the other. */
static void fork_child(struct worker *worker, int client, const struct redis_server *server,
                       struct children *children)
{
    pid_t parent = getpid();
    worker->slot = board_claim(worker->board, parent);
    pid_t pid = fork();
    while (pid < 0 && children->by_pid && !stop_requested()) {
        /* No process left: a limit, like --workers. Wait until a child has made way. */
        worker->board->waiting = 1 + net_accept_queue_length(worker->listener);
        children_wait(TICK_MS / 4);
        children_reap(children);
        pid = fork();
    }
    if (pid == 0)
        serve_in_child(worker, client, server, parent);
    if (pid < 0) {
        serve_unavailable(worker, client); /* no child could make way: answer 503, close it */
        board_release(worker->slot);
        return;
    }
    close(client); /* the connection ends when the child closes its copy too */
    children_add(children, pid, worker->slot);
}

/* The parent's loop: reap the children that have ended, wait if there are too many, accept, fork.
 * accept4() returns within a tick, so no zombie stays for longer than that. */
static void accept_and_fork(struct worker *worker, const struct redis_server *server,
                            struct children *children)
{
    while (!stop_requested()) {
        children_reap(children);
        if (HASH_COUNT(children->by_pid) >= (unsigned)worker->options->workers) {
            worker->board->waiting = net_accept_queue_length(worker->listener);
            children_wait(TICK_MS / 4); /* the queue grows quickly: look at it often */
            continue;
        }
        worker->board->waiting = 0;
        int client = accept4(worker->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0)
            fork_child(worker, client, server, children);
        else
            net_handle_accept_error();
    }
}

int main(int argc, char **argv)
{
    struct options options = {.name = "forking", .workers = 2048};
    struct redis_server server;
    struct children children = {.name = options.name};

    options_parse(&options, argc, argv);
    /* One slot more, for a 503 that the parent sends (exercise cap). */
    struct board *board =
        app_start(&options, &server, options.workers + 1, "a process for every connection");
    struct worker worker = {
        .options = &options,
        .board = board, /* in memory that parent and children share: mapped before any fork */
        .listener = net_listen(&options, true),
        .count_waiting = serve_waiting_on_board, /* where the parent writes them */
    };
    stop_catch_signals(false);
    children_block_signal();
    net_announce(&options, worker.listener);

    accept_and_fork(&worker, &server, &children);

    close(worker.listener);
    stop_release_signals(); /* after the last fork: a child inherits the settings */
    children_stop(&children, stop_grace_ms(&options));
    process_report(&options, board_requests(board), board_connections(board));
    return 0;
}
