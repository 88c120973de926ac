/* Exercise 05/p99: one thread accepts, four threads serve, and a queue connects them.
 *
 * Some clients want a page, which waits for Redis three times. Others want a file, which
 * is ready at once. All of them stand in one line, so the files are as late as the pages.
 *
 * Here: change who is served next, until the 99th percentile of the files is less than half
 * of what it is now. Four workers remain, and every page is still made.
 *
 * pthread_cond_wait(3), recv(2) MSG_PEEK, tcp(7) TCP_DEFER_ACCEPT
 */
#include "classroom/exercises/team.h"
#include "net.h"
#include "serve.h"
#include "stop.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WORKERS = 4 };

static struct team team; /* the workers, and their connections to Redis */

/* A client that waits for a worker. */
struct visit {
    int client;
    bool wants_page;
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

/* Does this client want a page? Looks at its request and leaves it in the socket. */
static bool wants_page(int client)
{
    static const char page[] = "GET /guestbook";
    char begin[sizeof(page) - 1];
    ssize_t n = recv(client, begin, sizeof(begin), MSG_PEEK | MSG_DONTWAIT);
    return n == (ssize_t)sizeof(begin) && memcmp(begin, page, sizeof(begin)) == 0;
}

/* False if there is no memory for it. */
static bool put(int client)
{
    struct visit *visit = malloc(sizeof(*visit));
    if (!visit)
        return false;
    visit->client = client;
    visit->wants_page = wants_page(client);
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
    const int seconds = 1; /* accept4() leaves out who has said nothing, for so long */
    setsockopt(worker->listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof(seconds));
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
    team_start(&team, argc, argv, "p99", WORKERS, serve_clients);
    accept_clients(team.own);
    close_queue();
    for (int i = 0; i < WORKERS; i++)
        pthread_join(team.threads[i], NULL);
    team_report(&team);
    return 0;
}
