/* http_characters: which bytes may appear where, and the escapes of http.h (RFC 3986). */
#include "http_characters.h"

#include "http.h"

#include <string.h>

/* ---- classes of bytes ---------------------------------------------------------------------- */

bool http_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool http_is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

int http_hex_value(char c)
{
    if (http_is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

unsigned char http_classes[256];

__attribute__((constructor)) static void fill_classes(void)
{
    for (int c = 0; c < 256; c++) {
        bool alnum = c < 128 && (http_is_alpha((char)c) || http_is_digit((char)c));
        bool in_text = c > 0 && c < 128;
        if (alnum || (in_text && strchr("!#$%&'*+-.^_`|~", c)))
            http_classes[c] |= HTTP_TOKEN;
        if (c == '\t' || (c >= ' ' && c != 127))
            http_classes[c] |= HTTP_VALUE;
        if (alnum || (in_text && strchr("-._~!$&'()*+,;=%", c)))
            http_classes[c] |= HTTP_NAME | HTTP_URI | HTTP_SENT;
        if (in_text && strchr(":@/?", c))
            http_classes[c] |= HTTP_URI | HTTP_SENT;
        if (in_text && strchr("[]{|}^`", c)) /* no backslash: some programs take it for a slash */
            http_classes[c] |= HTTP_SENT;
    }
}

bool http_is_escape(const char *at, size_t len)
{
    return len >= 3 && at[0] == '%' && http_hex_value(at[1]) >= 0 && http_hex_value(at[2]) >= 0;
}

bool http_all_are(struct span span, int class)
{
    for (size_t i = 0; i < span.len; i++)
        if (!http_is(span.at[i], class))
            return false;
    return true;
}

/* ---- escapes ------------------------------------------------------------------------------- */

/* Decodes "%XX". Returns the length, or -1 for a bad escape. `to` may be `from`. */
static long decode(const char *from, size_t len, char *to, bool plus_is_space)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        char c = from[i];
        if (c == '+' && plus_is_space) {
            c = ' ';
        } else if (c == '%') {
            if (!http_is_escape(from + i, len - i))
                return -1;
            c = (char)(http_hex_value(from[i + 1]) * 16 + http_hex_value(from[i + 2]));
            i += 2;
        }
        to[n++] = c;
    }
    return (long)n;
}

long http_decode_form(char *text, size_t len)
{
    return decode(text, len, text, true);
}

long http_decode_escapes(char *text, size_t len)
{
    return decode(text, len, text, false);
}

/* Drops "." and empty segments. ".." also drops the segment before it. The result is never longer,
 * so this works in place. */
static bool resolve_dots(char *path)
{
    char *out = path;
    const char *segment = path;
    while (*segment) {
        segment++; /* its slash */
        size_t len = strcspn(segment, "/");
        bool last = segment[len] == '\0';
        if (len == 2 && memcmp(segment, "..", 2) == 0) {
            if (out == path)
                return false; /* above the root */
            while (*--out != '/')
                ;
        } else if (len > 0 && !(len == 1 && segment[0] == '.')) {
            *out++ = '/';
            memmove(out, segment, len);
            out += len;
            segment += len;
            continue;
        }
        segment += len;
        if (last)
            *out++ = '/'; /* "/a/.", "/a/b/.." and "/a/" all name a folder */
    }
    *out = '\0';
    return true;
}

bool http_decode_path(struct span path, char *decoded)
{
    long len = decode(path.at, path.len, decoded, false);
    if (len <= 0 || decoded[0] != '/')
        return false;
    for (long i = 0; i < len; i++)
        if ((unsigned char)decoded[i] < ' ' || decoded[i] == 127)
            return false;
    decoded[len] = '\0';
    return resolve_dots(decoded);
}

/* A path was decoded before: its "%" begins no escape, and its "?" begins no query. */
static size_t encode(struct span text, bool is_path, char *encoded)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        bool stays = c == '%' ? !is_path && http_is_escape(text.at + i, text.len - i)
                              : http_is((char)c, HTTP_URI) && !(is_path && c == '?');
        encoded[n++] = stays ? (char)c : '%';
        if (!stays) {
            encoded[n++] = hex[c >> 4];
            encoded[n++] = hex[c & 15];
        }
    }
    encoded[n] = '\0';
    return n;
}

size_t http_encode_path(const char *path, char *encoded)
{
    return encode(span_of(path), true, encoded);
}

size_t http_encode_query(struct span query, char *encoded)
{
    return encode(query, false, encoded);
}
