/* Exercise 05/bounded: one thread accepts, four threads serve, and a queue connects them.
 *
 * The queue takes every client. When more clients come than four workers can serve, it grows,
 * and all of them wait longer and longer. In the end each client has given up before its turn
 * comes. Then the server works as hard as it can, for nobody.
 *
 * pthread_cond_wait(3), RFC 9110 section 15.6.4 for 503
 */
#include "classroom/exercises/team.h"
#include "net.h"
#include "serve.h"
#include "stop.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

enum { WORKERS = 4, QUEUE_MOST = 10 }; /* Here: so many may wait. The next one gets a 503. */

static struct team team; /* the workers, and their connections to Redis */

/* A client that waits for a worker. */
struct visit {
    int client;
    STAILQ_ENTRY(visit) next;
};

/* All of them, in the order in which they came. Read and written with `lock` held. */
static struct {
    STAILQ_HEAD(, visit) visits;
    bool closed; /* no more clients will come */
    pthread_mutex_t lock;
    pthread_cond_t changed;
} queue = {
    .visits = STAILQ_HEAD_INITIALIZER(queue.visits),
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER,
};

/* False if there is no memory for it. */
static bool put(int client)
{
    struct visit *visit = malloc(sizeof(*visit));
    if (!visit)
        return false;
    visit->client = client;
    pthread_mutex_lock(&queue.lock);
    STAILQ_INSERT_TAIL(&queue.visits, visit, next);
    pthread_mutex_unlock(&queue.lock);
    pthread_cond_signal(&queue.changed);
    return true;
}

/* The next client, as soon as there is one. -1: no more will come. */
static int take(void)
{
    pthread_mutex_lock(&queue.lock);
    while (STAILQ_EMPTY(&queue.visits) && !queue.closed)
        pthread_cond_wait(&queue.changed, &queue.lock);
    struct visit *visit = STAILQ_FIRST(&queue.visits);
    if (visit)
        STAILQ_REMOVE_HEAD(&queue.visits, next);
    pthread_mutex_unlock(&queue.lock);
    int client = visit ? visit->client : -1;
    free(visit);
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
    team_start(&team, argc, argv, "bounded", WORKERS, serve_clients);
    accept_clients(team.own);
    close_queue();
    for (int i = 0; i < WORKERS; i++)
        pthread_join(team.threads[i], NULL);
    team_report(&team);
    return 0;
}
