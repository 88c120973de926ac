/* Exercise 05/wakeup: one thread accepts, four threads serve, and a queue connects them.
 *
 * When many clients come at once, the main thread accepts all that wait in the kernel's queue
 * and puts them into its own queue, taking the lock once for all of them. Clients that come
 * one after the other are served well. But a client that comes together with others
 * sometimes waits for seconds, although three of the four workers have nothing to do.
 *
 * pthread_cond_wait(3), pthread_cond_signal(3)
 */
#include "classroom/exercises/team.h"
#include "net.h"
#include "serve.h"
#include "stop.h"

#include <pthread.h>
#include <unistd.h>

enum { WORKERS = 4, QUEUE_MOST = 1024 };

static struct team team; /* the workers, and their connections to Redis */

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
        serve_client(argument, client, &team.redis); /* owns client now, closes it */
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

/* The main thread's work, until the signal to stop. */
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

int main(int argc, char **argv)
{
    team_start(&team, argc, argv, "wakeup", WORKERS, serve_clients);
    accept_clients(team.own);
    close_queue();
    for (int i = 0; i < WORKERS; i++)
        pthread_join(team.threads[i], NULL);
    team_report(&team);
    return 0;
}
