/* Two threads meet, and then each stores into its own variable and loads the other's. At least one
 * of the two stores comes first. So can both threads miss the other's? */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#ifndef ORDER
#define ORDER memory_order_relaxed
#endif

enum { SECONDS = 2 };

static struct side {
    _Alignas(64) _Atomic int stored; /* the number of a round */
    _Atomic int met;                 /* how often this thread has come to meet() */
    int loaded;                      /* from the other side's `stored` */
} sides[2];

static _Atomic bool over;
static int rounds, both_missed;

/* Waits until the other thread has come here as often. */
static void meet(struct side *mine, struct side *theirs)
{
    int now = ++mine->met;
    while (theirs->met < now)
        ;
}

static void *play(void *side)
{
    struct side *mine = side, *theirs = mine == sides ? sides + 1 : sides;
    time_t end = time(NULL) + SECONDS;
    for (int round = 1; !over; round++) {
        meet(mine, theirs);
        atomic_store_explicit(&mine->stored, round, ORDER);
        mine->loaded = atomic_load_explicit(&theirs->stored, ORDER);
        meet(mine, theirs);
        if (mine == sides) { /* the other thread waits to meet again */
            rounds = round;
            both_missed += mine->loaded < round && theirs->loaded < round;
            over = time(NULL) >= end;
        }
        meet(mine, theirs);
    }
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, play, sides + 1);
    play(sides);
    pthread_join(thread, NULL);
    printf("both missed it in %d of %d rounds\n", both_missed, rounds);
    return 0;
}
