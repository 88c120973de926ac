#include "process.h"

#include "log.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* ---- memory -------------------------------------------------------------------------------- */

/* How much memory the process may use, in bytes: the smallest of the machine's memory, RLIMIT_AS,
 * and memory.max of its control group and the groups around it (cgroups(7), version 2). In a
 * container the group's path may be the host's, and then only the top of it can be seen. */
static uint64_t memory_limit(void)
{
    char path[PATH_MAX], group[PATH_MAX / 2] = "";
    struct rlimit addresses;
    uint64_t limit = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur < limit)
        limit = addresses.rlim_cur;

    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(path, sizeof(path), file))
        sscanf(path, "0::%2047[^\n]", group); /* the line of version 2, wherever it is */
    if (file)
        fclose(file);
    for (bool is_top = false; !is_top;) {
        unsigned long long number;
        snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", group);
        file = fopen(path, "re");
        /* NOLINTNEXTLINE(cert-err34-c): the kernel has written the number, or else "max" */
        if (file && fscanf(file, "%llu", &number) == 1 && number < limit)
            limit = number;
        if (file)
            fclose(file);
        char *last = strrchr(group, '/');
        is_top = !last;
        if (last)
            *last = '\0';
    }
    return limit;
}

/* ---- start --------------------------------------------------------------------------------- */

static sigset_t stop_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
}

void process_start(void)
{
    /* The program that started us may have blocked them, and the mask survives execve(2). */
    sigset_t set = stop_signals();
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN); /* a client that is gone is EPIPE, */
    signal(SIGXFSZ, SIG_IGN); /* and a log file at its limit EFBIG: neither ends a server */

    /* An error message must reach no client that has got the number of standard error. */
    int fd;
    do
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && fd < STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);

    /* A client costs a descriptor or two; the soft limit is 1024 on most machines. */
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    buffer_set_budget(memory_limit() / 8); /* the rest is for threads and sockets */
}

/* The kernel enlarges the table for the highest number in use. So a high number is used for a
 * moment. */
bool process_reserve_descriptors(int count)
{
    enum { OTHERS = 64 }; /* the listener, public/, files that are being sent */
    struct rlimit limit;
    int highest = count + OTHERS;
    bool is_limited = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur <= (rlim_t)highest;
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, is_limited ? (int)limit.rlim_cur - 1 : highest);
    if (fd >= 0)
        close(fd);
    return !is_limited;
}

/* ---- end ----------------------------------------------------------------------------------- */

/* The peak memory of this process in KiB. (ru_maxrss survives execve(2), so it may be the size of
 * the program that started us.) */
static long peak_kib(void)
{
    char line[256];
    long peak = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof(line), file))
        /* NOLINTNEXTLINE(cert-err34-c): the kernel has written the number */
        sscanf(line, "VmHWM: %ld", &peak);
    if (file)
        fclose(file);
    return peak;
}

/* What both have used, in seconds. */
static double seconds(struct timeval a, struct timeval b)
{
    return (double)(a.tv_sec + b.tv_sec) + (double)(a.tv_usec + b.tv_usec) / 1e6;
}

void process_report(const struct options *o, uint64_t requests, uint64_t connections)
{
    enum { PATIENCE_MS = 1000 };
    if (!log_wait_for_room(STDOUT_FILENO, PATIENCE_MS))
        return; /* a full pipe, which nobody reads: write(2) would wait for ever */

    struct rusage self, children;
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    long peak = peak_kib();
    printf("%s: %llu requests on %llu connections; CPU %.2f s user, %.2f s system; "
           "peak memory %ld KiB; context switches %ld voluntary, %ld involuntary\n",
           o->name, (unsigned long long)requests, (unsigned long long)connections,
           seconds(self.ru_utime, children.ru_utime), seconds(self.ru_stime, children.ru_stime),
           peak > children.ru_maxrss ? peak : children.ru_maxrss, self.ru_nvcsw + children.ru_nvcsw,
           self.ru_nivcsw + children.ru_nivcsw);
    fflush(stdout);
}

_Noreturn void process_die(const char *name, const char *format, ...)
{
    char message[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: %s\n", name, message); /* in one write: servers share a terminal */
    exit(1);
}

/* ---- the clock ----------------------------------------------------------------------------- */

int64_t clock_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct timespec clock_deadline(int ms)
{
    struct timespec when;
    clock_gettime(CLOCK_MONOTONIC, &when);
    when.tv_sec += ms / 1000;
    when.tv_nsec += ms % 1000 * 1000000L;
    when.tv_sec += when.tv_nsec / 1000000000L;
    when.tv_nsec %= 1000000000L;
    return when;
}

static int64_t thread_cpu_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

void clock_burn_cpu(int us)
{
    enum { STEPS = 2000 };  /* a few microseconds, because to read this clock is a system call */
    volatile unsigned step; /* volatile: or the compiler removes the loop, which does nothing */
    int64_t end = thread_cpu_ns() + us * INT64_C(1000);
    while (thread_cpu_ns() < end)
        for (step = 0; step < STEPS;)
            step = step + 1;
}

/* ---- stopping ------------------------------------------------------------------------------ */

/* clock_now_ms() of the first signal, 0 before: one for the whole process, set by a handler. */
static _Atomic int64_t stop_asked;

static void stop(int signal_number)
{
    (void)signal_number;
    if (stop_asked == 0)
        stop_asked = clock_now_ms();
}

void stop_release_signals(void)
{
    signal(SIGTERM, SIG_DFL); /* signal-safety(7) allows that */
    signal(SIGINT, SIG_DFL);
}

/* The next signal, whichever of the two it is, meets the default action. */
static void stop_once(int signal_number)
{
    stop(signal_number);
    stop_release_signals();
}

void stop_catch_signals(bool once)
{
    /* No SA_RESTART: accept(2) is to return. */
    struct sigaction action = {.sa_handler = once ? stop_once : stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

bool stop_requested(void)
{
    return stop_asked != 0;
}

bool stop_time_is_over(void)
{
    return stop_asked != 0 && clock_now_ms() - stop_asked >= STOP_MS;
}

int stop_grace_ms(const struct options *o)
{
    return STOP_MS + o->timeout_ms / REDIS_PART + 2 * TICK_MS;
}

int stop_open_signalfd(const struct options *o)
{
    sigset_t set = stop_signals();
    sigprocmask(SIG_BLOCK, &set, NULL);
    int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0)
        process_die(o->name, "signalfd: %s", strerror(errno));
    return signals;
}

void stop_read_signalfd(int signals)
{
    struct signalfd_siginfo info;
    sigset_t set = stop_signals();
    while (read(signals, &info, sizeof(info)) > 0)
        ; /* taken before they are unblocked, or this one would end us */

    stop_release_signals(); /* the program that started us may have ignored them */
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}
