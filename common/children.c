#include "children.h"

#include "clock.h"
#include "stop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static sigset_t only_sigchld(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    return set;
}

void children_block_signal(void)
{
    sigset_t set = only_sigchld();
    signal(SIGCHLD, SIG_DFL); /* our parent may have ignored it: then nothing would be reaped */
    sigprocmask(SIG_BLOCK, &set, NULL);
}

void children_reset_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    stop_catch_signals(false); /* SIGTERM may come twice: to the whole group, and from the parent */
    signal(SIGINT, SIG_IGN);
    sigprocmask(SIG_SETMASK, &none, NULL); /* last, so that a pending signal finds its handler */
}

/* Without this the kernel would choose the parent, which is larger than any child. The score is
 * inherited, and a process may raise its own without a privilege. */
void children_die_first(void)
{
    static const char most[] = "1000";
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return; /* no /proc here: the kernel chooses by size */
    ssize_t n = write(fd, most, sizeof(most) - 1);
    (void)n;
    close(fd);
}

bool children_add(struct children *children, pid_t pid, struct board_slot *slot)
{
    struct child *child = pid > 0 ? malloc(sizeof(*child)) : NULL;
    if (!child)
        return false;
    *child = (struct child){.pid = pid, .slot = slot, .born = clock_now_ms()};
    HASH_ADD_INT(children->by_pid, pid, child);
    if (!child->hh.tbl) {
        free(child);
        return false;
    }
    return true;
}

int64_t children_reap(struct children *children)
{
    int64_t shortest = -1;
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        struct child *child;
        HASH_FIND_INT(children->by_pid, &pid, child);
        if (!child)
            continue;
        int64_t life = clock_now_ms() - child->born;
        if (shortest < 0 || life < shortest)
            shortest = life;
        board_release(child->slot);
        HASH_DEL(children->by_pid, child);
        free(child);
    }
    return shortest;
}

void children_wait(int ms)
{
    sigset_t set = only_sigchld();
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    sigtimedwait(&set, NULL, &time);
}

static void signal_all(const struct children *children, int signal_number)
{
    struct child *child, *next;
    HASH_ITER (hh, children->by_pid, child, next)
        kill(child->pid, signal_number);
}

void children_stop(struct children *children, int ms)
{
    int64_t deadline = clock_now_ms() + ms;
    bool killed = false;
    signal_all(children, SIGTERM);
    for (children_reap(children); children->by_pid; children_reap(children)) {
        int64_t left = deadline - clock_now_ms();
        if (left <= 0 && !killed) {
            signal_all(children, SIGKILL);
            killed = true;
        }
        children_wait(killed ? TICK_MS : (int)left);
    }
}
