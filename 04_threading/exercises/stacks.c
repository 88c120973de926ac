/* Exercise 04/stacks: what a thousand idle clients cost a server with a thread for each.
 *
 *     stacks CLIENTS ARENAS SENT      prints by how many kB VmSize and VmRSS of ./threading
 *                                     will have grown when that many clients are connected
 *
 * Each client has sent half a request, and sends nothing more. If SENT is not 0, the request is a
 * form of 60 KiB, and the client has sent the first SENT KiB of it. ARENAS is the value of
 * MALLOC_ARENA_MAX in the environment of ./threading. If it is 0, there is no such variable.
 *
 * The program predicts, and the check measures. As it is, it predicts what many people believe:
 * that each thread takes the eight megabytes of stack that `ulimit -s` shows, all of it memory.
 *
 * proc(5), pthread_attr_setstacksize(3), mallopt(3)
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

/* Here: the addresses (VmSize), in kB, right within 15 %. */
static long addresses_kib(long clients, long arenas, long cores)
{
    (void)arenas;
    (void)cores;
    return clients * 8192;
}

/* Here: the memory (VmRSS), in kB, right within a factor of two for a hundred clients or more. */
static long memory_kib(long clients, long sent)
{
    (void)sent;
    return clients * 8192;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "Usage: stacks CLIENTS ARENAS SENT\n");
        return 2;
    }
    long clients = strtol(argv[1], NULL, 10);
    printf("VmSize %ld\n", addresses_kib(clients, strtol(argv[2], NULL, 10), get_nprocs()));
    printf("VmRSS %ld\n", memory_kib(clients, strtol(argv[3], NULL, 10)));
    return 0;
}
