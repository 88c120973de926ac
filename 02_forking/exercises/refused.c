/* Exercise 02/refused: a process for every connection, while there are any.
 *
 * fork(2) can fail: EAGAIN, too many processes; ENOMEM. A visitor's coming has
 * caused that, and yet the whole server ends here. It is to tell that visitor
 * 503, and to be there for the next one.
 *
 * fork(2), close(2)
 */
#include "net.h"
#include "redis_pool.h"
#include "serve.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct board_slot slot; /* each child has a copy of its own */

static int how_many_wait(const struct worker *worker)
{
    (void)worker;
    return net_stopping(); /* each client has a child of its own: nobody waits */
}

static _Noreturn void child(struct worker *worker, int client, const struct redis_server *server)
{
    struct redis_pool redis;
    close(worker->listener); /* the parent's: it alone accepts */
    if (redis_pool_open(&redis, server, 1)) {
        serve_client(worker, client, &redis); /* owns client now, closes it */
        redis_pool_close(&redis);
    }
    _exit(0);
}

/* Hands the client to a child. Here: and if there is none to be had? */
static void fork_child(struct worker *worker, int client, const struct redis_server *server)
{
    pid_t pid = fork();
    if (pid < 0)
        net_die(worker->options->name, "cannot fork: %s", strerror(errno));
    if (pid == 0)
        child(worker, client, server);
    close(client); /* the child's now */
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;
    net_options(&options, argc, argv, "refused", 0);
    app_start(&options);
    redis_start(&server, &options);
    int listener = net_listen(&options, true);
    struct worker worker = {
        .options = &options,
        .slot = &slot,
        .how_many_wait = how_many_wait,
        .listener = listener,
    };

    signal(SIGCHLD, SIG_IGN); /* the kernel keeps no zombies for us */
    net_catch_signals(true);
    net_ready(&options, listener);
    while (!net_stopping()) {
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0)
            fork_child(&worker, client, &server);
        else
            net_accept_failed();
    }
    return 0;
}
