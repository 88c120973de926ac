/* Exercise 05/wakeup: one thread accepts, four threads serve, and a queue connects them.
 * The task is in 05_prethreading/exercises/wakeup.md.
 * Manual pages: pthread_cond_wait(3), pthread_cond_signal(3)
 */
#include "classroom/exercises/team.h"

/* Adds as many as there is memory for. Returns how many. */
static int put(const int *clients, int count)
{
    int added = 0;
    pthread_mutex_lock(&queue.lock);
    while (added < count && queue_add(clients[added]))
        added++;
    pthread_mutex_unlock(&queue.lock);
    pthread_cond_signal(&queue.changed);
    return added;
}

/* The next client, as soon as there is one. -1: no more will come. */
static int take(void)
{
    pthread_mutex_lock(&queue.lock);
    while (STAILQ_EMPTY(&queue.visits) && !queue.closed)
        pthread_cond_wait(&queue.changed, &queue.lock);
    int client = queue_remove();
    pthread_mutex_unlock(&queue.lock);
    return client;
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
}

int main(int argc, char **argv)
{
    team_start(argc, argv, "wakeup", take);
    accept_clients(team.own);
    return team_end();
}
