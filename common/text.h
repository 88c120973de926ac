/* text: spans, which borrow their bytes, and buffers, which own them.
 *
 *  - All buffers of a process share one budget of memory. A client can send 64 KiB
 *    before the server knows what it wants, or ask for a long page and not read it,
 *    and thousands of clients can do so at once. Without a limit the kernel would
 *    kill the process, and with it every connection.
 */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

/* ---- span: borrowed bytes ------------------------------------------------------------------ */

/* Borrowed, and not ended by a NUL. */
struct span {
    const char *at;
    size_t len;
};

#define SPAN(literal) ((struct span){(literal), sizeof(literal) - 1})

static inline struct span span_of(const char *string)
{
    return (struct span){string, strlen(string)};
}

/* What is behind the first `count` bytes. There have to be so many. */
static inline struct span span_skip(struct span span, size_t count)
{
    return (struct span){span.at + count, span.len - count};
}

/* Are the bytes the same? */
static inline bool span_is(struct span span, const char *string)
{
    return span.len == strlen(string) && memcmp(span.at, string, span.len) == 0;
}

/* In any ASCII case? */
static inline bool span_is_nocase(struct span span, const char *token)
{
    return span.len == strlen(token) && strncasecmp(span.at, token, span.len) == 0;
}

/* Are all its bytes in the set? */
static inline bool span_is_of(struct span span, const bool set[256])
{
    for (size_t i = 0; i < span.len; i++)
        if (!set[(unsigned char)span.at[i]])
            return false;
    return true;
}

/* Without the spaces and tabs around it. */
struct span span_trim(struct span);

/* Takes the bytes before the next `separator` off the front of *rest, or all of them if there is
 * none. The separator is taken off, too. */
struct span span_take_until(struct span *rest, char separator);

/* Takes a prefix, in any ASCII case, off the front. Returns false if there is another text. */
bool span_take_prefix(struct span *rest, const char *prefix);

/* Takes a decimal number off the front. Returns false if there is none. One that is too large
 * becomes the largest. */
bool span_take_number(struct span *rest, uint64_t *number);

/* -1: not a hexadecimal digit. */
int text_hex_value(char);

/* Writes text so that it stays on one line of a log, and gives a terminal no orders. Each `"`, each
 * `\` and each byte that is not printable ASCII becomes \xHH. Writes as much as fits into
 * shown[0, size), with a NUL. */
void text_escape(const char *text, size_t len, char *shown, size_t size);

/* How many characters a UTF-8 text has (RFC 3629: no overlong form, no surrogate, nothing above
 * U+10FFFF), or -1. Control characters are refused, too, except line feeds and tabs if `lines`. The
 * two separators U+2028 and U+2029 are always refused. */
long text_count_characters(struct span, bool lines);

/* ---- buffer: a growing array that owns its bytes ------------------------------------------- */

enum { BUFFER_FREE = 8192 }; /* bytes; a buffer that is not larger (most are not) is not charged */

/* All zero is an empty buffer. It owns `bytes`. */
struct buffer {
    char *bytes;
    size_t len, size;
    bool failed; /* there was no memory, or it is not in the budget: later bytes are lost. Check it
                    once, at the end */
};

bool buffer_grow(struct buffer *, size_t more); /* for buffer_reserve() */

/* Makes room for `more` bytes. Returns false, and sets `failed`, if there is no memory for them. */
static inline bool buffer_reserve(struct buffer *b, size_t more)
{
    return !b->failed && (b->size - b->len >= more || buffer_grow(b, more));
}

/* Both are inline because a page is appended in hundreds of small pieces. */
static inline void buffer_append(struct buffer *b, const char *bytes, size_t len)
{
    if (len == 0 || !buffer_reserve(b, len))
        return;
    memcpy(b->bytes + b->len, bytes, len);
    b->len += len;
}

/* Empties the buffer. One of more than `keep` bytes is freed: with 0, any. */
void buffer_clear(struct buffer *, size_t keep);

/* Drops the first `count` bytes. If the buffer then has room for more than `keep` bytes and twice
 * what is left, it shrinks, or is freed if nothing is left. `keep` is at least 1. */
void buffer_drop(struct buffer *, size_t count, size_t keep);

/* The budget (a memory quota) of all buffers of this process, in bytes. It is set once, at start,
 * before the first thread. Until then there is no limit. */
void buffer_set_budget(uint64_t bytes);
uint64_t buffer_charged(void);

#endif
