/* around: what a crowd needs to know of the machine that it fills. */
#ifndef AROUND_H
#define AROUND_H

/* The first, or the second where PATIENCE says that servers are slow: with sanitizers a process, a
 * thread or a connection costs several times as much. */
int as_many_as(int plain, int with_patience);

/* Raises our own limit of descriptors (the server raises its own), or skips the test. */
void need_descriptors(int count);

/* Connections that the server has accepted, and not closed. */
int count_clients(void);

/* Children of chapter 2 and 3; threads of all others, the main thread not counted. */
int count_workers(void);

#endif
