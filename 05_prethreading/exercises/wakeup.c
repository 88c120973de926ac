/* Exercise 05/wakeup: one thread accepts, four threads serve, and a queue connects them.
 *
 * When many clients come at once, the main thread accepts all that wait in the kernel's queue
 * and puts them into its own queue, taking the lock once for all of them. Clients that come
 * one after the other are served well. But a client that comes together with others
 * sometimes waits for seconds, although three of the four workers have nothing to do.
 *
 * pthread_cond_wait(3), pthread_cond_signal(3)
 */
#include "board.h"
#include "net.h"
#include "options.h"
#include "process.h"
#include "redis_pool.h"
#include "serve.h"
#include "start.h"
#include "stop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { WORKERS = 4, QUEUE_MOST = 1024 };

static struct redis_pool redis; /* locks itself */

/* Clients that wait for a worker, in a ring. Read and written with `lock` held. */
static struct {
    int clients[QUEUE_MOST];
    int first, count;
    bool closed; /* no more clients will come */
    pthread_mutex_t lock;
    pthread_cond_t changed;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Adds as many as there is room for. Returns how many. */
static int put(const int *clients, int count)
{
    int added = 0;
    pthread_mutex_lock(&queue.lock);
    while (added < count && queue.count < QUEUE_MOST)
        queue.clients[(queue.first + queue.count++) % QUEUE_MOST] = clients[added++];
    pthread_mutex_unlock(&queue.lock);
    pthread_cond_signal(&queue.changed);
    return added;
}

/* The next client, as soon as there is one. -1: no more will come. */
static int take(void)
{
    int client = -1;
    pthread_mutex_lock(&queue.lock);
    while (queue.count == 0 && !queue.closed)
        pthread_cond_wait(&queue.changed, &queue.lock);
    if (queue.count > 0) {
        client = queue.clients[queue.first];
        queue.first = (queue.first + 1) % QUEUE_MOST;
        queue.count--;
    }
    pthread_mutex_unlock(&queue.lock);
    return client;
}

static void close_queue(void)
{
    pthread_mutex_lock(&queue.lock);
    queue.closed = true;
    pthread_mutex_unlock(&queue.lock);
    pthread_cond_broadcast(&queue.changed);
}

/* A worker's whole life. */
static void *serve_clients(void *argument)
{
    int client;
    while ((client = take()) >= 0)
        serve_client(argument, client, &redis); /* owns client now, closes it */
    return NULL;
}

/* Sleeps until a client comes, and accepts all that have come by then. Returns how many. */
static int accept_all(int listener, int *clients, int most)
{
    int count = 0;
    do {
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0) {
            net_handle_accept_error();
            break;
        }
        clients[count++] = client;
    } while (count < most && net_accept_queue_length(listener) > 0);
    return count;
}

/* The main thread's work, until the signal to stop. Only this thread takes signals. */
static void accept_clients(struct worker *worker)
{
    int clients[64];
    while (!stop_requested()) {
        int count = accept_all(worker->listener, clients, 64);
        if (count == 0)
            continue; /* a tick, or a signal */
        for (int i = put(clients, count); i < count; i++)
            serve_unavailable(worker, clients[i]);
    }
    close(worker->listener);
}

static void create_threads(const struct options *options, pthread_t *threads,
                           struct worker *workers)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the threads inherit it */
    for (int i = 0; i < WORKERS; i++)
        if (pthread_create(&threads[i], NULL, serve_clients, &workers[i]) != 0)
            process_die(options->name, "cannot create %d threads", WORKERS);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;
    struct worker workers[WORKERS + 1]; /* the last one is the main thread's */
    pthread_t threads[WORKERS];

    options_parse(&options, argc, argv, "wakeup", 0);
    struct board *board =
        start_server(&options, &server, WORKERS + 1, STATUS_THREADS, "threads fed by a queue");
    if (!redis_pool_open(&redis, &server, WORKERS))
        process_die(options.name, "cannot start: %s", strerror(errno));
    int listener = net_listen(&options, true);
    stop_catch_signals(true);
    for (int i = 0; i <= WORKERS; i++)
        workers[i] = (struct worker){
            .options = &options,
            .slot = board_claim(board, getpid()),
            .claim_waiting_clients = serve_waiting_clients,
            .listener = listener,
        };
    create_threads(&options, threads, workers);
    net_announce(&options, listener);

    accept_clients(&workers[WORKERS]);
    close_queue();
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    process_report(&options, board_requests(board), board_connections(board));
    return 0;
}
