/* A library to be preloaded (ld.so(8)) into a server under test: while there is a file of the name
 * in the environment variable SCARCE, each fifth malloc(3) of a few octets fails. servers_faults.c
 * compiles it.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t); /* the C library's own */

void *malloc(size_t size)
{
    enum { FEW = 32, FAILS = 5 };
    static _Atomic unsigned calls;
    const char *scarce = getenv("SCARCE");
    int reason = errno;
    if (size == FEW && scarce && access(scarce, F_OK) == 0 &&
        atomic_fetch_add(&calls, 1) % FAILS == FAILS - 1) {
        errno = ENOMEM;
        return NULL;
    }
    errno = reason;
    return __libc_malloc(size);
}
