/* Chapter 2: forking. A process for every connection.
 *
 * The model: the parent accepts and forks; the child serves that one client
 * and exits. The kernel switches between the children, so each may sleep as it
 * likes, and the code that serves is chapter 1's.
 *
 * What blocks whom: nobody blocks anybody, up to --workers children at once.
 * After that new clients stand in the accept queue, as in chapter 1.
 *
 * What it costs: a fork for each connection, and a new Redis connection for
 * each child that needs one, since neither the socket nor hiredis' buffers
 * can be shared with the parent.
 *
 * What it gives: a child that crashes takes nobody along.
 *
 * fork(2), waitpid(2), sigtimedwait(2), signal-safety(7)
 */
#include "board.h"
#include "children.h"
#include "clock.h"
#include "net.h"
#include "process.h"
#include "serve.h"
#include "status.h"
#include "stop.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct board *board; /* shared: mapped before the first fork */
static pid_t parent;        /* its number */

/* In a child: how many clients wait because the parent has all the children it may have? The parent
 * puts the number on the board. One child takes it, and makes way; the others find 0. If one place
 * was not enough, the parent puts the number there again. */
static int claim_waiting_clients(const struct worker *worker)
{
    (void)worker;
    if (stop_requested())
        return 1;
    return board->waiting ? atomic_exchange(&board->waiting, 0) : 0;
}

/* The child's whole life. It starts with a copy of everything the parent had:
 * what it does not need it closes, what it shares by accident would be a bug.
 * The parent's way with signals is right for it, too: SIGINT and SIGTERM ask to
 * stop, however often they come, and SIGCHLD, which is blocked, never will. */
static _Noreturn void serve_in_child(struct worker *worker, int client,
                                     const struct redis_server *server)
{
    struct redis_pool redis;
    close(worker->listener); /* the parent's: it alone accepts */
    worker->slot->owner = getpid();
    if (redis_pool_open(&redis, server, 1)) { /* connects only if the request needs it */
        serve_client(worker, client, &redis); /* owns client now, closes it */
        redis_pool_close(&redis);
    }
    _exit(0); /* not exit(): the parent's stdio buffers are not ours to flush */
}

/* Hands the client to a child. Both processes have its descriptor now; each closes its own. */
static void fork_child(struct worker *worker, int client, const struct redis_server *server,
                       struct children *children)
{
    worker->slot = board_claim(board, parent);
    app_check_templates(); /* so that the child need not */
    pid_t pid = fork();
    if (pid == 0)
        serve_in_child(worker, client, server);
    if (pid < 0) {
        serve_unavailable(worker, client); /* no process to be had: 503, and the parent lives */
        board_release(worker->slot);
        return;
    }
    close(client); /* the child's now; the connection ends when its copy is closed too */
    if (!children_add(children, pid, worker->slot)) {
        /* No memory to remember it by: this request is to be its last, and we wait for its end as
         * chapter 1 would, once more after each signal (EINTR). */
        kill(pid, SIGTERM);
        TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0));
        board_release(worker->slot);
    }
}

/* The parent's round: reap ended children, wait if there is no room, accept, fork.
 * accept4() returns within a tick, so that no zombie stays for longer. */
static void accept_and_fork(struct worker *worker, const struct redis_server *server,
                            struct children *children)
{
    while (!stop_requested()) {
        children_reap(children);
        if (HASH_COUNT(children->by_pid) >= (unsigned)worker->options->workers) {
            board->waiting = net_accept_queue_length(worker->listener);
            children_wait(TICK_MS / 4); /* a crowd comes quickly: the notice must not be old */
            continue;
        }
        board->waiting = 0;
        int client = accept4(worker->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0)
            fork_child(worker, client, server, children);
        else
            net_handle_accept_error();
    }
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;
    struct children children = {0};

    options_parse(&options, argc, argv, "forking", 2048);
    app_start(&options);
    redis_start(&server, &options);
    parent = getpid();
    board = board_open(options.workers + 1); /* one more for the parent's own 503s */
    if (!board)
        process_die(options.name, "%s", strerror(errno));
    status_start(&options, board, STATUS_PROCESSES, "a process for every connection");
    int listener = net_listen(&options, true);
    stop_catch_signals(false);
    children_block_signal();
    net_announce(&options, listener);

    struct worker worker = {
        .options = &options,
        .claim_waiting_clients = claim_waiting_clients,
        .before_waiting = children_die_first, /* not earlier: most clients do not */
        .listener = listener,
    };
    accept_and_fork(&worker, &server, &children);

    close(listener);
    stop_release_signals(); /* not before the last fork: a child would begin its life like that */
    children_stop(&children, stop_grace_ms(&options));
    process_report(&options, board_requests(board), board_connections(board));
    return 0;
}
