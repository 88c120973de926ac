/* Exercise 02/zombies: a process for every connection, and each is buried.
 *
 * When a child ends, the kernel sends its parent SIGCHLD. The handler asks how
 * it ended, and the child is gone from the process table. On a quiet day ps(1)
 * shows no zombie; after a busy hour it shows hundreds, and they stay.
 *
 * fork(2), waitpid(2), sigaction(2), signal-safety(7)
 */
#include "net.h"
#include "options.h"
#include "redis_pool.h"
#include "serve.h"
#include "stop.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct board_slot slot; /* each child has a copy of its own */

static int claim_waiting_clients(const struct worker *worker)
{
    (void)worker;
    return stop_requested(); /* each client has a child of its own: nobody waits */
}

/* A child has ended. Whatever was interrupted finds its errno as it was; and WNOHANG, since a
 * handler must not sleep. */
static void bury(int signal_number)
{
    (void)signal_number;
    int before = errno;
    waitpid(-1, NULL, WNOHANG);
    errno = before;
}

static _Noreturn void serve_in_child(struct worker *worker, int client,
                                     const struct redis_server *server)
{
    struct redis_pool redis;
    close(worker->listener); /* the parent's: it alone accepts */
    if (redis_pool_open(&redis, server, 1)) {
        serve_client(worker, client, &redis); /* owns client now, closes it */
        redis_pool_close(&redis);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;
    options_parse(&options, argc, argv, "zombies", 0);
    app_start(&options);
    redis_start(&server, &options);
    int listener = net_listen(&options, true);
    struct worker worker = {
        .options = &options,
        .slot = &slot,
        .claim_waiting_clients = claim_waiting_clients,
        .listener = listener,
    };

    struct sigaction ended = {.sa_handler = bury, .sa_flags = SA_RESTART | SA_NOCLDSTOP};
    sigaction(SIGCHLD, &ended, NULL);
    stop_catch_signals(true);
    net_announce(&options, listener);
    while (!stop_requested()) {
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0) {
            net_handle_accept_error();
            continue;
        }
        pid_t pid = fork();
        if (pid == 0)
            serve_in_child(&worker, client, &server);
        if (pid < 0)
            serve_unavailable(&worker,
                              client); /* no process to be had: 503; owns client now, closes it */
        else
            close(client); /* the child's now */
    }
    return 0;
}
