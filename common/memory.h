/* memory: how much of it a process may use for requests that it cannot answer yet.
 *
 *  - A client can send up to 64 KiB before the server knows what it wants, and thousands of clients
 *    can do so at once. Without a limit the kernel would end the process, and every connection.
 *  - The count is the process', shared by all its threads. 01, 02 and 03 have one client in each
 *    process, and 05 one for each thread: they do not come near the limit by default.
 */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Sets the budget: a quarter of the memory that the process may use. Once, at start. Until then
 * there is no limit. */
void memory_start(void);

/* The least of the machine's memory, RLIMIT_AS and the limits of the process' control groups
 * (cgroups(7)), whose files are looked for in `root`/proc and `root`/sys. */
uint64_t memory_limit(const char *root);

void memory_set_budget(uint64_t bytes);
uint64_t memory_in_use(void);

/* Takes so many bytes of the budget; false, and takes nothing, if there are fewer left. */
bool memory_reserve(uint64_t bytes);
void memory_release(uint64_t bytes);

/* Is more than three quarters of the budget in use? Then idle clients make way, before anybody has
 * to be refused. */
bool memory_is_short(void);

#endif
