/* text: bytes of somebody else, and bytes of one's own. */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* ---- span: somebody else's bytes ----------------------------------------------------------- */

/* Not owned, not ended by a NUL. */
struct span {
    const char *at;
    size_t len;
};

#define SPAN(literal) ((struct span){(literal), sizeof(literal) - 1})

struct span span_of(const char *string);
bool span_is(struct span, const char *string);       /* the same bytes */
bool span_is_nocase(struct span, const char *token); /* the same but for ASCII case */

/* Without the spaces and tabs around it. */
struct span span_trim(struct span);

/* Takes what stands before the next `separator`, or all that is left, off the front of *rest. The
 * separator goes with it. */
struct span span_take_until(struct span *rest, char separator);

/* Writes text so that it stays on one line of a log, and a terminal obeys none of it: whatever is
 * not printable ASCII, and `"` and `\`, becomes \xHH. As much of it as fits into shown[0, size),
 * with a NUL. */
void text_escape(const char *text, size_t len, char *shown, size_t size);

/* The characters of a UTF-8 text (RFC 3629: no overlong form, no surrogate, nothing above
 * U+10FFFF), or -1. Control characters are refused too, but for line breaks and tabs if `lines`. */
long text_count_characters(struct span, bool lines);

/* ---- buffer: a growing array of one's own -------------------------------------------------- */

/* All zero is an empty one. Owns `bytes`. */
struct buffer {
    char *bytes;
    size_t len, size;
    bool failed; /* no memory: what was to be appended since is lost. Look once, at the end */
};

bool buffer_grow(struct buffer *, size_t more); /* for buffer_reserve() */

/* Makes room for that many bytes more; false, and `failed`, if there is no memory for them. */
static inline bool buffer_reserve(struct buffer *b, size_t more)
{
    return !b->failed && (b->size - b->len >= more || buffer_grow(b, more));
}

/* A page is appended in hundreds of small pieces: hence the two in the header. */
static inline void buffer_append(struct buffer *b, const char *bytes, size_t len)
{
    if (len == 0 || !buffer_reserve(b, len))
        return;
    memcpy(b->bytes + b->len, bytes, len);
    b->len += len;
}

/* Gives back the memory above `size` bytes, which is not less than `len`, and not 0. */
void buffer_shrink(struct buffer *, size_t size);

/* Gives memory above `keep` bytes back, and empties the buffer. */
void buffer_clear(struct buffer *, size_t keep);
void buffer_free(struct buffer *);

#endif
