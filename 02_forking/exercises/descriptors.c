/* Exercise 02/descriptors: a process for every connection, and one that counts.
 *
 * Each child writes a byte into a pipe when it has served its visitor. A process
 * of its own, the counter, reads the bytes. When the pipe ends, it prints how
 * many there were. But the counter never ends; and when the parent has been
 * killed, the next server finds its port taken.
 *
 * fork(2), close(2), pipe(2), listen(2)
 */
#include "net.h"
#include "options.h"
#include "process.h"
#include "redis_pool.h"
#include "serve.h"
#include "stop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct board_slot slot; /* each child has a copy of its own */

static int listener;
static int served[2]; /* a pipe: what is written to served[1] can be read from served[0] */

static int claim_waiting_clients(const struct worker *worker)
{
    (void)worker;
    return stop_requested(); /* no child gives its client up for another */
}

/* The counter's whole life: it reads until the pipe ends, and prints the sum. */
static _Noreturn void count_visitors(void)
{
    char bytes[64];
    long visitors = 0;
    ssize_t n;
    signal(SIGINT, SIG_IGN); /* Ctrl-C is for the parent, and we are to end after it */
    while ((n = read(served[0], bytes, sizeof(bytes))) > 0)
        visitors += n;
    printf("%ld visitors\n", visitors);
    fflush(stdout);
    _exit(0);
}

/* A child's whole life: one visitor, and one byte. */
static _Noreturn void serve_in_child(struct worker *worker, int client,
                                     const struct redis_server *server)
{
    struct redis_pool redis;
    close(listener); /* only the parent accepts */
    if (redis_pool_open(&redis, server, 1)) {
        serve_client(worker, client, &redis); /* owns client now, closes it */
        redis_pool_close(&redis);
    }
    _exit(write(served[1], ".", 1) == 1 ? 0 : 1);
}

static void fork_child(struct worker *worker, int client, const struct redis_server *server)
{
    pid_t pid = fork();
    if (pid == 0)
        serve_in_child(worker, client, server);
    if (pid < 0)
        serve_unavailable(worker, client); /* no process left: 503; owns client now, closes it */
    else
        close(client); /* the child has a copy */
}

static void start_counter(const struct options *options)
{
    pid_t pid = pipe2(served, O_CLOEXEC) == 0 ? fork() : -1;
    if (pid < 0)
        process_die(options->name, "no counter: %s", strerror(errno));
    if (pid == 0)
        count_visitors();
    close(served[0]); /* only the counter reads */
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;
    options_parse(&options, argc, argv, "descriptors", 0);
    process_start();
    app_start(&options);
    redis_find(&server, &options);
    listener = net_listen(&options, true);
    start_counter(&options);
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
