/* Exercise 04/stacks: what a thousand idle clients cost a server with a thread for each.
 *
 *     stacks CLIENTS      prints by how many kB VmSize and VmRSS of ./threading will have
 *                         grown when that many clients are connected, each of whom has said
 *                         half a request and is silent
 *
 * A prediction, no measurement: the check measures. In it stands what many believe: that a
 * thread is eight megabytes of stack, as `ulimit -s` has it, and that all of it is memory.
 *
 * proc(5), pthread_attr_setstacksize(3), mallopt(3)
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

/* Here: the addresses (VmSize), in kB. To be right within 15 %, for ten as for a thousand. */
static long addresses_kib(long clients, long cores)
{
    (void)cores;
    return clients * 8192;
}

/* Here: the memory (VmRSS), in kB. To be right within a factor of two, for a thousand. */
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
