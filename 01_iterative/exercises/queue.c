/* Exercise 01/queue: how many wait in the accept queue?
 *
 *     queue BACKLOG SOMAXCONN HELD      prints a number
 *
 * The task is in 01_iterative/exercises/queue.md. Manual pages: listen(2), ss(8)
 */
#include <stdio.h>
#include <stdlib.h>

/* Here: what is your prediction? This one assumes that the queue has no limit. */
static long predict(long backlog, long somaxconn, long held)
{
    (void)backlog;
    (void)somaxconn;
    return held;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: queue BACKLOG SOMAXCONN HELD\n");
        return 2;
    }
    printf("%ld\n", predict(strtol(argv[1], NULL, 10), strtol(argv[2], NULL, 10),
                            strtol(argv[3], NULL, 10)));
    return 0;
}
