#include "memory.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t budget = UINT64_MAX; /* set before the first thread */
static _Atomic uint64_t in_use;      /* of this process; a child of 02 and 03 begins with 0 */

/* ---- what there is ------------------------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The number in a file; UINT64_MAX if there is none, as in a memory.max that says "max". */
static uint64_t number_in(const char *path)
{
    char text[32] = "", *end = text;
    uint64_t number = UINT64_MAX;
    FILE *file = fopen(path, "re");
    if (file && fgets(text, sizeof(text), file))
        number = strtoull(text, &end, 10);
    if (file)
        fclose(file);
    return end > text ? number : UINT64_MAX;
}

/* A group's limit also holds for the groups in it. In a container the path may be the host's, and
 * then only the top of it can be seen. */
static uint64_t limit_up_from(const char *top, const char *group, const char *name)
{
    char folder[4096], path[4200];
    uint64_t limit = UINT64_MAX;
    if (snprintf(folder, sizeof(folder), "%s%s", top, group) >= (int)sizeof(folder))
        return limit;
    for (;;) {
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        limit = least(limit, number_in(path));
        char *last = strrchr(folder + strlen(top), '/');
        if (!last)
            return limit;
        *last = '\0';
    }
}

static uint64_t groups_limit(const char *root)
{
    char path[512], line[4500];
    uint64_t limit = UINT64_MAX;
    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        /* "0::/a/b" is of version 2, "4:memory:/a/b" of version 1 */
        char controllers[256] = "", group[4096] = "", top[512];
        if (sscanf(line, "0::%4095[^\n]", group) == 1) {
            snprintf(top, sizeof(top), "%s/sys/fs/cgroup", root);
            limit = least(limit, limit_up_from(top, group, "memory.max"));
        } else if (sscanf(line, "%*d:%255[^:]:%4095[^\n]", controllers, group) == 2 &&
                   strcmp(controllers, "memory") == 0) {
            snprintf(top, sizeof(top), "%s/sys/fs/cgroup/memory", root);
            limit = least(limit, limit_up_from(top, group, "memory.limit_in_bytes"));
        }
    }
    if (file)
        fclose(file);
    return limit;
}

uint64_t memory_limit(const char *root)
{
    struct rlimit addresses;
    uint64_t limit = groups_limit(root);
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page_bytes > 0)
        limit = least(limit, (uint64_t)pages * (uint64_t)page_bytes);
    if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY)
        limit = least(limit, addresses.rlim_cur);
    return limit;
}

/* ---- the budget ---------------------------------------------------------------------------- */

/* The other three quarters are for the cost of connections without large requests and responses:
 * their objects and threads, and the kernel's part. */
void memory_start(void)
{
    memory_set_budget(memory_limit("") / 4);
}

void memory_set_budget(uint64_t bytes)
{
    budget = bytes;
}

uint64_t memory_in_use(void)
{
    return in_use;
}

bool memory_reserve(uint64_t bytes)
{
    uint64_t now = in_use;
    while (now + bytes <= budget)
        if (atomic_compare_exchange_weak(&in_use, &now, now + bytes))
            return true;
    return false;
}

void memory_release(uint64_t bytes)
{
    atomic_fetch_sub(&in_use, bytes);
}

bool memory_is_short(void)
{
    return in_use > budget / 4 * 3;
}
