/* Exercise 02/zombies: a process for every connection, and a table of them.
 *
 * The parent writes each child into a table. When a child ends, the kernel sends
 * SIGCHLD. The handler goes through the whole table and reaps every child in it
 * that has ended, whether there is one or two hundred of them. Yet ps(1) shows a
 * zombie now and then, and it stays until another visitor leaves.
 *
 * fork(2), waitpid(2), sigaction(2), sigprocmask(2)
 */
#include "net.h"
#include "options.h"
#include "process.h"
#include "redis_pool.h"
#include "serve.h"
#include "stop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct board_slot slot; /* each child has a copy of its own */

static volatile pid_t *children; /* the table: --workers places; 0: a free one */
static int places;

static int claim_waiting_clients(const struct worker *worker)
{
    (void)worker;
    return stop_requested(); /* no child gives its client up for another */
}

/* Reaps the children that have ended. One signal may stand for many of them, so it asks for each.
 * WNOHANG: a handler must not sleep. The call that it interrupted finds its errno as it was. */
static void reap(int signal_number)
{
    (void)signal_number;
    int before = errno;
    for (int i = 0; i < places; i++)
        if (children[i] > 0 && waitpid(children[i], NULL, WNOHANG) == children[i])
            children[i] = 0;
    errno = before;
}

/* A place in the table; -1: all are taken. */
static int free_place(void)
{
    for (int i = 0; i < places; i++)
        if (children[i] == 0)
            return i;
    return -1;
}

static _Noreturn void serve_in_child(struct worker *worker, int client,
                                     const struct redis_server *server)
{
    struct redis_pool redis;
    close(worker->listener); /* only the parent accepts */
    if (redis_pool_open(&redis, server, 1)) {
        serve_client(worker, client, &redis); /* owns client now, closes it */
        redis_pool_close(&redis);
    }
    _exit(0);
}

static void fork_child(struct worker *worker, int client, const struct redis_server *server)
{
    int place = free_place();
    pid_t pid = place < 0 ? -1 : fork();
    if (pid == 0)
        serve_in_child(worker, client, server);
    if (pid < 0) {
        serve_unavailable(worker, client); /* no room, or no process: 503; owns client now */
        return;
    }
    children[place] = pid; /* the handler will reap it */
    close(client);         /* the child has a copy */
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;
    options_parse(&options, argc, argv, "zombies", 256);
    process_start();
    app_start(&options);
    redis_find(&server, &options);
    places = options.workers;
    children = calloc((size_t)places, sizeof(*children));
    if (!children)
        process_die(options.name, "cannot start: %s", strerror(errno));
    int listener = net_listen(&options, true);
    struct worker worker = {
        .options = &options,
        .slot = &slot,
        .claim_waiting_clients = claim_waiting_clients,
        .listener = listener,
    };

    struct sigaction ended = {.sa_handler = reap, .sa_flags = SA_RESTART | SA_NOCLDSTOP};
    sigaction(SIGCHLD, &ended, NULL);
    stop_catch_signals(true);
    net_announce(&options, listener);
    while (!stop_requested()) {
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0)
            fork_child(&worker, client, &server);
        else
            net_handle_accept_error();
    }
    return 0;
}
