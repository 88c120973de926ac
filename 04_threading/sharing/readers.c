/* Four threads read a table, and one changes it a thousand times a second at most. A mutex lets one
 * of them in at a time, and a readers-writer lock lets in all readers. The argument says how many
 * bytes a reader copies. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READERS = 4, ROUND_US = 200 * 1000, PAUSE_US = 1000, TABLE_BYTES = 64 * 1024 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static bool together; /* all readers: then rwlock protects the table, and otherwise mutex */
static char table[TABLE_BYTES];
static size_t bytes = 64;
static atomic_bool over;
static atomic_long looks, changes;

static void *read_it(void *unused)
{
    static _Thread_local char copy[TABLE_BYTES];
    long own = 0;
    for (; !over; own++) {
        together ? pthread_rwlock_rdlock(&rwlock) : pthread_mutex_lock(&mutex);
        memcpy(copy, table, bytes);
        together ? pthread_rwlock_unlock(&rwlock) : pthread_mutex_unlock(&mutex);
    }
    looks += own;
    return unused;
}

static void *change_it(void *unused)
{
    for (; !over; changes++) {
        usleep(PAUSE_US);
        together ? pthread_rwlock_wrlock(&rwlock) : pthread_mutex_lock(&mutex);
        memset(table, (int)changes, bytes);
        together ? pthread_rwlock_unlock(&rwlock) : pthread_mutex_unlock(&mutex);
    }
    return unused;
}

static void measure(void)
{
    pthread_t threads[READERS + 1];
    looks = changes = over = false;
    for (int i = 0; i <= READERS; i++)
        pthread_create(&threads[i], NULL, i < READERS ? read_it : change_it, NULL);
    usleep(ROUND_US);
    over = true;
    for (int i = 0; i <= READERS; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strtoul(argv[1], NULL, 10) <= TABLE_BYTES)
        bytes = strtoul(argv[1], NULL, 10);
    measure();
    double looks_before = (double)looks, changes_before = (double)changes;
    together = true;
    measure();
    printf("%.2f times the looks, and %.2f times the changes\n", (double)looks / looks_before,
           (double)changes / changes_before);
    return 0;
}
