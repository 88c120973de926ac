/* Chapter 3: preforking. Processes made beforehand, that accept for themselves.
 *
 * The model: --workers children are forked at the start; each is chapter 1's
 * server, and all sleep in accept4() on the same listener. The kernel wakes
 * one for each client. The parent serves nobody: it watches its children.
 *
 * What blocks whom: a client blocks one worker. With all workers taken, the
 * next client waits, and so a connection that idles is given up to it.
 *
 * What it costs: the memory of the workers, used or not. No fork when a client
 * comes, and a Redis connection that stays.
 *
 * fork(2), prctl(2) PR_SET_PDEATHSIG, sigtimedwait(2), waitpid(2)
 */
#include "board.h"
#include "children.h"
#include "clock.h"
#include "net.h"
#include "options.h"
#include "process.h"
#include "redis_pool.h"
#include "serve.h"
#include "status.h"
#include "stop.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    YOUNG_MS = 1000,         /* a worker that lives less than this died of something at its start */
    FIRST_PATIENCE_MS = 100, /* before such a one is replaced; doubled each time, */
    MOST_PATIENCE_MS = 10000, /* up to this: no storm of forks */
};

/* A worker's whole life: chapter 1's loop. */
static _Noreturn void work(struct worker *worker, const struct redis_server *server, pid_t parent)
{
    struct redis_pool redis;
    children_become_child();
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* no worker outlives the parent... */
    if (getppid() != parent || !redis_pool_open(&redis, server, 1))
        _exit(1); /* ...not even one whose parent died before that call */
    worker->slot->owner = getpid();
    children_die_first();
    while (!net_stopping()) {
        int client = accept4(worker->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0)
            serve_client(worker, client, &redis); /* owns client now, closes it */
        else
            net_accept_failed();
    }
    redis_pool_close(&redis);
    _exit(0);
}

/* Forks as many workers as are missing. False: the machine has no process to give right now. */
static bool fill_up(struct children *children, struct worker *worker, struct board *board,
                    const struct redis_server *server)
{
    pid_t parent = getpid();
    while (HASH_COUNT(children->by_pid) < (unsigned)worker->options->workers) {
        worker->slot = board_claim(board, parent);
        pid_t pid = fork();
        if (pid == 0)
            work(worker, server, parent);
        if (pid > 0 && children_add(children, pid, worker->slot))
            continue;
        if (pid > 0) { /* no memory to remember it by */
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
        }
        board_release(worker->slot);
        return false;
    }
    return true;
}

/* What comes next for one that died at once: twice the patience of the last time. */
static int more_patience(int ms)
{
    ms = ms ? 2 * ms : FIRST_PATIENCE_MS;
    return ms < MOST_PATIENCE_MS ? ms : MOST_PATIENCE_MS;
}

/* Keeps the number of workers up, until a signal asks to stop. Whatever the parent waits for comes
 * as a signal that it keeps blocked and fetches here: a worker's death, or the wish to stop. */
static void supervise(struct children *children, struct worker *worker, struct board *board,
                      const struct redis_server *server, const sigset_t *signals)
{
    int patience_ms = 0;
    int64_t not_before = 0; /* net_now() of the next fork */
    for (;;) {
        if (net_now() >= not_before && !fill_up(children, worker, board, server))
            not_before = net_now() + FIRST_PATIENCE_MS;

        int64_t left_ms = not_before - net_now();
        if (left_ms <= 0 || left_ms > YOUNG_MS)
            left_ms = YOUNG_MS;
        struct timespec left = {left_ms / 1000, left_ms % 1000 * 1000000L};
        int got = sigtimedwait(signals, NULL, &left);
        if (got == SIGTERM || got == SIGINT)
            return;

        int64_t life_ms = children_reap(children);
        if (life_ms >= 0 && net_now() >= not_before) { /* once for all who die together */
            patience_ms = life_ms < YOUNG_MS ? more_patience(patience_ms) : 0;
            not_before = net_now() + patience_ms;
        }
    }
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;
    struct children children = {0};
    sigset_t signals, only_deaths;

    net_options(&options, argc, argv, "preforking", 100);
    app_start(&options);
    redis_start(&server, &options);
    struct board *board = board_open(options.workers);
    if (!board)
        net_die(options.name, "%s", strerror(errno));
    status_start(&options, board, STATUS_PROCESSES, "processes made beforehand");
    int listener = net_listen(&options, true);

    sigemptyset(&only_deaths);
    sigaddset(&only_deaths, SIGCHLD);
    signals = only_deaths;
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    children_block_signal(); /* and undo an inherited wish to ignore it */
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN); /* nobody may be reading the statistics */
    net_ready(&options, listener);

    struct worker worker = {
        .options = &options,
        .how_many_wait = serve_how_many_wait,
        .listener = listener,
    };
    supervise(&children, &worker, board, &server, &signals);

    close(listener);
    net_release_signals();                        /* who started us may have ignored them */
    sigprocmask(SIG_SETMASK, &only_deaths, NULL); /* a second signal ends us at once */
    children_stop(&children, net_stop_ms(&options));
    net_report(&options, board_requests(board), board_connections(board));
    return 0;
}
