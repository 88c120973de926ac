#include "around.h"

#include "tests/harness/harness.h"

#include <netinet/tcp.h>

int as_many_as(int plain, int with_patience)
{
    return patience(1) > 1 ? with_patience : plain;
}

void need_descriptors(int count)
{
    enum { OUR_OWN = 100 };
    struct rlimit limit;
    check(getrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
    if (limit.rlim_max < (rlim_t)count + OUR_OWN)
        cr_skip_test("%d connections need `ulimit -Hn` to be %d or more; it is %llu", count,
                     count + OUR_OWN, (unsigned long long)limit.rlim_max);
    limit.rlim_cur = limit.rlim_max;
    check(setrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
}

int count_clients(void)
{
    return count_sockets(1U << TCP_ESTABLISHED | 1U << TCP_CLOSE_WAIT, true);
}

/* Without the main thread, and the one that the thread sanitizer has for itself as soon as there
 * are others. */
static int count_threads(void)
{
    const char *servers = getenv("SERVERS");
    int others = servers && strstr(servers, "san-thread") ? 2 : 1;
    int count = (int)process_number(server_pid, "\nThreads:");
    return count > others ? count - others : 0;
}

int count_workers(void)
{
    return strstr(server_name, "forking") ? count_children() : count_threads();
}
