/* Exercise 04/stacks: what a thousand idle clients cost a server with a thread for each.
 *
 *     stacks CLIENTS      prints by how many kB VmSize and VmRSS of ./threading will have
 *                         grown when that many clients are connected, have sent half a request
 *                         each, and send nothing more
 *
 * The program predicts, and the check measures. As it is, it predicts what many people believe:
 * that each thread takes the eight megabytes of stack that `ulimit -s` shows, all of it memory.
 *
 * proc(5), pthread_attr_setstacksize(3), mallopt(3)
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

/* Here: the addresses (VmSize), in kB, right within 15 % for 10, 100 and 1,000 clients. */
static long addresses_kib(long clients, long cores)
{
    (void)cores;
    return clients * 8192;
}

/* Here: the memory (VmRSS), in kB, right within a factor of two for 1,000 clients. */
static long memory_kib(long clients)
{
    return clients * 8192;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "Usage: stacks CLIENTS\n");
        return 2;
    }
    long clients = strtol(argv[1], NULL, 10);
    printf("VmSize %ld\n", addresses_kib(clients, get_nprocs()));
    printf("VmRSS %ld\n", memory_kib(clients));
    return 0;
}
