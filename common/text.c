#include "text.h"

#include <ctype.h>
#include <stdatomic.h>
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

int text_hex_value(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return at ? (int)(at - digits) : -1;
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
        if (c < 0 || (control && !(lines && (c == '\n' || c == '\t'))))
            return -1;
    }
    return count;
}

/* ---- buffer: memory that clients can make a server hold ------------------------------------ */

static uint64_t budget = UINT64_MAX;
static _Atomic uint64_t charged; /* a child begins with its parent's, which is 0 */

static uint64_t charge_of(size_t size)
{
    return size > BUFFER_FREE ? size : 0;
}

bool buffer_grow(struct buffer *b, size_t more)
{
    size_t size = b->size ? b->size : 1024;
    while (size - b->len < more)
        size *= 2;
    uint64_t charge = charge_of(size) - charge_of(b->size);
    bool in_budget = charge == 0 || atomic_fetch_add(&charged, charge) + charge <= budget;
    char *bytes = in_budget ? realloc(b->bytes, size) : NULL;
    if (!bytes) {
        if (charge > 0)
            atomic_fetch_sub(&charged, charge);
        b->failed = true;
        return false;
    }
    b->bytes = bytes;
    b->size = size;
    return true;
}

void buffer_clear(struct buffer *b, size_t keep)
{
    if (b->size > keep) {
        if (charge_of(b->size) > 0)
            atomic_fetch_sub(&charged, charge_of(b->size));
        free(b->bytes);
        *b = (struct buffer){0};
    }
    b->len = 0;
    b->failed = false;
}

void buffer_drop(struct buffer *b, size_t count, size_t keep)
{
    if (count == b->len) {
        buffer_clear(b, keep);
        return;
    }
    size_t size = keep;
    b->len -= count;
    memmove(b->bytes, b->bytes + count, b->len);
    while (size < b->len)
        size *= 2;
    char *bytes = size < b->size ? realloc(b->bytes, size) : NULL;
    if (!bytes)
        return; /* it is small enough, or stays as it is */
    if (charge_of(b->size) > 0)
        atomic_fetch_sub(&charged, charge_of(b->size) - charge_of(size));
    b->bytes = bytes;
    b->size = size;
}

void buffer_set_budget(uint64_t bytes)
{
    budget = bytes;
}

uint64_t buffer_charged(void)
{
    return charged;
}
