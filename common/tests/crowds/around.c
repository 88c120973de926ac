#include "around.h"

#include "tests/harness/harness.h"

#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/resource.h>

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

bool is_installed(const char *program)
{
    char command[256];
    snprintf(command, sizeof(command), "command -v %s >/dev/null", program);
    return system(command) == 0;
}

/* ---- threads ------------------------------------------------------------------------------- */

static void *wait_for_the_end(void *unused)
{
    pause();
    return unused;
}

/* In a child: makes threads as small as a server's, until there are enough or none to be had. */
static _Noreturn void try_threads(int count, int out)
{
    enum { STACK_BYTES = 64 * 1024 };
    pthread_attr_t attributes;
    pthread_t thread;
    int made = 0;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    while (made < count && pthread_create(&thread, &attributes, wait_for_the_end, NULL) == 0)
        made++;
    _exit(write(out, &made, sizeof(made)) != sizeof(made));
}

/* Many limits have a say, of the kernel, of the user, of a control group, and of the address space:
 * so it is tried. */
void need_threads(int count)
{
    int ends[2], made = 0;
    check(pipe(ends) == 0, "%s", strerror(errno));
    pid_t child = fork();
    if (child == 0)
        try_threads(count, ends[1]);
    check(child > 0 && read(ends[0], &made, sizeof(made)) == sizeof(made), "%s", strerror(errno));
    waitpid(child, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    if (made < count)
        cr_skip_test("this machine lets a program have %d threads, not %d "
                     "(kernel.threads-max, kernel.pid_max, vm.max_map_count, pids.max, ulimit -u)",
                     made, count);
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

/* ---- sockets ------------------------------------------------------------------------------- */

int count_clients(void)
{
    return count_sockets(1U << TCP_ESTABLISHED | 1U << TCP_CLOSE_WAIT, true);
}

int count_leftovers(void)
{
    return count_sockets(1U << TCP_FIN_WAIT1 | 1U << TCP_CLOSING | 1U << TCP_LAST_ACK, false);
}
