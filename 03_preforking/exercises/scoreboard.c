/* Exercise 03/scoreboard: workers made beforehand, and how many of them are busy.
 *
 * The parent should print that number whenever it has changed. It prints
 * "busy: 0" at the start and nothing else, however many clients come.
 *
 * fork(2), mmap(2) MAP_SHARED, waitpid(2)
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
#include <sys/wait.h>
#include <unistd.h>

static struct board_slot slot; /* what serve_client() writes; each worker has a copy of its own */
static pid_t *workers;         /* the processes, by their number from 0; only the parent's */
static int busy;               /* how many workers have a client right now; but in which process
                                  is this variable? */

/* Worker `number`'s whole life. When it has died, its successor gets the number. */
static _Noreturn void serve_clients(struct worker *worker, const struct redis_server *server,
                                    pid_t parent, int number)
{
    struct redis_pool redis;
    char name[24];
    snprintf(name, sizeof(name), "worker %d", number);
    prctl(PR_SET_NAME, name);         /* shown by ps(1); the kernel keeps 15 bytes */
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* no worker outlives the parent */
    children_reset_signals();
    if (getppid() != parent || !redis_pool_open(&redis, server, 1))
        _exit(1);
    while (!stop_requested()) {
        int client = accept4(worker->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0) {
            net_handle_accept_error();
            continue;
        }
        busy++;
        serve_client(worker, client, &redis); /* owns client now, closes it */
        busy--;
    }
    _exit(0);
}

/* In the parent: makes worker `number`, the first one or the next. */
static void start_worker(struct worker *worker, const struct redis_server *server, int number)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        serve_clients(worker, server, parent, number);
    workers[number] = pid;
}

/* In the parent: reaps the workers that have died, and replaces them. */
static void replace_the_dead(struct worker *worker, const struct redis_server *server)
{
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        for (int number = 0; number < worker->options->workers; number++)
            if (workers[number] == pid) {
                start_worker(worker, server, number);
                break;
            }
}

/* In the parent: prints how many workers are busy, if that has changed. */
static void say_busy(void)
{
    static int said = -1;
    if (said == busy)
        return;
    said = busy;
    printf("busy: %d\n", said);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;
    options_parse(&options, argc, argv, "scoreboard", 4);
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

    workers = calloc((size_t)options.workers, sizeof(*workers));
    if (!workers)
        process_die(options.name, "no memory");
    stop_catch_signals(true);
    children_block_signal();
    net_announce(&options, listener);
    for (int number = 0; number < options.workers; number++)
        start_worker(&worker, &server, number);
    while (!stop_requested()) {
        replace_the_dead(&worker, &server);
        say_busy();
        children_wait(TICK_MS / 4);
    }
    return 0; /* the workers end when the parent does */
}
