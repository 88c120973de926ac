#include "http_characters.h"

#include <string.h>

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
