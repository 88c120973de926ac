/* A library to be preloaded (ld.so(8)) into a server under test: while there is a file of the name
 * in the environment variable SCARCE, one allocation in thirteen fails, in no order: a request that
 * takes thirteen would else fail each time, or never. servers/faults.c has it loaded.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
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
    int reason = errno;
    uint32_t x = (uint32_t)atomic_fetch_add(&calls, 1) * 0x9e3779b9u + (uint32_t)getpid();
    x = (x ^ x >> 16) * 0x85ebca6bu; /* mixes the bits, as MurmurHash3 does */
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    bool now = scarce && x % 13 == 0 && access(scarce, F_OK) == 0;
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
