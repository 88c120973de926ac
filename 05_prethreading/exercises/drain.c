/* Exercise 05/drain: one thread accepts, four threads serve, and a queue connects them.
 *
 * A client that has been accepted depends on this server: the kernel has handed it over, and
 * no other server will answer it. When this server is asked to stop, its workers finish the
 * clients that they are serving, and it ends with status 0. Yet on busy evenings visitors
 * complain that at each restart some of them lose their page.
 *
 * pthread_cond_wait(3), pthread_join(3), signal(7)
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
        serve_client(argument, client, &team.redis); /* owns client now, closes it */
    return NULL;
}

/* The main thread's work, until the signal to stop. */
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

int main(int argc, char **argv)
{
    team_start(&team, argc, argv, "drain", WORKERS, serve_clients);
    accept_clients(team.own);
    close_queue();
    for (int i = 0; i < WORKERS; i++)
        pthread_join(team.threads[i], NULL);
    team_report(&team);
    return 0;
}
