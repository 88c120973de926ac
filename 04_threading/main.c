/* Chapter 4: threading. A thread for every connection.
 *
 * The model: chapter 2 with threads in place of processes. The main thread accepts
 * a client and creates a detached thread, which serves that client and ends.
 *
 * What blocks whom: nobody blocks anybody, up to --workers threads at once. All
 * threads share a pool of Redis connections. While all of these are lent out, a
 * thread that needs one waits.
 *
 * What it costs: a thread for each connection. Creating one takes some
 * microseconds, where a process with a Redis connection of its own takes hundreds.
 * A stack is only address space until the thread writes to it, so thousands fit.
 *
 * What it gives up: threads share everything, so one fault ends the whole process,
 * and every client loses its connection. In chapter 2 one client did.
 *
 * pthread_create(3), pthread_attr_setsigmask_np(3), pthread_attr_setstacksize(3),
 * pthread_cond_timedwait(3), pthreads(7)
 */
#include "app.h"
#include "net.h"
#include "process.h"
#include "serve.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* What all threads share, and why each part is safe. */
static struct redis_pool redis; /* has a lock of its own */
static int alive;               /* how many threads; read and written only with `lock` held */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t thread_ended = PTHREAD_COND_INITIALIZER;

/* What the main thread hands to a new thread. It is allocated, because by the time the new thread
 * reads it, the main thread may have changed its own variables. The thread owns it and frees it. */
struct task {
    int client;
    struct worker worker;
};

/* Changes the count and returns the new one. add_threads(0) only reads it. */
static int add_threads(int more)
{
    pthread_mutex_lock(&lock);
    int now = alive += more;
    pthread_mutex_unlock(&lock);
    return now;
}

/* Waits until at most `most` threads are alive. Returns false if more are left after `ms`. */
static bool wait_for_threads(int most, int ms)
{
    struct timespec deadline = clock_deadline(ms);
    int error = 0;
    pthread_mutex_lock(&lock);
    while (alive > most && error != ETIMEDOUT)
        error = pthread_cond_clockwait(&thread_ended, &lock, CLOCK_MONOTONIC, &deadline);
    bool enough = alive <= most;
    pthread_mutex_unlock(&lock);
    return enough;
}

/* A thread's whole life. */
static void *serve_one_client(void *argument)
{
    struct task *task = argument;
    task->worker.slot->owner = gettid();
    serve_client(&task->worker, task->client, &redis); /* owns client now, closes it */
    board_release(task->worker.slot);
    free(task);
    add_threads(-1); /* from here on the main thread may end the program */
    pthread_cond_signal(&thread_ended);
    return NULL;
}

/* Hands the client to a new thread. The thread is counted before it exists, because it may have
 * ended by the time pthread_create() returns. */
static void create_thread(const struct worker *pattern, int client,
                          const pthread_attr_t *attributes)
{
    pthread_t thread;
    struct task *task = malloc(sizeof(*task));
    if (!task) { /* not even memory for a 503 */
        close(client);
        return;
    }
    *task = (struct task){.client = client, .worker = *pattern};
    task->worker.slot = board_claim(pattern->board, getpid()); /* only the main thread claims */
    int others = add_threads(+1) - 1;
    while (pthread_create(&thread, attributes, serve_one_client, task) != 0) {
        if (others == 0 || stop_requested()) { /* nobody can make way: 503 */
            serve_unavailable(&task->worker, client);
            board_release(task->worker.slot);
            free(task);
            add_threads(-1);
            return;
        }
        /* No thread left: a limit, like --workers. Wait until another one has made way. */
        pattern->board->waiting = 1 + net_accept_queue_length(pattern->listener);
        wait_for_threads(others, TICK_MS / 4);
        others = add_threads(0) - 1;
    }
}

static void accept_and_create(const struct worker *pattern)
{
    /* Detached: nobody joins the thread, so its stack is freed as soon as it ends. It blocks all
     * signals, because they are meant to interrupt the main thread's accept4(). */
    pthread_attr_t attributes;
    sigset_t all;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setsigmask_np(&attributes, &all);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, SERVE_STACK);

    while (!stop_requested()) {
        if (add_threads(0) == pattern->options->workers) {
            pattern->board->waiting = net_accept_queue_length(pattern->listener);
            wait_for_threads(pattern->options->workers - 1, TICK_MS / 4);
            continue; /* at the cap: the next client waits in the accept queue */
        }
        pattern->board->waiting = 0;
        int client = accept4(pattern->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0)
            create_thread(pattern, client, &attributes);
        else
            net_handle_accept_error();
    }
    pthread_attr_destroy(&attributes);
}

int main(int argc, char **argv)
{
    /* static: a late thread may read it while main() ends */
    static struct options options = {.name = "threading", .workers = 16384, .pool = OPTIONS_TEAM};
    static struct redis_server server;

    options_parse(&options, argc, argv);
    struct board *board =
        app_start(&options, &server, options.workers, "a thread for every connection");
    struct worker pattern = {
        .options = &options,
        .board = board,
        .listener = net_listen(&options, true),
        .count_waiting = serve_waiting_on_board, /* as in chapter 2 */
    };
    stop_catch_signals(true);
    redis_pool_open(&redis, &server, options.pool);
    process_reserve_descriptors(options.workers + options.pool);
    net_announce(&options, pattern.listener);

    accept_and_create(&pattern);

    close(pattern.listener);
    if (wait_for_threads(0, stop_grace_ms(&options)))
        redis_pool_close(&redis);
    process_report(&options, board_requests(board), board_connections(board));
    return 0;
}
