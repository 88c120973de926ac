/* What stands around the tests: the runner's last look, and what sanitizers are told. */
#include "unit.h"

#include <criterion/hooks.h>
#include <glob.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

/* A test that crashes cannot tidy up after itself: the runner does. */
ReportHook(POST_ALL)(struct criterion_global_stats *stats)
{
    char pattern[40];
    glob_t left;
    (void)stats;
    snprintf(pattern, sizeof(pattern), "/tmp/unit-%d-*", (int)getpid());
    if (glob(pattern, 0, NULL, &left) == 0)
        for (size_t i = 0; i < left.gl_pathc; i++)
            nftw(left.gl_pathv[i], scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    globfree(&left);
}

/* ---- the kernel's account of a socket ------------------------------------------------------ */

int unit_in_flight; /* bytes that the peer of a Unix socket has not acknowledged; TCP's are real */

/* SIOCOUTQ on a Unix socket would count what its peer has not read. */
int ioctl(int fd, unsigned long request, ...)
{
    va_list rest;
    int domain = 0;
    va_start(rest, request);
    int *bytes = va_arg(rest, int *);
    va_end(rest);
    if (request == SIOCOUTQ)
        getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &(socklen_t){sizeof(domain)});
    if (domain != AF_UNIX)
        return (int)syscall(SYS_ioctl, fd, request, bytes);
    *bytes = unit_in_flight;
    return 0;
}

/* ---- a signal ------------------------------------------------------------------------------ */

int unit_interruptions; /* so many calls of read(2) from now on are interrupted */

ssize_t read(int fd, void *bytes, size_t size)
{
    if (unit_interruptions == 0)
        return syscall(SYS_read, fd, bytes, size);
    unit_interruptions--;
    errno = EINTR;
    return -1;
}

/* ---- sanitizers, if there are any ---------------------------------------------------------- */

int unit_is_apart; /* in a child of a test */

const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__lsan_default_suppressions(void);
int __lsan_is_turned_off(void);

/* malloc() may fail, as it does elsewhere. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* The runner of the tests sometimes loses a few bytes of its own. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libcriterion\n";
}

/* What ends the program at start need not give anything back. */
int __lsan_is_turned_off(void)
{
    return unit_is_apart;
}
