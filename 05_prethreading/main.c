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
 * pthread_create(3), pthread_join(3), sigsuspend(2), signal(7)
 */
#include "board.h"
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

static struct member *create_threads(const struct options *options, int listener,
                                     const struct redis_server *server, struct board *board)
{
    struct member *team =
        aligned_alloc(_Alignof(struct member), (size_t)options->workers * sizeof(*team));
    if (!team)
        process_die(options->name, "cannot start: %s", strerror(errno));
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, SERVE_STACK);
    for (struct member *member = team; member < team + options->workers; member++) {
        member->worker = (struct worker){
            .options = options,
            .board = board,
            .slot = board_claim(board, getpid()),
            .claim_waiting_clients = serve_waiting_clients,
            .listener = listener,
        };
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
    sigset_t stop_signals, before;

    options_parse(&options, argc, argv);
    struct board *board = app_start(&options, &server, options.workers, "threads made beforehand");
    int listener = net_listen(&options, true);
    stop_catch_signals(true);
    /* Each thread has Redis, and a client. accept4() takes the client's number before it sleeps. */
    if (!process_reserve_descriptors(2 * options.workers))
        process_die(options.name, "too few descriptors for %d threads; try --workers with fewer",
                    options.workers);

    /* The threads inherit this mask, so no worker takes the signal. It stays pending until the
     * main thread takes it, in sigsuspend(). */
    sigemptyset(&stop_signals);
    sigaddset(&stop_signals, SIGTERM);
    sigaddset(&stop_signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop_signals, &before);
    struct member *team = create_threads(&options, listener, &server, board);
    net_announce(&options, listener);

    while (!stop_requested())
        sigsuspend(&before);
    pthread_sigmask(SIG_SETMASK, &before, NULL); /* a second signal ends us at once */

    shutdown(listener, SHUT_RDWR); /* refuses new clients, and ends every accept4() */
    join_threads(team, &options);
    close(listener);
    process_report(&options, board_requests(board), board_connections(board));
    return 0;
}
