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
#include "board.h"
#include "children.h"
#include "net.h"
#include "process.h"
#include "serve.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    YOUNG_MS = 1000,            /* a worker that dies earlier has failed at its start */
    FIRST_BACKOFF_MS = 100,     /* the wait before it is replaced; doubled each time, */
    LONGEST_BACKOFF_MS = 10000, /* up to this */
};

/* A worker's whole life: chapter 1's loop. */
static _Noreturn void serve_clients(struct worker *worker, const struct redis_server *server,
                                    pid_t parent)
{
    struct redis_pool redis;
    children_reset_signals();
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* no worker outlives the parent... */
    if (getppid() != parent)
        _exit(1); /* ...not even one whose parent died before that call */
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
static bool fork_missing_workers(struct children *children, struct worker *worker,
                                 struct board *board, const struct redis_server *server)
{
    pid_t parent = getpid();
    while (HASH_COUNT(children->by_pid) < (unsigned)worker->options->workers) {
        worker->slot = board_claim(board, parent);
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

/* Keeps the number of workers up until a signal asks the server to stop. A worker's death comes as
 * a signal too. Both stay blocked and are fetched here, so that none comes while nothing waits. */
static void supervise(struct children *children, struct worker *worker, struct board *board,
                      const struct redis_server *server, const sigset_t *signals)
{
    int backoff_ms = 0;
    int64_t not_before = 0; /* no fork before this time of clock_now_ms() */
    for (;;) {
        if (clock_now_ms() >= not_before && !fork_missing_workers(children, worker, board, server))
            not_before = clock_now_ms() + FIRST_BACKOFF_MS;

        int64_t left_ms = not_before - clock_now_ms();
        if (left_ms <= 0 || left_ms > YOUNG_MS)
            left_ms = YOUNG_MS;
        struct timespec left = {left_ms / 1000, left_ms % 1000 * 1000000L};
        int got = sigtimedwait(signals, NULL, &left);
        if (got == SIGTERM || got == SIGINT)
            return;

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
    struct children children = {0};
    sigset_t signals, only_deaths;

    options_parse(&options, argc, argv);
    struct board *board =
        app_start(&options, &server, options.workers, "processes made beforehand");
    int listener = net_listen(&options, true);

    sigemptyset(&only_deaths);
    sigaddset(&only_deaths, SIGCHLD);
    signals = only_deaths;
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    children_block_signal(); /* and no longer ignored, if it was */
    sigprocmask(SIG_BLOCK, &signals, NULL);
    net_announce(&options, listener);

    struct worker worker = {
        .options = &options,
        .board = board,
        .claim_waiting_clients = serve_waiting_clients,
        .listener = listener,
    };
    supervise(&children, &worker, board, &server, &signals);

    shutdown(listener, SHUT_RDWR);                /* in the workers, too: new clients are refused */
    stop_release_signals();                       /* they may have been ignored from the start */
    sigprocmask(SIG_SETMASK, &only_deaths, NULL); /* a second signal ends us at once */
    children_stop(&children, stop_grace_ms(&options));
    process_report(&options, board_requests(board), board_connections(board));
    return 0;
}
