/* http: HTTP/1.x (RFC 9112). The parser is fed bytes as they come.
 *
 *  - The parser allocates nothing. A request points into the caller's buffer.
 *  - The result never depends on how the bytes were cut into packets.
 *  - Strict about where a request ends: where the RFC leaves a choice, the parser
 *    takes the stricter one. If two programs read the same bytes differently, an
 *    attacker can make use of that (request smuggling).
 */
#ifndef HTTP_H
#define HTTP_H

#include "text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum {
    HTTP_MAX_REQUEST_LINE = 8000, /* bytes, without the line's end: else 414 */
    HTTP_MAX_FIELDS = 100,        /* header and trailer lines together: else 431 */
    HTTP_MAX_FIELD_BYTES = 16384, /* the same lines, their ends included: else 431 */
    HTTP_MAX_BODY = 65536,        /* bytes, chunks decoded: else 413 */
    HTTP_MAX_EMPTY_LINES = 2,     /* before a request line */
    HTTP_MAX_CHUNK_LINE = 256,    /* a chunk's size and extensions, bytes: else 400 */
};

/* The methods that a route can have. The others of RFC 9110, and PATCH of RFC 5789, are known, and
 * refused with 405 (CONNECT with a host and a port as its target: 400). */
enum http_method {
    HTTP_UNKNOWN = 0, /* any other token: 501 */
    HTTP_GET = 1,
    HTTP_HEAD = 2,
    HTTP_POST = 4,
    HTTP_OPTIONS = 8,
    HTTP_KNOWN = 16, /* PUT, DELETE, PATCH, TRACE, CONNECT */
};

/* One request. Every span points into the buffer given to http_parse(), and is valid as long as the
 * bytes stay in place. */
struct http_request {
    enum http_method method;
    struct span line;   /* the whole request line, for a log; empty if there was none */
    struct span path;   /* as sent, still %-encoded; "*" for OPTIONS * */
    struct span query;  /* the bytes behind the "?"; at == NULL if there is no "?" */
    struct span host;   /* the Host field, or the authority of an absolute-form target */
    struct span fields; /* the field lines, checked, each with its CRLF */
    struct span body;   /* decoded if it came in chunks */
    int minor;          /* HTTP/1.minor */
    bool keep_alive;    /* what the client wants (RFC 9112, 9.3) */
};

/* How far one request has been read. All zero before its first byte. */
struct http_parser {
    int step;                /* enum step in http.c */
    size_t at;               /* bytes [0, at) have been parsed */
    size_t line, line_len;   /* the request line */
    size_t fields;           /* where the field lines begin */
    size_t fields_end;       /* and end; the body follows the empty line behind */
    size_t host, host_len;   /* value of the Host field */
    size_t body;             /* where the body begins */
    size_t body_len;         /* bytes of it already in place */
    size_t remaining;        /* Content-Length; or bytes of the chunk that are still to come */
    size_t field_bytes;      /* header and trailer lines so far */
    uint64_t content_length; /* the largest number stands for all larger ones */
    int field_count, empty_lines, minor, hosts;
    enum http_method method;
    bool has_length, chunked, other_coding, close, keep_alive, expect;
    bool continue_due; /* the client waits for "100 Continue" before it sends the body: send
                          HTTP_CONTINUE, then clear this (RFC 9110, 10.1.1) */
};

#define HTTP_CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"

/* Reads on where the last call for this request stopped; bytes[0, *len) is all
 * that has come for it, and what may follow it.
 *   > 0  a whole request, filled in; that many bytes are its own, what is
 *        behind them belongs to the next one. It says the same when called once more
 *     0  call again when there is more
 *   < 0  refuse it: answer with status -result, and close; nothing behind it
 *        can be understood. The request holds what was understood (line, method, minor).
 * The framing of a chunked body is squeezed out of the buffer as it is read,
 * so *len can shrink. */
int http_parse(struct http_parser *, char *bytes, size_t *len, struct http_request *);

/* What is known of an unfinished request: its line, method and minor version. Each is empty or
 * unknown if it has not come yet. */
struct http_request http_partial_request(const struct http_parser *, const char *bytes);

/* The value of the first field of that name (in any case), without white space around it.
 * at == NULL if there is no such field. */
struct span http_field(const struct http_request *, const char *name);

/* The same for a field that may have several lines. `rest` starts as request->fields. Returns false
 * when there is no further line. */
bool http_next_field(struct span *rest, const char *name, struct span *value);

/* ---- responses ------------------------------------------------------------------------------ */

enum {
    HTTP_DATE_SIZE = 30, /* "Sun, 06 Nov 1994 08:49:37 GMT" and its NUL */
};

/* Formats IMF-fixdate (RFC 9110, 5.6.7). */
void http_format_date(time_t, char date[HTTP_DATE_SIZE]);

/* Reads any of the three date forms (RFC 9110, 5.6.7); -1 if it is none of them. A date before 1970
 * is negative, too, and callers ignore it. It is read as strptime(3) does, which takes other
 * spaces and cases, too, and for which a year of two digits is one of 1969 to 2068. A leap second
 * (:60) is refused. */
time_t http_parse_date(struct span);

/* One response head. Zero it, then set what applies. Strings are borrowed. */
struct http_response {
    int status;
    const char *reason;        /* "Not Found" */
    const char *server;        /* Server */
    time_t date;               /* Date */
    const char *type;          /* Content-Type, NULL: none */
    const char *location;      /* NULL: none */
    const char *allow;         /* NULL: none */
    const char *last_modified; /* an HTTP date; NULL: none */
    const char *etag;          /* with its quotation marks; NULL: none */
    const char *content_range; /* NULL: none */
    const char *fields;        /* further whole field lines, each with its CRLF; NULL: none */
    bool has_length;           /* send Content-Length */
    uint64_t length;           /* bytes of content */
    bool keep_alive;           /* send "Connection: keep-alive", else "close" */
};

/* Appends the head and its empty line to a buffer. */
void http_format_head(const struct http_response *, struct buffer *out);

#endif
