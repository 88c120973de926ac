/* Chapter 4: threading. A thread for every connection.
 *
 * The model: chapter 2 with threads for processes. The main thread accepts and
 * creates a detached thread; that serves the one client and ends.
 *
 * What blocks whom: nobody blocks anybody, up to --workers threads at once, as
 * long as there are Redis connections: the threads share a pool of them.
 *
 * What it costs: a thread for each connection, a third of what a fork costs. A
 * stack is address space until it is touched, so that thousands fit.
 *
 * What it takes away: threads share everything, a crash included. One fault
 * ends all clients, where chapter 2 lost one.
 *
 * pthread_create(3), pthread_attr_setstacksize(3), sem_clockwait(3), pthreads(7)
 */
#include "board.h"
#include "net.h"
#include "redis.h"
#include "serve.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    STACK_BYTES = 256 * 1024, /* deep enough for hiredis, and four times over */
    REDIS_CONNECTIONS = 64,   /* more than one Redis, on one core, can keep busy */
};

/* What all threads share. Each part says why that is safe. */
static struct redis_pool redis; /* locks itself */
static sem_t room;          /* threads that may still be created; a semaphore is made for this */
static struct board *board; /* claimed from by the main thread only */

/* What one thread is given: allocated, because the main thread's variables will
 * have changed by the time it looks. The thread owns it. */
struct task {
    int client;
    struct worker worker;
};

static bool somebody_waits(const struct worker *worker)
{
    int left = 0;
    sem_getvalue(&room, &left);
    return net_stopping() || (left == 0 && net_somebody_waits(worker->listener));
}

/* The thread's whole life. */
static void *serve_one(void *argument)
{
    struct task *task = argument;
    serve_client(&task->worker, task->client, &redis); /* owns client now, closes it */
    board_release(task->worker.slot);
    free(task);
    sem_post(&room); /* last: from here on the main thread may end the program */
    return NULL;
}

/* Detached: nobody joins it, its memory goes when it ends. All signals blocked:
 * they are the main thread's, whose accept4() they are to interrupt. */
static pthread_attr_t thread_attributes(void)
{
    pthread_attr_t attributes;
    sigset_t all;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setsigmask_np(&attributes, &all);
    return attributes;
}

/* Hands the client to a thread; the place in `room` is the thread's to give back. */
static void create_thread(const struct worker *pattern, int client,
                          const pthread_attr_t *attributes)
{
    pthread_t thread;
    struct worker worker = *pattern;
    struct task *task = malloc(sizeof(*task));
    worker.slot = board_claim(board, getpid());
    if (task) {
        *task = (struct task){.client = client, .worker = worker};
        if (pthread_create(&thread, attributes, serve_one, task) == 0)
            return;
    }
    serve_busy(&worker, client); /* no thread to be had: 503, and the rest live */
    board_release(worker.slot);
    free(task);
    sem_post(&room);
}

/* Waits for room for one more thread, a tick at most. */
static bool wait_for_room(void)
{
    struct timespec tick = net_time_from_now(TICK_MS);
    return sem_clockwait(&room, CLOCK_MONOTONIC, &tick) == 0;
}

static void accept_and_create(const struct worker *pattern)
{
    pthread_attr_t attributes = thread_attributes();
    while (!net_stopping()) {
        if (!wait_for_room())
            continue;
        int client = accept4(pattern->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0) {
            create_thread(pattern, client, &attributes);
        } else {
            sem_post(&room);
            net_accept_failed();
        }
    }
    pthread_attr_destroy(&attributes);
}

/* All threads are gone when their places are all free. */
static bool wait_for_threads(int threads)
{
    struct timespec deadline = net_time_from_now(STOP_MS);
    while (threads > 0) {
        if (sem_clockwait(&room, CLOCK_MONOTONIC, &deadline) == 0)
            threads--;
        else if (errno == ETIMEDOUT)
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;

    net_options(&options, argc, argv, "threading", 16384);
    app_start(&options);
    redis_start(&server, &options);
    board = board_open(options.workers);
    if (!board || !redis_pool_open(&redis, &server, REDIS_CONNECTIONS))
        net_die(options.name, "%s", strerror(errno));
    sem_init(&room, 0, (unsigned)options.workers);
    int listener = net_listen(&options, true);
    net_catch_signals(true);
    net_ready(&options, listener);

    accept_and_create(&(struct worker){
        .options = &options,
        .somebody_waits = somebody_waits,
        .listener = listener,
    });

    close(listener);
    if (wait_for_threads(options.workers))
        redis_pool_close(&redis);
    net_report(&options, board_requests(board), board_connections(board));
    return 0;
}
