/* Chapter 3: preforking. Processes that are forked beforehand, and accept for themselves.
 *
 * The model: the parent forks --workers children at the start. Each is chapter
 * 1's server, and all sleep in accept4() on the same listening socket. The kernel
 * wakes one for each client. The parent serves nobody: it replaces dead workers.
 *
 * What blocks whom: a client blocks one worker. While all workers are taken,
 * the next client waits, and so a worker gives an idle connection up for it.
 *
 * What it costs: the memory of all workers, whether they are busy or not. No
 * client waits for a fork, and each worker keeps its Redis connection.
 *
 * fork(2), prctl(2) PR_SET_PDEATHSIG, sigtimedwait(2), waitpid(2)
 */
#include "app.h"
#include "children.h"
#include "net.h"
#include "process.h"
#include "serve.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    YOUNG_MS = 1000,            /* a worker that dies earlier has failed at its start */
    FIRST_BACKOFF_MS = 100,     /* the wait before it is replaced; doubled each time, */
    LONGEST_BACKOFF_MS = 10000, /* up to this */
};

/* A worker's whole life: chapter 1's loop. It keeps the parent's signal settings, as in chapter 2.
 */
static _Noreturn void serve_clients(struct worker *worker, const struct redis_server *server,
                                    pid_t parent)
{
    struct redis_pool redis;
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* no worker outlives the parent... */
    if (getppid() != parent)
        raise(SIGTERM); /* ...not even one whose parent died before that call */
    worker->slot->owner = getpid();
    redis_pool_open(&redis, server, 1);
    while (!stop_requested()) {
        int client = accept4(worker->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0)
            serve_client(worker, client, &redis); /* owns client now, closes it */
        else
            net_handle_accept_error();
    }
    redis_pool_close(&redis);
    _exit(0);
}

/* Forks the workers that are missing. False if the machine has no process for one right now. */
static bool fork_missing_workers(struct worker *worker, const struct redis_server *server,
                                 struct children *children)
{
    pid_t parent = getpid();
    while (HASH_COUNT(children->by_pid) < (unsigned)worker->options->workers) {
        worker->slot = board_claim(worker->board, parent);
        pid_t pid = fork();
        if (pid == 0)
            serve_clients(worker, server, parent);
        if (!children_add(children, pid, worker->slot))
            return false;
    }
    return true;
}

/* How long to wait before the next fork when a worker has died young: twice the last wait. */
static int next_backoff(int ms)
{
    ms = ms ? 2 * ms : FIRST_BACKOFF_MS;
    return ms < LONGEST_BACKOFF_MS ? ms : LONGEST_BACKOFF_MS;
}

/* Keeps the number of workers up until a signal asks the server to stop. */
static void supervise(struct worker *worker, const struct redis_server *server,
                      struct children *children)
{
    int backoff_ms = 0;
    int64_t not_before = 0; /* no fork before this time of clock_now_ms() */
    while (!stop_requested()) {
        if (clock_now_ms() >= not_before && !fork_missing_workers(worker, server, children))
            not_before = clock_now_ms() + FIRST_BACKOFF_MS;

        int64_t left_ms = not_before - clock_now_ms();
        children_wait(left_ms > 0 && left_ms < TICK_MS ? (int)left_ms : TICK_MS);

        int64_t life_ms = children_reap(children);
        if (life_ms >= 0 && clock_now_ms() >= not_before) { /* once for all that die together */
            backoff_ms = life_ms < YOUNG_MS ? next_backoff(backoff_ms) : 0;
            not_before = clock_now_ms() + backoff_ms;
        }
    }
}

int main(int argc, char **argv)
{
    struct options options = {.name = "preforking", .workers = OPTIONS_TEAM};
    struct redis_server server;
    struct children children = {.name = options.name};

    options_parse(&options, argc, argv);
    struct board *board =
        app_start(&options, &server, options.workers, "processes made beforehand");
    struct worker worker = {
        .options = &options,
        .board = board,
        .listener = net_listen(&options, true),
        .count_waiting = serve_waiting_in_queue,
    };
    stop_catch_signals(false);
    children_block_signal();
    if (!fork_missing_workers(&worker, &server, &children))
        process_die(options.name, "cannot create %d processes: %s; try --workers with fewer",
                    options.workers, strerror(errno));
    net_announce(&options, worker.listener);

    supervise(&worker, &server, &children);

    shutdown(worker.listener, SHUT_RDWR); /* in the workers, too: new clients are refused */
    stop_release_signals();               /* after the last fork, as in chapter 2 */
    children_stop(&children, stop_grace_ms(&options));
    process_report(&options, board_requests(board), board_connections(board));
    return 0;
}
