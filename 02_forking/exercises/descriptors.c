/* Exercise 02/descriptors: a process for every connection, and who owns it.
 *
 * The parent accepts and forks, the child serves that one client and exits. It
 * answers everybody. But some visitors say that the page never ends; after some
 * thousand of them nobody is let in any more; and when the parent was killed,
 * the next one found its port taken.
 *
 * fork(2), close(2), listen(2)
 */
#include "net.h"
#include "options.h"
#include "redis_pool.h"
#include "serve.h"
#include "stop.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

static struct board_slot slot; /* each child has a copy of its own */

static int claim_waiting_clients(const struct worker *worker)
{
    (void)worker;
    return stop_requested(); /* each client has a child of its own: nobody waits */
}

/* The child's whole life: one client. The kernel closes whatever is open when it exits. */
static _Noreturn void serve_in_child(struct worker *worker, int client,
                                     const struct redis_server *server)
{
    struct redis_pool redis;
    if (redis_pool_open(&redis, server, 1)) {
        serve_client(worker, client, &redis); /* owns client now, closes it */
        redis_pool_close(&redis);
    }
    _exit(0);
}

/* Hands the client to a child: from here on it is the child's, which closes it. */
static void fork_child(struct worker *worker, int client, const struct redis_server *server)
{
    pid_t pid = fork();
    if (pid == 0)
        serve_in_child(worker, client, server);
    if (pid < 0)
        serve_unavailable(worker,
                          client); /* no process to be had: 503; owns client now, closes it */
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;
    options_parse(&options, argc, argv, "descriptors", 0);
    app_start(&options);
    redis_start(&server, &options);
    int listener = net_listen(&options, true);
    struct worker worker = {
        .options = &options,
        .slot = &slot,
        .claim_waiting_clients = claim_waiting_clients,
        .listener = listener,
    };

    signal(SIGCHLD, SIG_IGN); /* the kernel keeps no zombies for us */
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
