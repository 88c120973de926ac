/* A library to be preloaded (ld.so(8)) into a server under test: while there is a file of the name
 * in the environment variable SCARCE, allocations fail. servers/faults.c compiles it.
 *
 *  - SCARCE_EVERY=7: each seventh of them.
 *  - SCARCE_BYTES=32: of those of that size only.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* The C library's own. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

static size_t number(const char *variable)
{
    const char *text = getenv(variable);
    return text ? strtoul(text, NULL, 10) : 0;
}

static bool fails(size_t size)
{
    static _Atomic size_t calls;
    const char *scarce = getenv("SCARCE");
    size_t only = number("SCARCE_BYTES"), every = number("SCARCE_EVERY");
    int reason = errno;
    bool now = scarce && every && (only == 0 || size == only) && access(scarce, F_OK) == 0 &&
               atomic_fetch_add(&calls, 1) % every == every - 1;
    errno = now ? ENOMEM : reason;
    return now;
}

void *malloc(size_t size)
{
    return fails(size) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails(count * size) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails(size) ? NULL : __libc_realloc(old, size);
}
