/* Two threads take two locks, each in another order. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#ifndef LATER
#define LATER 0 /* seconds between the two threads */
#endif

static pthread_mutex_t count_lock = PTHREAD_MUTEX_INITIALIZER; /* protects `visitors` */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;   /* protects the order of the log */
static int visitors;

static void bad_luck(void)
{
    usleep(500 * 1000); /* the other thread runs just now */
}

static void *count_visitor(void *unused)
{
    pthread_mutex_lock(&count_lock);
    visitors++;
    bad_luck();
    pthread_mutex_lock(&log_lock);
    puts("another visitor");
    pthread_mutex_unlock(&log_lock);
    pthread_mutex_unlock(&count_lock);
    return unused;
}

static void *report(void *unused)
{
    pthread_mutex_lock(&log_lock);
    printf("visitors so far: ");
    bad_luck();
    pthread_mutex_lock(&count_lock);
    printf("%d\n", visitors);
    pthread_mutex_unlock(&count_lock);
    pthread_mutex_unlock(&log_lock);
    return unused;
}

int main(void)
{
    pthread_t first, second;
    alarm(LATER > 0 ? 60 : 5); /* ends the program if it hangs */
    pthread_create(&first, NULL, count_visitor, NULL);
    sleep(LATER);
    pthread_create(&second, NULL, report, NULL);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    return 0;
}
