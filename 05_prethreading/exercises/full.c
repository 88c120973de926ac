/* Exercise 05/full: one thread accepts, four threads serve, and a bounded buffer connects them.
 * The task is in 05_prethreading/exercises/full.md.
 * Manual pages: sem_overview(7), sem_wait(3), pthread_mutex_lock(3)
 */
#include "classroom/exercises/team.h"

#include <semaphore.h>

enum { PLACES = 10 };

static int clients[PLACES]; /* the buffer, a ring */
static long in, out;        /* how many clients were put in, and taken out */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for all of that */
static sem_t places_free, places_filled;

/* Takes one from a semaphore; while it is 0, sleeps. A signal does not end the wait. */
static void down(sem_t *semaphore)
{
    while (sem_wait(semaphore) < 0)
        ;
}

static bool put(int client)
{
    pthread_mutex_lock(&lock);
    down(&places_free);
    clients[in++ % PLACES] = client;
    pthread_mutex_unlock(&lock);
    sem_post(&places_filled);
    return true;
}

/* The next client, as soon as there is one. -1: no more will come. */
static int take(void)
{
    down(&places_filled);
    pthread_mutex_lock(&lock);
    int client = clients[out++ % PLACES];
    pthread_mutex_unlock(&lock);
    sem_post(&places_free);
    return client;
}

int main(int argc, char **argv)
{
    sem_init(&places_free, 0, PLACES);
    sem_init(&places_filled, 0, 0);
    team_start(argc, argv, "full", take);
    team_accept(put);
    for (int i = 0; i < WORKERS; i++)
        put(-1);
    return team_end();
}
