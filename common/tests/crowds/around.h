/* crowds: what they need to know of the machine they fill. */
#ifndef CROWDS_H
#define CROWDS_H

#include <stdbool.h>

/* The first, or the second where PATIENCE says that servers are slow: with sanitizers a process, a
 * thread or a connection costs several times as much. */
int as_many_as(int plain, int with_patience);

/* Raises our own limit of descriptors (the server raises its own), or skips the test. */
void need_descriptors(int count);

/* Skips the test if nobody may have so many threads here; a process counts as one. */
void need_threads(int count);

bool is_installed(const char *program);

/* Connections that the server has accepted, and not closed. */
int count_clients(void);

/* Connections that it has closed, but the kernel has not: what was said last is not taken. */
int count_leftovers(void);

/* Children of chapter 2 and 3; threads of all others, the main thread not counted. */
int count_workers(void);

#endif
