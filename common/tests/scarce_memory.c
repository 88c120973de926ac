/* A library to be preloaded (ld.so(8)) into a server under test: while there is a file of the name
 * in the environment variable SCARCE, every seventh allocation fails (SCARCE_EVERY=7).
 * servers/faults.c compiles it.
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

/* The process number is added so that the children of 02 do not all fail at the same place. */
static bool fails(void)
{
    static _Atomic size_t calls;
    const char *scarce = getenv("SCARCE");
    const char *text = getenv("SCARCE_EVERY");
    size_t every = text ? strtoul(text, NULL, 10) : 0;
    int reason = errno;
    bool now = scarce && every && access(scarce, F_OK) == 0 &&
               (atomic_fetch_add(&calls, 1) + (size_t)getpid()) % every == 0;
    errno = now ? ENOMEM : reason;
    return now;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}
