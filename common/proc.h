/* proc: what the kernel tells about a process (proc(5)). */
#ifndef PROC_H
#define PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROC_TEXT = 4096 }; /* bytes; more than any file read here has */

/* Reads /proc/PID/NAME, and adds a NUL. Returns false if it cannot be read, because the process is
 * gone or no descriptor is left. */
bool proc_read(pid_t, const char *name, char text[PROC_TEXT]);

/* The number behind `name`, which begins with "\n" to match the start of a line. 0 if the name is
 * not there. */
uint64_t proc_number(const char *text, const char *name);

uint64_t proc_count_descriptors(pid_t);

/* Fields of /proc/PID/stat, as proc(5) numbers them. Times are in ticks of sysconf(3). */
enum {
    PROC_STATE = 3,
    PROC_PARENT = 4,
    PROC_USER_TIME = 14,
    PROC_SYSTEM_TIME,
    PROC_CHILDREN_USER_TIME,
    PROC_CHILDREN_SYSTEM_TIME,
    PROC_THREADS = 20,
    PROC_STAT_FIELDS,
};

struct proc_stat {
    char state; /* 'Z': a zombie, which has ended and is not reaped yet */
    uint64_t fields[PROC_STAT_FIELDS];
};

bool proc_read_stat(pid_t, struct proc_stat *);

#endif
