/* Chapter 5: prethreading. A fixed number of threads, each of which accepts its own clients.
 *
 * The model: chapter 3 with threads in place of processes. --workers threads sleep in
 * accept4() on the same listening socket. Each of them is chapter 1's server, with a
 * Redis connection of its own. The main thread waits for the signal to stop.
 *
 * What blocks whom: a client blocks one thread. A client that comes while all threads
 * are busy waits in the accept queue.
 *
 * What it costs: a new client costs neither a thread nor a lock of ours. The accept
 * queue is in the kernel, which wakes one sleeping thread for each client. A mutex
 * around accept4(), as older books have it, would only put a second queue in front of
 * the first.
 *
 * pthread_create(3), pthread_attr_setsigmask_np(3), pthread_tryjoin_np(3), signal(7)
 */
#include "app.h"
#include "net.h"
#include "process.h"
#include "serve.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What belongs to one thread alone. Each member begins a cache line of its own. */
struct member {
    _Alignas(64) pthread_t thread;
    struct worker worker;
    struct redis_pool redis; /* of one connection */
};

/* A thread's whole life: chapter 1's loop. */
static void *serve_clients(void *argument)
{
    struct member *member = argument;
    member->worker.slot->owner = gettid();
    while (!stop_requested()) {
        int client = accept4(member->worker.listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0)
            serve_client(&member->worker, client, &member->redis); /* owns client now, closes it */
        else
            net_handle_accept_error();
    }
    redis_pool_close(&member->redis);
    return NULL;
}

/* The threads block all signals, so it is the main thread that gets them, as in chapter 4. */
static struct member *create_threads(const struct worker *pattern,
                                     const struct redis_server *server)
{
    const struct options *options = pattern->options;
    struct member *team =
        aligned_alloc(_Alignof(struct member), (size_t)options->workers * sizeof(*team));
    if (!team)
        process_die(options->name, "no memory for %d threads", options->workers);
    pthread_attr_t attributes;
    sigset_t all;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setsigmask_np(&attributes, &all);
    pthread_attr_setstacksize(&attributes, SERVE_STACK);
    for (struct member *member = team; member < team + options->workers; member++) {
        member->worker = *pattern;
        member->worker.slot = board_claim(pattern->board, getpid());
        redis_pool_open(&member->redis, server, 1);
        int error = pthread_create(&member->thread, &attributes, serve_clients, member);
        if (error)
            process_die(options->name, "cannot create %d threads: %s; try --workers with fewer",
                        options->workers, strerror(error));
    }
    pthread_attr_destroy(&attributes);
    return team;
}

/* Waits until all threads have finished their clients. A thread that is still busy at the deadline
 * ends with the program. (pthread_timedjoin_np() goes by the wall clock, which may be set back, and
 * the thread sanitizer does not know pthread_clockjoin_np().) */
static void join_threads(struct member *team, const struct options *options)
{
    int64_t deadline = clock_now_ms() + stop_grace_ms(options);
    for (struct member *member = team; member < team + options->workers; member++)
        while (pthread_tryjoin_np(member->thread, NULL) != 0) {
            if (clock_now_ms() >= deadline)
                return; /* without free(): this thread still uses its member */
            poll(NULL, 0, TICK_MS / 20);
        }
    free(team);
}

int main(int argc, char **argv)
{
    /* static: a late thread may read them while main() ends */
    static struct options options = {.name = "prethreading", .workers = OPTIONS_TEAM};
    static struct redis_server server;
    const struct timespec tick = {.tv_nsec = TICK_MS * 1000000L};

    options_parse(&options, argc, argv);
    struct board *board = app_start(&options, &server, options.workers, "threads made beforehand");
    struct worker pattern = {
        .options = &options,
        .board = board,
        .listener = net_listen(&options, true),
        .count_waiting = serve_waiting_in_queue,
    };
    stop_catch_signals(true);
    /* Each thread has Redis, a client, and a file. accept4() takes the client's number before it
     * sleeps. */
    if (!process_reserve_descriptors(3 * options.workers))
        process_die(options.name, "too few descriptors for %d threads; try --workers with fewer",
                    options.workers);
    struct member *team = create_threads(&pattern, &server);
    net_announce(&options, pattern.listener);

    while (!stop_requested())
        nanosleep(&tick, NULL); /* or until the signal comes */

    shutdown(pattern.listener, SHUT_RDWR); /* refuses new clients, and ends every accept4() */
    join_threads(team, &options);
    process_report(&options, board_requests(board), board_connections(board));
    return 0;
}
