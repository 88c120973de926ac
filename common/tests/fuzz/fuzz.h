/* fuzz: what the fuzz targets share. libFuzzer makes up inputs, hands each to
 * LLVMFuzzerTestOneInput(), and keeps those that reach code no other has reached.
 *
 *  - A target checks what must hold for every input whatever, with must(); the
 *    sanitizers see to memory.
 *  - The same input has to take the same way each time: no clock, no chance.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define must(hold)                                                                                 \
    do {                                                                                           \
        if (!(hold)) {                                                                             \
            fprintf(stderr, "%s:%d: this does not hold: %s\n", __FILE__, __LINE__, #hold);         \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* A copy in memory of exactly that size, so that a sanitizer sees every step beyond it. The
 * caller frees it. */
static inline char *exact_copy(const void *bytes, size_t size)
{
    char *copy = malloc(size);
    must(copy || size == 0);
    if (size > 0)
        memcpy(copy, bytes, size);
    return copy;
}

#endif
