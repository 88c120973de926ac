/* A thread waits for a flag that another thread sets. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#ifndef FLAG
#define FLAG bool
#endif

static FLAG ready;

static void *wait_for_it(void *unused)
{
    while (!ready)
        ;
    puts("seen");
    return unused;
}

int main(void)
{
    pthread_t thread;
    alarm(5); /* ends the program if it still waits by then */
    pthread_create(&thread, NULL, wait_for_it, NULL);
    sleep(1);
    ready = true;
    pthread_join(thread, NULL);
    return 0;
}
