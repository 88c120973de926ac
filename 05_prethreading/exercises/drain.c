/* Exercise 05/drain: one thread accepts, four threads serve, and a queue connects them.
 *
 * A client that has been accepted depends on this server: the kernel has handed it over, and
 * no other server will answer it. When this server is asked to stop, its workers finish the
 * clients that they are serving, and it ends with status 0. Yet on busy evenings visitors
 * complain that at each restart some of them lose their page.
 *
 * pthread_cond_wait(3), pthread_join(3), signal(7)
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

/* False if it is full. */
static bool put(int client)
{
    pthread_mutex_lock(&queue.lock);
    bool room = queue.count < QUEUE_MOST;
    if (room)
        queue.clients[(queue.first + queue.count++) % QUEUE_MOST] = client;
    pthread_mutex_unlock(&queue.lock);
    pthread_cond_signal(&queue.changed);
    return room;
}

/* The next client, as soon as there is one. -1: no more will come. */
static int take(void)
{
    int client = -1;
    pthread_mutex_lock(&queue.lock);
    while (queue.count == 0 && !queue.closed)
        pthread_cond_wait(&queue.changed, &queue.lock);
    if (!queue.closed) {
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

/* The main thread's work, until the signal to stop. Only this thread takes signals. */
static void accept_clients(struct worker *worker)
{
    while (!stop_requested()) {
        int client = accept4(worker->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0)
            net_handle_accept_error();
        else if (!put(client))
            serve_unavailable(worker, client);
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

    options_parse(&options, argc, argv, "drain", 0);
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
