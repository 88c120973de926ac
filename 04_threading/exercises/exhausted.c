/* Exercise 04/exhausted: a thread for every client, as long as there is enough of everything.
 *
 * There are two things of which a client costs one, and of which a process has
 * only so many: descriptors, and addresses for stacks. When either is used up,
 * this server ends, and takes everybody with it who is being served.
 *
 * accept(2), pthread_create(3), getrlimit(2)
 */
#include "board.h"
#include "net.h"
#include "redis_pool.h"
#include "serve.h"
#include "status.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STACK_BYTES = 256 * 1024 };

static struct redis_pool redis; /* locks itself */
static struct board *board;     /* claimed from by the main thread only */

/* What one thread is given, and owns. */
struct task {
    int client;
    struct worker worker;
};

static void *serve_one(void *argument)
{
    struct task *task = argument;
    task->worker.slot->owner = gettid();
    serve_client(&task->worker, task->client, &redis); /* owns client now, closes it */
    board_release(task->worker.slot);
    free(task);
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

/* The thread inherits a mask that blocks all signals: they are for the main thread. */
static int start_thread(const pthread_attr_t *attributes, struct task *task)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&thread, attributes, serve_one, task);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static void create_thread(const struct worker *pattern, int client,
                          const pthread_attr_t *attributes)
{
    struct task *task = malloc(sizeof(*task));
    if (!task)
        net_die(pattern->options->name, "no memory for a client");
    *task = (struct task){.client = client, .worker = *pattern};
    task->worker.slot = board_claim(board, getpid());
    int error = start_thread(attributes, task);
    if (error) /* Here: the others are being served; this one could be told why it is not. */
        net_die(pattern->options->name, "cannot create a thread: %s", strerror(error));
}

static void accept_and_create(const struct worker *pattern)
{
    pthread_attr_t attributes = thread_attributes();
    while (!net_stopping()) {
        int client = accept4(pattern->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0)
            create_thread(pattern, client, &attributes);
        else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            net_die(pattern->options->name, "cannot accept: %s", strerror(errno)); /* Here. */
    }
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;

    net_options(&options, argc, argv, "exhausted", 16384);
    app_start(&options);
    redis_start(&server, &options);
    board = board_open(options.workers);
    if (!board || !redis_pool_open(&redis, &server, 64))
        net_die(options.name, "%s", strerror(errno));
    status_start(&options, board, STATUS_THREADS, "a thread for every connection");
    int listener = net_listen(&options, true);
    net_catch_signals(true);
    net_ready(&options, listener);

    accept_and_create(&(struct worker){
        .options = &options,
        .how_many_wait = serve_how_many_wait,
        .listener = listener,
    });
    close(listener);
    return 0;
}
