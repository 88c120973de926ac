/* Exercise 05/drain: one thread accepts, four threads serve, and a queue connects them.
 * The task is in 05_prethreading/exercises/drain.md.
 * Manual pages: pthread_cond_wait(3), pthread_join(3), signal(7)
 */
#include "classroom/exercises/team.h"

/* False if there is no memory for it. */
static bool put(int client)
{
    pthread_mutex_lock(&queue.lock);
    bool added = queue_add(client);
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
    int client = queue.closed ? -1 : queue_remove();
    pthread_mutex_unlock(&queue.lock);
    return client;
}

int main(int argc, char **argv)
{
    team_start(argc, argv, "drain", take);
    team_accept(put);
    return team_end();
}
