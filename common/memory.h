/* memory: how much memory a process may use for requests that it cannot answer yet, and for
 * responses that its clients have not taken.
 *
 *  - A client can send up to 64 KiB before the server knows what it wants, or ask for a long page
 *    and not read it, and thousands of clients can do so at once. Without a limit the kernel would
 *    kill the process, and close every connection with it.
 *  - All threads of a process share one count. A process of 01, 02 and 03 has one client, and so
 *    has a thread of 05. By default they do not come near the limit.
 */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Sets the budget to a quarter of the memory that the process may use. To be called once, at start.
 * Until then there is no limit. */
void memory_start(void);

/* The smallest of the machine's memory, RLIMIT_AS and the limits of the process's control groups
 * (cgroups(7)). Their files are looked for in `root`/proc and `root`/sys. */
uint64_t memory_limit(const char *root);

void memory_set_budget(uint64_t bytes);
uint64_t memory_in_use(void);

/* Takes so many bytes from the budget. If fewer are left, takes nothing and returns false. */
bool memory_reserve(uint64_t bytes);
void memory_release(uint64_t bytes);

/* Is more than three quarters of the budget in use? Then idle connections are closed, before any
 * request has to be refused. */
bool memory_is_short(void);

#endif
