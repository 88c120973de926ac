/* children: how a parent keeps track of its child processes (chapters 2 and 3).
 *
 *  - SIGCHLD stays blocked in the parent. So it interrupts no system call, and
 *    no handler changes errno. children_wait() waits for it.
 *  - One pending SIGCHLD may stand for many children: they are reaped in a loop.
 */
#ifndef CHILDREN_H
#define CHILDREN_H

#include "board.h"

#include <stdbool.h>
#include <sys/types.h>

/* If there is no memory, an item is not added. By default uthash would end the program. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct child {
    pid_t pid;
    struct board_slot *slot;
    int64_t born; /* clock_now_ms() */
    UT_hash_handle hh;
};

struct children {
    const char *name;     /* of the server, for messages */
    struct child *by_pid; /* uthash; HASH_COUNT(by_pid) of them */
};

/* In the parent, before its first fork. */
void children_block_signal(void);

/* Notes a new child. Returns false if the pid is not positive, because fork(2) failed, or if there
 * is no memory for a note: then the child is killed, because nobody would count it or stop it. The
 * slot is given back. */
bool children_add(struct children *, pid_t, struct board_slot *);

/* Reaps every child that has ended, and releases its slot. One that a signal has ended, while the
 * server was not stopping, is reported on standard error. Returns the shortest life among them in
 * ms, or -1 if none has ended. */
int64_t children_reap(struct children *);

/* Sleeps until a child ends or another signal is caught, for `ms` milliseconds at most. */
void children_wait(int ms);

/* Asks all children to stop, waits up to `ms` milliseconds, kills those that are still alive, and
 * reaps them all. */
void children_stop(struct children *, int ms);

#endif
