#include "uri.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- which bytes may appear where ---------------------------------------------------------- */

/* Of a host's name (RFC 3986, 3.2.2: unreserved, sub-delims, "%"); and of a path or a query (3.3
 * and 3.4), with what browsers do not escape (URL Standard, 1.3). */
static bool in_name[256], in_sent[256];

/* Runs before main(), as http.c's does. */
__attribute__((constructor)) static void fill_tables(void)
{
    for (int c = 1; c < 128; c++) {
        in_name[c] = isalnum(c) || strchr("-._~!$&'()*+,;=%", c);
        in_sent[c] = in_name[c] || strchr(":@/?[]{|}^`", c); /* not "\\": some take it for "/" */
    }
}

bool uri_has_valid_bytes(struct span path_or_query)
{
    return span_is_of(path_or_query, in_sent);
}

/* ---- escapes (RFC 3986) --------------------------------------------------------------------- */

/* The byte that "%XX" stands for; -1 if no such escape begins here. */
static int escaped_byte(const char *at, size_t len)
{
    if (len < 3 || at[0] != '%' || text_hex_value(at[1]) < 0 || text_hex_value(at[2]) < 0)
        return -1;
    return text_hex_value(at[1]) * 16 + text_hex_value(at[2]);
}

long uri_decode_escapes(char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++, n++) {
        text[n] = text[i];
        if (text[i] != '%')
            continue;
        int byte = escaped_byte(text + i, len - i);
        if (byte < 0)
            return -1;
        text[n] = (char)byte;
        i += 2;
    }
    return (long)n;
}

long uri_decode_form(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] == '+')
            text[i] = ' ';
    return uri_decode_escapes(text, len);
}

/* Drops "." and empty segments. ".." also drops the segment before it. The result is never longer,
 * so this works in place. */
static bool resolve_dots(char *path)
{
    char *out = path;
    const char *segment = path;
    while (*segment) {
        size_t len = strcspn(++segment, "/"); /* behind its slash */
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
        if (*segment == '\0')
            *out++ = '/'; /* "/a/.", "/a/b/.." and "/a/" all name a folder */
    }
    *out = '\0';
    return true;
}

bool uri_decode_path(struct span path, char *decoded)
{
    memcpy(decoded, path.at, path.len);
    long len = uri_decode_escapes(decoded, path.len);
    if (len <= 0 || decoded[0] != '/')
        return false;
    for (long i = 0; i < len; i++)
        if ((unsigned char)decoded[i] < ' ' || decoded[i] == 127)
            return false;
    decoded[len] = '\0';
    return resolve_dots(decoded);
}

size_t uri_encode(struct span text, bool is_query, char *encoded)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        bool stays = (in_name[c] && c != '%') || c == ':' || c == '@' || c == '/';
        if (is_query && (c == '?' || escaped_byte(text.at + i, text.len - i) >= 0))
            stays = true;
        encoded[n++] = stays ? (char)c : '%';
        if (!stays) {
            encoded[n++] = hex[c >> 4];
            encoded[n++] = hex[c & 15];
        }
    }
    encoded[n] = '\0';
    return n;
}

/* ---- authority ------------------------------------------------------------------------------ */

bool uri_split_authority(struct span text, struct span *host, struct span *port)
{
    struct span rest = text;
    bool in_brackets = text.len > 0 && text.at[0] == '[';
    *host = span_take_until(&rest, in_brackets ? ']' : ':');
    if (in_brackets) {
        char address[INET6_ADDRSTRLEN];
        struct in6_addr unused;
        snprintf(address, sizeof(address), "%.*s", (int)host->len - 1, host->at + 1);
        if (rest.at == host->at + host->len || strlen(address) != host->len - 1 ||
            inet_pton(AF_INET6, address, &unused) != 1)
            return false; /* no "]", a NUL, or too long to be an address */
        host->len++;      /* the "]" */
        if (rest.len > 0 && !span_take_prefix(&rest, ":"))
            return false;
    } else {
        if (host->len == 0 || !span_is_of(*host, in_name))
            return false;
        for (size_t i = 0; i < host->len; i++)
            if (host->at[i] == '%' && escaped_byte(host->at + i, host->len - i) < 0)
                return false;
    }
    uint64_t number;
    *port = rest.len > 0 ? rest : SPAN("80");
    return rest.len == 0 ||
           (rest.len <= 5 && span_take_number(&rest, &number) && rest.len == 0 && number <= 65535);
}
