/* Exercise 02/cap: a process for every connection, up to --workers of them.
 *
 * A server that forks for everybody is a fork bomb with the fuse outside, so
 * there is a limit. Whoever comes when it is reached is told 503 and sent away.
 * Let them wait in the accept queue instead, until a child has ended.
 *
 * fork(2), waitpid(2), sigtimedwait(2), listen(2)
 */
#include "children.h"
#include "net.h"
#include "redis_pool.h"
#include "serve.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct board_slot slot; /* each child has a copy of its own */

static int how_many_wait(const struct worker *worker)
{
    (void)worker;
    return net_stopping(); /* no child gives its client up for another */
}

static _Noreturn void child(struct worker *worker, int client, const struct redis_server *server)
{
    struct redis_pool redis;
    close(worker->listener); /* the parent's: it alone accepts */
    children_become_child();
    if (redis_pool_open(&redis, server, 1)) {
        serve_client(worker, client, &redis); /* owns client now, closes it */
        redis_pool_close(&redis);
    }
    _exit(0);
}

static void fork_child(struct worker *worker, int client, const struct redis_server *server,
                       struct children *children)
{
    pid_t pid = fork();
    if (pid == 0)
        child(worker, client, server);
    if (pid < 0) {
        serve_busy(worker, client); /* no process to be had: 503; owns client now, closes it */
        return;
    }
    close(client); /* the child's now */
    if (!children_add(children, pid, worker->slot))
        waitpid(pid, NULL, 0); /* no memory to remember it by */
}

/* How many children may there be, and what becomes of the next client? Here: the policy. */
static void accept_and_fork(struct worker *worker, const struct redis_server *server,
                            struct children *children)
{
    while (!net_stopping()) {
        int client = accept4(worker->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0)
            net_accept_failed(); /* a tick, mostly */
        children_reap(children);
        if (client >= 0 && HASH_COUNT(children->by_pid) >= (unsigned)worker->options->workers)
            serve_busy(worker, client); /* 503; owns client now, closes it */
        else if (client >= 0)
            fork_child(worker, client, server, children);
    }
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;
    struct children children = {0};
    net_options(&options, argc, argv, "cap", 100);
    app_start(&options);
    redis_start(&server, &options);
    int listener = net_listen(&options, true);
    struct worker worker = {
        .options = &options,
        .slot = &slot,
        .how_many_wait = how_many_wait,
        .listener = listener,
    };

    net_catch_signals(false);
    children_block_signal();
    net_ready(&options, listener);
    accept_and_fork(&worker, &server, &children);
    net_release_signals();
    children_stop(&children, net_stop_ms(&options));
    return 0;
}
