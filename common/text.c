#include "text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- span ---------------------------------------------------------------------------------- */

struct span span_of(const char *string)
{
    return (struct span){string, strlen(string)};
}

bool span_is(struct span span, const char *string)
{
    return span.len == strlen(string) && memcmp(span.at, string, span.len) == 0;
}

bool span_is_nocase(struct span span, const char *token)
{
    return span.len == strlen(token) && strncasecmp(span.at, token, span.len) == 0;
}

struct span span_trim(struct span span)
{
    while (span.len > 0 && (span.at[0] == ' ' || span.at[0] == '\t'))
        span = (struct span){span.at + 1, span.len - 1};
    while (span.len > 0 && (span.at[span.len - 1] == ' ' || span.at[span.len - 1] == '\t'))
        span.len--;
    return span;
}

struct span span_take_until(struct span *rest, char separator)
{
    const char *end = memchr(rest->at, separator, rest->len);
    size_t len = end ? (size_t)(end - rest->at) : rest->len;
    struct span part = {rest->at, len};
    size_t gone = end ? len + 1 : len;
    *rest = (struct span){rest->at + gone, rest->len - gone};
    return part;
}

/* ---- buffer -------------------------------------------------------------------------------- */

bool buffer_grow(struct buffer *b, size_t more)
{
    size_t size = b->size ? b->size : 1024;
    while (size - b->len < more)
        size *= 2;
    char *bytes = realloc(b->bytes, size);
    if (!bytes) {
        b->failed = true;
        return false;
    }
    b->bytes = bytes;
    b->size = size;
    return true;
}

void buffer_clear(struct buffer *b, size_t keep)
{
    if (b->size > keep)
        buffer_free(b);
    b->len = 0;
    b->failed = false;
}

void buffer_free(struct buffer *b)
{
    free(b->bytes);
    *b = (struct buffer){0};
}
