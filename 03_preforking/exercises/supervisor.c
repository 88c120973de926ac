/* Exercise 03/supervisor: workers made beforehand, and a parent that looks away.
 *
 * Each worker is chapter 1's server. The parent does not notice when one is
 * killed, and in the end none is left. Make the parent replace them, but not
 * as fast as it can if they die at once.
 *
 * fork(2), waitpid(2), sigtimedwait(2), prctl(2) PR_SET_PDEATHSIG
 */
#include "children.h"
#include "clock.h"
#include "net.h"
#include "options.h"
#include "process.h"
#include "redis_pool.h"
#include "serve.h"
#include "stop.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static struct board_slot slot; /* each worker has a copy of its own */

/* What a worker needs before it can serve: here a file, if PLUGIN in the environment names one. */
static bool prepare(void)
{
    const char *plugin = getenv("PLUGIN");
    return !plugin || access(plugin, R_OK) == 0;
}

/* A worker's whole life. The check counts its first line. */
static _Noreturn void serve_clients(struct worker *worker, const struct redis_server *server,
                                    pid_t parent)
{
    struct redis_pool redis;
    printf("worker %d begins\n", (int)getpid());
    fflush(stdout);
    children_reset_signals();
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* no worker outlives the parent */
    if (getppid() != parent || !prepare() || !redis_pool_open(&redis, server, 1))
        _exit(1);
    while (!stop_requested()) {
        int client = accept4(worker->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0)
            serve_client(worker, client, &redis); /* owns client now, closes it */
        else
            net_handle_accept_error();
    }
    _exit(0);
}

/* Returns its process number; -1 if the machine has no process for it right now. */
static pid_t start_worker(struct worker *worker, const struct redis_server *server)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        serve_clients(worker, server, parent);
    return pid;
}

/* The parent's whole life. As it is, children end and the parent never looks. */
static void supervise(struct worker *worker, const struct redis_server *server)
{
    for (int i = 0; i < worker->options->workers; i++)
        start_worker(worker, server);
    while (!stop_requested())
        children_wait(TICK_MS);
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;
    options_parse(&options, argc, argv, "supervisor", 4);
    process_start();
    app_start(&options);
    redis_find(&server, &options);
    int listener = net_listen(&options, true);
    struct worker worker = {
        .options = &options,
        .slot = &slot,
        .claim_waiting_clients = serve_waiting_clients,
        .listener = listener,
    };

    stop_catch_signals(true);
    children_block_signal();
    net_announce(&options, listener);
    supervise(&worker, &server); /* the workers end when the parent does */
    return 0;
}
