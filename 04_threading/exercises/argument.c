/* Exercise 04/argument: a thread for every client, and --workers seats.
 *
 * The server accepts each client at once and creates a thread for it at once. But
 * only --workers threads serve at a time. The others wait until a seat is free.
 * Clients that come one after the other are served well. When several come
 * together, some of them never get an answer.
 *
 * pthread_create(3), sem_wait(3), accept4(2)
 */
#include "board.h"
#include "net.h"
#include "options.h"
#include "process.h"
#include "redis_pool.h"
#include "serve.h"
#include "status.h"
#include "stop.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { STACK_BYTES = 256 * 1024 };

static struct redis_pool redis; /* has a lock of its own */
static struct board *board;     /* only the main thread claims slots */
static sem_t seats;             /* how many more threads may serve now */

/* What the main thread hands to a new thread. */
struct task {
    int client;
    struct worker worker;
};

/* A thread's whole life. */
static void *serve_one_client(void *argument)
{
    struct task *task = argument;
    sem_wait(&seats);
    task->worker.slot->owner = gettid();
    serve_client(&task->worker, task->client, &redis); /* owns client now, closes it */
    board_release(task->worker.slot);
    sem_post(&seats);
    return NULL;
}

/* Detached, with a small stack. */
static pthread_attr_t thread_attributes(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    return attributes;
}

/* The new thread inherits a mask that blocks all signals, because they are for the main thread. */
static int start_thread(const pthread_attr_t *attributes, struct task *task)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&thread, attributes, serve_one_client, task);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static void accept_and_create(const struct worker *pattern)
{
    pthread_attr_t attributes = thread_attributes();
    struct task task = {.worker = *pattern};

    while (!stop_requested()) {
        int client = accept4(pattern->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0) {
            net_handle_accept_error();
            continue;
        }
        task.client = client;
        task.worker.slot = board_claim(board, getpid());
        if (start_thread(&attributes, &task) != 0) {
            serve_unavailable(&task.worker, client); /* no thread for this client: 503 */
            board_release(task.worker.slot);
        }
    }
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;

    options_parse(&options, argc, argv, "argument", 100);
    app_start(&options);
    redis_start(&server, &options);
    board = board_open(16384);
    if (!board || !redis_pool_open(&redis, &server, options.workers))
        process_die(options.name, "%s", strerror(errno));
    sem_init(&seats, 0, (unsigned)options.workers);
    status_start(&options, board, STATUS_THREADS, "a thread for every connection, and seats");
    int listener = net_listen(&options, true);
    stop_catch_signals(true);
    net_announce(&options, listener);

    accept_and_create(&(struct worker){
        .options = &options,
        .claim_waiting_clients = serve_waiting_clients,
        .listener = listener,
    });
    close(listener);
    return 0;
}
