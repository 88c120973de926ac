#include "process.h"

#include "log.h"
#include "memory.h"
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <malloc.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

_Noreturn void process_die(const char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", name);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

/* ---- limits -------------------------------------------------------------------------------- */

/* The kernel enlarges the table for the highest number in use. So a high number is used for a
 * moment. */
void process_reserve_descriptors(int count)
{
    enum { OTHERS = 64 }; /* the listener, templates, files that are being sent */
    struct rlimit limit;
    int highest = count + OTHERS;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur <= (rlim_t)highest)
        highest = (int)limit.rlim_cur - 1;
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, highest);
    if (fd >= 0)
        close(fd);
}

/* ---- rights -------------------------------------------------------------------------------- */

void process_leave_root(const struct options *o, bool is_public)
{
    if (!o->user) {
        if (is_public && geteuid() == 0)
            fprintf(stderr, "%s: runs as root, and other machines may reach it: see --user\n",
                    o->name);
        return;
    }
    const struct passwd *user = getpwnam(o->user);
    if (!user || user->pw_uid == 0)
        options_bad_value(o->name, "--user", o->user, "a user of this machine, and not root");
    if (initgroups(o->user, user->pw_gid) < 0 || setgid(user->pw_gid) < 0 ||
        setuid(user->pw_uid) < 0)
        process_die(o->name, "cannot become the user %s: %s", o->user, strerror(errno));
    if (setuid(0) == 0)
        process_die(o->name, "cannot become the user %s: it could be root again", o->user);

    /* Otherwise /proc/self would be root's now, and a child of 02 and 03 could not raise its
     * oom_score_adj (prctl(2), PR_SET_DUMPABLE). */
    prctl(PR_SET_DUMPABLE, 1);
}

/* ---- statistics ---------------------------------------------------------------------------- */

/* /proc/self/status, for the statistics at the end. It is opened at the start, because a running
 * server opens only files of public/ and templates/, unless it is asked for its status. */
static int own_status = -1;

/* What this process and its children have used. Times are in seconds, sizes in KiB. */
struct usage {
    double user, system;
    long voluntary, involuntary; /* context switches */
    long own_kib, child_kib;     /* peak memory of this process, and of the largest child */
};

/* getrusage(2) also counts the time before execve(2), when the process may have been a busy
 * shell. */
static struct usage before_start;

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static struct usage usage_so_far(void)
{
    struct rusage self, children;
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    return (struct usage){
        .user = seconds(self.ru_utime) + seconds(children.ru_utime),
        .system = seconds(self.ru_stime) + seconds(children.ru_stime),
        .voluntary = self.ru_nvcsw + children.ru_nvcsw,
        .involuntary = self.ru_nivcsw + children.ru_nivcsw,
        .own_kib = self.ru_maxrss,
        .child_kib = children.ru_maxrss,
    };
}

void process_start(void)
{
    /* The program that started us may have blocked them, and the mask survives execve(2). */
    sigset_t stop_signals;
    sigemptyset(&stop_signals);
    sigaddset(&stop_signals, SIGTERM);
    sigaddset(&stop_signals, SIGINT);
    sigprocmask(SIG_UNBLOCK, &stop_signals, NULL);

    /* SIGXFSZ would end the program when a file that it logs to has reached the limit
     * (setrlimit(2)). Ignored, it leaves write(2) with an error. */
    signal(SIGXFSZ, SIG_IGN);

    /* glibc keeps freed chunks of up to 128 bytes apart, in fastbins, and merges them when somebody
     * asks for a large one. In 02 the freed chunks are the parent's, which had one for each child,
     * and each new child would merge them: it would write to all pages that hold one, and the
     * kernel would copy these pages. Once 2,000 children had come and gone, a child had 85 page
     * faults instead of 37. Without fastbins free() merges at once (mallopt(3), M_MXFAST). */
    mallopt(M_MXFAST, 0);

    /* A client costs a descriptor or two; the soft limit is 1024 on most machines. */
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    memory_start();
    own_status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    before_start = usage_so_far();
}

void process_report(const struct options *o, uint64_t requests, uint64_t connections)
{
    enum { PATIENCE_MS = 1000 };
    if (!log_wait_for_room(STDOUT_FILENO, PATIENCE_MS))
        return; /* a full pipe, which nobody reads: write(2) would wait for ever */

    /* Without /proc the peak is ru_maxrss. That survives execve(2), so it may be the size of the
     * program that started us. */
    char text[PROC_TEXT];
    ssize_t n = pread(own_status, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    struct usage now = usage_so_far();
    long peak = (long)proc_number(text, "VmHWM:");
    if (peak == 0)
        peak = now.own_kib;
    if (now.child_kib > peak && now.child_kib > before_start.child_kib)
        peak = now.child_kib;
    printf("%s: %llu requests on %llu connections; CPU %.2f s user, %.2f s system; "
           "peak memory %ld KiB; context switches %ld voluntary, %ld involuntary\n",
           o->name, (unsigned long long)requests, (unsigned long long)connections,
           now.user - before_start.user, now.system - before_start.system, peak,
           now.voluntary - before_start.voluntary, now.involuntary - before_start.involuntary);
    fflush(stdout);
}
