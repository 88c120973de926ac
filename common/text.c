#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- span ---------------------------------------------------------------------------------- */

struct span span_trim(struct span span)
{
    while (span.len > 0 && (span.at[0] == ' ' || span.at[0] == '\t'))
        span = span_skip(span, 1);
    while (span.len > 0 && (span.at[span.len - 1] == ' ' || span.at[span.len - 1] == '\t'))
        span.len--;
    return span;
}

struct span span_take_until(struct span *rest, char separator)
{
    const char *end = memchr(rest->at, separator, rest->len);
    size_t len = end ? (size_t)(end - rest->at) : rest->len;
    struct span part = {rest->at, len};
    *rest = span_skip(*rest, end ? len + 1 : len);
    return part;
}

bool span_take_prefix(struct span *rest, const char *prefix)
{
    size_t len = strlen(prefix);
    if (rest->len < len || strncasecmp(rest->at, prefix, len) != 0)
        return false;
    *rest = span_skip(*rest, len);
    return true;
}

bool span_take_number(struct span *rest, uint64_t *number)
{
    const char *start = rest->at;
    *number = 0;
    for (; rest->len > 0 && rest->at[0] >= '0' && rest->at[0] <= '9'; *rest = span_skip(*rest, 1)) {
        uint64_t digit = (uint64_t)(rest->at[0] - '0');
        *number = *number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *number * 10 + digit;
    }
    return rest->at > start;
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

/* Takes the first character off a UTF-8 text. Returns its code point, or -1. */
static long take_character(const unsigned char **text, const unsigned char *end)
{
    const unsigned char *at = *text;
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
    *text = at;
    return c < least || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) ? -1 : (long)c;
}

long text_count_characters(struct span text, bool lines)
{
    const unsigned char *at = (const unsigned char *)text.at, *end = at + text.len;
    long count = 0;
    for (; at < end; count++) {
        long c = take_character(&at, end);
        bool control = c < ' ' || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029;
        if (control && !(lines && (c == '\n' || c == '\t')))
            return -1;
    }
    return count;
}

/* Unicode 15.1: White_Space (PropList.txt) and Default_Ignorable_Code_Point
 * (DerivedCoreProperties.txt), in order, and the empty cell of Braille. */
static const struct {
    long first, last;
} blanks[] = {
    {0x9, 0xd},       {0x20, 0x20},       {0x85, 0x85},       {0xa0, 0xa0},       {0xad, 0xad},
    {0x34f, 0x34f},   {0x61c, 0x61c},     {0x115f, 0x1160},   {0x1680, 0x1680},   {0x17b4, 0x17b5},
    {0x180b, 0x180f}, {0x2000, 0x200f},   {0x2028, 0x202f},   {0x205f, 0x206f},   {0x2800, 0x2800},
    {0x3000, 0x3000}, {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
    {0xfff0, 0xfff8}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

bool text_is_blank(struct span text)
{
    const unsigned char *at = (const unsigned char *)text.at, *end = at + text.len;
    while (at < end) {
        long c = take_character(&at, end);
        size_t i = 0;
        while (i < sizeof(blanks) / sizeof(blanks[0]) && c > blanks[i].last)
            i++;
        if (i == sizeof(blanks) / sizeof(blanks[0]) || c < blanks[i].first)
            return false;
    }
    return true;
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
