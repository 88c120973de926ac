#include "children.h"

#include "log.h"
#include "process.h"

#include <errno.h>
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

bool children_add(struct children *children, pid_t pid, struct board_slot *slot)
{
    struct child *child = pid > 0 ? malloc(sizeof(*child)) : NULL;
    if (child) {
        *child = (struct child){.pid = pid, .slot = slot, .born = clock_now_ms()};
        HASH_ADD_INT(children->by_pid, pid, child);
        if (child->hh.tbl)
            return true;
        free(child);
    }
    if (pid > 0) { /* kill(2) with -1 would end every process */
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    board_release(slot);
    return false;
}

int64_t children_reap(struct children *children)
{
    int64_t shortest = -1;
    pid_t pid;
    int status;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        struct child *child;
        HASH_FIND_INT(children->by_pid, &pid, child);
        if (!child)
            continue;
        if (WIFSIGNALED(status) && !stop_requested())
            log_message(children->name, "process %d was ended by signal %d", pid, WTERMSIG(status));
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
