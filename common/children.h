/* children: what a parent has to know of its child processes (chapters 2 and 3).
 *
 *  - SIGCHLD stays blocked in the parent, so that no call is cut short by it
 *    and no handler disturbs errno; it is waited for where there is nothing else to do.
 *    One pending SIGCHLD may stand for many children: they are reaped in a loop.
 */
#ifndef CHILDREN_H
#define CHILDREN_H

#include "board.h"

#include <stdbool.h>
#include <sys/types.h>

/* Without memory an item is not added; by default uthash would end the program. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct child {
    pid_t pid;
    struct board_slot *slot;
    int64_t born; /* clock_now_ms() */
    UT_hash_handle hh;
};

struct children {
    struct child *by_pid; /* uthash; HASH_COUNT(by_pid) of them */
};

/* In the parent, before its first fork. */
void children_block_signal(void);

/* In a new child: gives it signals of its own. SIGTERM asks it to stop (stop_requested); SIGINT,
 * which Ctrl-C sends to the parent and to all children at once, is left to the parent, who passes
 * SIGTERM on. */
void children_reset_signals(void);

/* In a child: where memory ends, the kernel is to end this process before its parent (proc(5),
 * oom_score_adj). A child costs one client, its parent all of them. */
void children_die_first(void);

/* Remembers a new child; false if there is no memory for that, or if this is none (fork(2) failed:
 * to end -1 later would be to end everybody, see kill(2)). */
bool children_add(struct children *, pid_t, struct board_slot *);

/* Reaps every child that has ended, and releases its slot. Returns the shortest life among them, in
 * ms; -1 if none has ended. */
int64_t children_reap(struct children *);

/* Sleeps until a child ends, or so many ms have passed, or another signal is caught. */
void children_wait(int ms);

/* Asks all of them to stop, waits `ms` for that, kills those who have not, and reaps them all. */
void children_stop(struct children *, int ms);

#endif
