#include "text.h"

#include <stdio.h>
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

void text_escape(const char *text, size_t len, char *shown, size_t size)
{
    enum { LONGEST = 4 }; /* bytes that one byte becomes */
    size_t n = 0;
    for (size_t i = 0; i < len && size - n > LONGEST; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < ' ' || c >= 127 || c == '"' || c == '\\')
            n += (size_t)snprintf(shown + n, size - n, "\\x%02x", c);
        else
            shown[n++] = (char)c;
    }
    shown[n] = '\0';
}

long text_count_characters(struct span text, bool lines)
{
    const unsigned char *at = (const unsigned char *)text.at, *end = at + text.len;
    long count = 0;
    for (; at < end; count++) {
        unsigned c = *at++, least = 0;
        int more = 0;
        if (c >= 0xf0)
            c &= 0x0f, more = 3, least = 0x10000;
        else if (c >= 0xe0)
            c &= 0x0f, more = 2, least = 0x800;
        else if (c >= 0xc0)
            c &= 0x1f, more = 1, least = 0x80;
        else if (c >= 0x80)
            return -1; /* a continuation with nothing to continue */
        for (; more > 0; more--) {
            if (at == end || (*at & 0xc0) != 0x80)
                return -1;
            c = c << 6 | (*at++ & 0x3f);
        }
        if (c < least || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
            return -1;
        bool control = c < ' ' || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029;
        if (control && !(lines && (c == '\n' || c == '\t')))
            return -1;
    }
    return count;
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

void buffer_shrink(struct buffer *b, size_t size)
{
    char *bytes = realloc(b->bytes, size);
    if (!bytes)
        return;
    b->bytes = bytes;
    b->size = size;
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
