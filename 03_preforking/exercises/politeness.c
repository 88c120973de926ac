/* Exercise 03/politeness: workers made beforehand, and clients who stay.
 *
 * HTTP keeps a connection after the response. Each client that stays has a
 * worker to itself, says nothing for seconds, and whoever comes next stands
 * outside. Let an idle one go when somebody waits.
 *
 * accept(2), signal(7); RFC 9112, section 9.3
 */
#include "children.h"
#include "net.h"
#include "redis_pool.h"
#include "serve.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

static struct board_slot slot; /* each worker has a copy of its own */

/* serve_client() asks this at each tick, as long as its client is idle, and gives the client up if
 * the answer is more than 0. One that is owed a response, or is in the middle of a request, is
 * never given up. conn.h says more, at `how_many_wait`. Here: the policy. */
static int how_many_wait(const struct worker *worker)
{
    (void)worker;
    return 0; /* first come, first served, for as long as they like */
}

static _Noreturn void work(struct worker *worker, const struct redis_server *server, pid_t parent)
{
    struct redis_pool redis;
    children_become_child();
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* no worker outlives the parent */
    if (getppid() != parent || !redis_pool_open(&redis, server, 1))
        _exit(1);
    while (!net_stopping()) {
        int client = accept4(worker->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0)
            serve_client(worker, client, &redis); /* owns client now, closes it */
        else
            net_accept_failed();
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;
    net_options(&options, argc, argv, "politeness", 4);
    app_start(&options);
    redis_start(&server, &options);
    int listener = net_listen(&options, true);
    struct worker worker = {
        .options = &options,
        .slot = &slot,
        .how_many_wait = how_many_wait,
        .listener = listener,
    };

    net_catch_signals(true);
    children_block_signal();
    net_ready(&options, listener);
    pid_t parent = getpid();
    for (int i = 0; i < options.workers; i++)
        if (fork() == 0)
            work(&worker, &server, parent);
    while (!net_stopping())
        children_wait(TICK_MS); /* and replaces nobody: that is another exercise */
    return 0;                   /* the workers end when we do */
}
