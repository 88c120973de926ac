/* Two threads count in one variable, and no lock protects it. */
#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 10 * 1000 * 1000 };

static int count;

static void *add(void *unused)
{
    for (int i = 0; i < ROUNDS; i++)
        count++;
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, add, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%d of %d\n", count, 2 * ROUNDS);
    return 0;
}
