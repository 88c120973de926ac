/* http_characters: which bytes may appear where in HTTP. For http.c only. */
#ifndef HTTP_CHARACTERS_H
#define HTTP_CHARACTERS_H

#include "text.h"

/* What a byte may be part of. */
enum {
    HTTP_TOKEN = 1, /* RFC 9110, 5.6.2 */
    HTTP_VALUE = 2, /* of a field: no control character but the tab (RFC 9110, 5.5) */
    HTTP_URI = 4,   /* of a path or a query, "%" included (RFC 3986, 3.3 and 3.4) */
    HTTP_NAME = 8,  /* of a host name (RFC 3986, 3.2.2: unreserved, sub-delims, "%") */
    HTTP_SENT = 16, /* of a path or a query as sent: HTTP_URI, and bytes that browsers do not escape
                       (URL Standard, 1.3) */
};

/* Filled before main() runs, so that every thread and child finds it ready. The code that fills it
 * is easier to read than a table of 256 numbers. */
extern unsigned char http_classes[256];

static inline bool http_is(char c, int class)
{
    return http_classes[(unsigned char)c] & class;
}

bool http_all_are(struct span, int class);
bool http_is_alpha(char);
bool http_is_digit(char);
int http_hex_value(char);                        /* -1: not a hexadecimal digit */
bool http_is_escape(const char *at, size_t len); /* does "%XX" begin here? */

#endif
