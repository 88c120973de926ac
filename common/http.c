#include "http.h"

#include "http_characters.h"

#include <arpa/inet.h>
#include <string.h>

enum step {
    REQUEST_LINE, /* after a few empty lines at most */
    FIELD_LINES,  /* up to the empty line that ends the head */
    FIXED_BODY,   /* Content-Length bytes */
    CHUNK_SIZE,   /* the line before a chunk */
    CHUNK_DATA,
    CHUNK_END, /* the CRLF behind a chunk */
    TRAILERS,  /* field lines behind the last chunk, and the empty line */
    COMPLETE,
};

/* ---- lines --------------------------------------------------------------------------------- */

/* Takes the next line. Returns 1 if it is in *line, without its CRLF; 0 if its end has not come
 * yet; < 0 to refuse. An unfinished line is measured like a finished one, so a limit applies at the
 * same byte however the bytes were cut. */
static int take_line(struct http_parser *p, const char *bytes, size_t len, size_t max, int too_long,
                     struct span *line)
{
    const char *lf = memchr(bytes + p->scanned, '\n', len - p->scanned);
    size_t end = lf ? (size_t)(lf - bytes) : len;
    bool cr = end > p->at && bytes[end - 1] == '\r';
    size_t line_len = end - p->at - cr;

    if (line_len > max)
        return -too_long;
    if (!lf) {
        p->scanned = len;
        return 0;
    }
    if (!cr)
        return -400; /* a bare LF: a request could hide from a program that sees no line end here */
    *line = (struct span){bytes + p->at, line_len};
    p->at = p->scanned = end + 1;
    return 1;
}

/* An IPv6 address, without its brackets. */
static bool is_address(struct span text)
{
    char address[INET6_ADDRSTRLEN];
    struct in6_addr unused;
    if (text.len >= sizeof(address))
        return false;
    memcpy(address, text.at, text.len);
    address[text.len] = '\0';
    return strlen(address) == text.len && inet_pton(AF_INET6, address, &unused) == 1;
}

static bool is_host_name(struct span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] == '%' && !http_is_escape(text.at + i, text.len - i))
            return false;
    return text.len > 0 && http_all_are(text, HTTP_NAME);
}

static bool is_port(struct span text)
{
    unsigned port = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (!http_is_digit(text.at[i]) || i >= 5)
            return false;
        port = port * 10 + (unsigned)(text.at[i] - '0');
    }
    return port <= 65535;
}

/* host [ ":" port ] (RFC 9110, 4.2.1 and 7.2): never empty, never with a user name before it. */
static bool is_authority(struct span text)
{
    if (text.len == 0 || text.at[0] != '[')
        return is_host_name(span_take_until(&text, ':')) && is_port(text);
    text = (struct span){text.at + 1, text.len - 1};
    if (!memchr(text.at, ']', text.len) || !is_address(span_take_until(&text, ']')))
        return false;
    return text.len == 0 ||
           (text.at[0] == ':' && is_port((struct span){text.at + 1, text.len - 1}));
}

static enum http_method method_of(struct span name)
{
    static const struct {
        const char *name;
        enum http_method method;
    } methods[] = {
        {"GET", HTTP_GET},         {"HEAD", HTTP_HEAD},   {"POST", HTTP_POST},
        {"OPTIONS", HTTP_OPTIONS}, {"PUT", HTTP_KNOWN},   {"DELETE", HTTP_KNOWN},
        {"PATCH", HTTP_KNOWN},     {"TRACE", HTTP_KNOWN}, {"CONNECT", HTTP_KNOWN},
    };
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        if (span_is(name, methods[i].name))
            return methods[i].method;
    return HTTP_UNKNOWN;
}

/* Takes "http://authority" off the front of an absolute-form target (RFC 9112, 3.2.2). */
static bool take_authority(struct span *target, struct span *authority)
{
    static const char scheme[] = "http://";
    size_t prefix = sizeof(scheme) - 1;
    if (target->len < prefix || strncasecmp(target->at, scheme, prefix) != 0)
        return false;
    const char *at = target->at + prefix, *end = target->at + target->len, *stop = at;
    while (stop < end && *stop != '/' && *stop != '?')
        stop++;
    *authority = (struct span){at, (size_t)(stop - at)};
    *target = (struct span){stop, (size_t)(end - stop)};
    return is_authority(*authority);
}

/* Splits the target into host, path and query (RFC 9112, 3.2). The host stays as it is unless the
 * target has its own. */
static bool split_target(struct span target, enum http_method method, struct span *host,
                         struct span *path, struct span *query)
{
    *query = (struct span){0};
    if (span_is(target, "*")) {
        *path = target;
        return method == HTTP_OPTIONS;
    }
    if (target.at[0] != '/' && !take_authority(&target, host))
        return false;
    *path = span_take_until(&target, '?');
    if (target.at > path->at + path->len)
        *query = target;
    if (path->len == 0)
        *path = SPAN("/");
    return http_all_are(*path, HTTP_SENT) && http_all_are(*query, HTTP_SENT);
}

/* METHOD SP TARGET SP HTTP/1.x (RFC 9112, 3) */
static int request_line(struct http_parser *p, const char *bytes, struct span line)
{
    p->line = (size_t)(line.at - bytes);
    p->line_len = line.len;

    struct span rest = line;
    struct span method = span_take_until(&rest, ' ');
    struct span target = span_take_until(&rest, ' ');
    struct span version = rest;
    if (method.len == 0 || !http_all_are(method, HTTP_TOKEN) || target.len == 0)
        return 400;
    if (version.len != 8 || memcmp(version.at, "HTTP/", 5) != 0 || !http_is_digit(version.at[5]) ||
        version.at[6] != '.' || !http_is_digit(version.at[7]))
        return 400;
    p->method = method_of(method);
    if (version.at[5] != '1')
        return 505;
    p->minor = version.at[7] - '0';
    p->keep_alive = p->minor >= 1;
    p->target = (size_t)(target.at - bytes);
    p->target_len = target.len;

    struct span host, path, query;
    return split_target(target, p->method, &host, &path, &query) ? 0 : 400;
}

/* ---- fields -------------------------------------------------------------------------------- */

static int content_length(struct http_parser *p, struct span value)
{
    if (p->has_length || value.len == 0)
        return 400;
    p->has_length = true;
    for (size_t i = 0; i < value.len; i++) {
        if (!http_is_digit(value.at[i]))
            return 400;
        if (p->content_length <= HTTP_MAX_BODY) /* more is too much, and soon an overflow */
            p->content_length = p->content_length * 10 + (uint64_t)(value.at[i] - '0');
    }
    return 0;
}

/* "chunked" may come only once, as the last coding (RFC 9112, 6.1), and without parameters. */
static int transfer_encoding(struct http_parser *p, struct span value)
{
    do {
        struct span parameters = span_trim(span_take_until(&value, ','));
        struct span coding = span_trim(span_take_until(&parameters, ';'));
        bool chunked = span_is_nocase(coding, "chunked");
        if (coding.len == 0 || !http_all_are(coding, HTTP_TOKEN) || p->chunked ||
            (chunked && parameters.at[-1] == ';'))
            return 400;
        p->chunked = chunked;
        p->other_coding = p->other_coding || !chunked;
    } while (value.len > 0 || value.at[-1] == ',');
    return 0;
}

static void connection(struct http_parser *p, struct span value)
{
    while (value.len > 0) {
        struct span option = span_trim(span_take_until(&value, ','));
        if (span_is_nocase(option, "close"))
            p->close = true;
        else if (span_is_nocase(option, "keep-alive"))
            p->keep_alive = true;
    }
}

static int expectation(struct http_parser *p, struct span value)
{
    p->expect = true;
    return span_is_nocase(value, "100-continue") ? 0 : 417;
}

static int host(struct http_parser *p, const char *bytes, struct span value)
{
    p->host = (size_t)(value.at - bytes);
    p->host_len = value.len;
    return ++p->hosts == 1 && is_authority(value) ? 0 : 400;
}

/* Checks one field line, and notes what decides where the request ends (RFC 9112, 5). */
static int field_line(struct http_parser *p, const char *bytes, struct span line)
{
    struct span value = line;
    struct span name = span_take_until(&value, ':');
    if (name.len == 0 || name.len == line.len || !http_all_are(name, HTTP_TOKEN) ||
        !http_all_are(value, HTTP_VALUE))
        return 400;
    if (p->step == TRAILERS)
        return 0; /* checked, and dropped: nothing behind a body may change how it was read */
    value = span_trim(value);
    if (span_is_nocase(name, "Host"))
        return host(p, bytes, value);
    if (span_is_nocase(name, "Content-Length"))
        return content_length(p, value);
    if (span_is_nocase(name, "Transfer-Encoding"))
        return transfer_encoding(p, value);
    if (span_is_nocase(name, "Expect"))
        return expectation(p, value);
    if (span_is_nocase(name, "Connection"))
        connection(p, value);
    return 0;
}

/* Takes field lines. Returns 1 if all have come, with the empty line; 0 if more are to come; < 0 to
 * refuse. */
static int take_fields(struct http_parser *p, const char *bytes, size_t len)
{
    for (;;) {
        struct span line;
        size_t room = HTTP_MAX_FIELD_BYTES - p->field_bytes;
        int got = take_line(p, bytes, len, room > 2 ? room - 2 : 0, 431, &line);
        if (got <= 0)
            return got;
        if (line.len == 0)
            return 1;
        p->field_bytes += line.len + 2;
        if (++p->field_count > HTTP_MAX_FIELDS)
            return -431;
        int status = field_line(p, bytes, line);
        if (status != 0)
            return -status;
    }
}

/* The head is whole. Finds out how the body ends (RFC 9112, 6.3). */
static int head_complete(struct http_parser *p)
{
    if (p->hosts == 0 && p->minor >= 1)
        return 400;
    if ((p->chunked || p->other_coding) && (p->has_length || p->minor == 0))
        return 400; /* two programs on the way could disagree about its end */
    if (p->other_coding)
        return 501;
    if (p->content_length > HTTP_MAX_BODY)
        return 413;
    p->body = p->at;
    p->remaining = (size_t)p->content_length;
    p->step = p->chunked ? CHUNK_SIZE : FIXED_BODY;
    p->continue_due = p->expect && p->minor >= 1 && (p->chunked || p->remaining > 0);
    return 0;
}

/* ---- chunks (RFC 9112, 7.1) ---------------------------------------------------------------- */

static int chunk_size(struct http_parser *p, struct span line)
{
    size_t size = 0, digits = 0;
    for (; digits < line.len && http_hex_value(line.at[digits]) >= 0; digits++)
        if (size <= HTTP_MAX_BODY) /* see content_length() */
            size = size * 16 + (size_t)http_hex_value(line.at[digits]);
    if (digits == 0 || digits < line.len)
        return 400; /* an extension, too: requests have been hidden in them */
    if (size > HTTP_MAX_BODY - p->body_len)
        return 413;
    p->remaining = size;
    p->step = size > 0 ? CHUNK_DATA : TRAILERS;
    return 0;
}

/* Closes the gap that the framing of chunks has left between the body and the unread bytes. */
static void squeeze(struct http_parser *p, char *bytes, size_t *len)
{
    size_t end = p->body + p->body_len, gap = p->at - end;
    memmove(bytes + end, bytes + p->at, *len - p->at);
    *len -= gap;
    p->at -= gap;
    p->scanned -= gap;
}

/* ---- the machine --------------------------------------------------------------------------- */

void http_parser_reset(struct http_parser *p)
{
    *p = (struct http_parser){0};
}

/* Turns the status of a refusal, or 0 for none, into a step's result. */
static int go_on(int status)
{
    return status == 0 ? 1 : -status;
}

/* Every step returns 1 if it is done, 0 if it needs more bytes, and < 0 to refuse. */

static int read_request_line(struct http_parser *p, const char *bytes, size_t len)
{
    struct span line;
    if (len > p->at && bytes[p->at] != '\r' && !http_is(bytes[p->at], HTTP_TOKEN)) {
        p->line = p->at; /* this byte is all that the log shows */
        p->line_len = 1;
        return -400; /* no method begins like that: a client of TLS would wait for our answer */
    }
    int got = take_line(p, bytes, len, HTTP_MAX_REQUEST_LINE, 414, &line);
    if (got <= 0)
        return got;
    if (line.len == 0)
        return ++p->empty_lines > HTTP_MAX_EMPTY_LINES ? -400 : 1;
    p->step = FIELD_LINES;
    p->fields = p->at;
    return go_on(request_line(p, bytes, line));
}

static int read_fields(struct http_parser *p, const char *bytes, size_t len)
{
    int got = take_fields(p, bytes, len);
    if (got <= 0)
        return got;
    p->fields_end = p->at - 2;
    return go_on(head_complete(p));
}

static int read_fixed_body(struct http_parser *p, size_t len)
{
    p->body_len = len - p->body < p->remaining ? len - p->body : p->remaining;
    p->at = p->scanned = p->body + p->body_len;
    if (p->body_len < p->remaining)
        return 0;
    p->step = COMPLETE;
    return 1;
}

static int read_chunk_size(struct http_parser *p, const char *bytes, size_t len)
{
    struct span line;
    int got = take_line(p, bytes, len, HTTP_MAX_CHUNK_LINE, 400, &line);
    return got <= 0 ? got : go_on(chunk_size(p, line));
}

/* Moves the bytes of a chunk that have come down to the end of the body. */
static int read_chunk_data(struct http_parser *p, char *bytes, size_t len)
{
    size_t n = len - p->at < p->remaining ? len - p->at : p->remaining;
    memmove(bytes + p->body + p->body_len, bytes + p->at, n);
    p->body_len += n;
    p->remaining -= n;
    p->at = p->scanned = p->at + n;
    if (p->remaining > 0)
        return 0;
    p->step = CHUNK_END;
    return 1;
}

static int read_chunk_end(struct http_parser *p, const char *bytes, size_t len)
{
    struct span line;
    int got = take_line(p, bytes, len, 0, 400, &line);
    if (got > 0)
        p->step = CHUNK_SIZE;
    return got;
}

static int read_trailers(struct http_parser *p, const char *bytes, size_t len)
{
    int got = take_fields(p, bytes, len);
    if (got > 0)
        p->step = COMPLETE;
    return got;
}

static int next_step(struct http_parser *p, char *bytes, size_t len)
{
    switch ((enum step)p->step) {
    case REQUEST_LINE:
        return read_request_line(p, bytes, len);
    case FIELD_LINES:
        return read_fields(p, bytes, len);
    case FIXED_BODY:
        return read_fixed_body(p, len);
    case CHUNK_SIZE:
        return read_chunk_size(p, bytes, len);
    case CHUNK_DATA:
        return read_chunk_data(p, bytes, len);
    case CHUNK_END:
        return read_chunk_end(p, bytes, len);
    case TRAILERS:
        return read_trailers(p, bytes, len);
    case COMPLETE:
        break;
    }
    return 0;
}

static void fill_request(const struct http_parser *p, const char *bytes, struct http_request *r)
{
    *r = (struct http_request){
        .method = p->method,
        .minor = p->minor,
        .line = {bytes + p->line, p->line_len},
        .host = {bytes + p->host, p->host_len},
        .fields = {bytes + p->fields, p->fields_end - p->fields},
        .body = {bytes + p->body, p->body_len},
        .keep_alive = p->keep_alive && !p->close,
    };
    split_target((struct span){bytes + p->target, p->target_len}, p->method, &r->host, &r->path,
                 &r->query);
}

int http_parse(struct http_parser *p, char *bytes, size_t *len, struct http_request *request)
{
    int went;
    do
        went = next_step(p, bytes, *len);
    while (went > 0 && p->step != COMPLETE);

    if (p->chunked && p->body > 0)
        squeeze(p, bytes, len);
    if (p->step == COMPLETE) {
        fill_request(p, bytes, request);
        return (int)p->at;
    }
    if (went < 0)
        *request = http_partial_request(p, bytes);
    return went;
}

size_t http_missing(const struct http_parser *p, size_t len)
{
    return p->step == FIXED_BODY ? p->body + p->remaining - len : 0;
}

struct http_request http_partial_request(const struct http_parser *p, const char *bytes)
{
    return (struct http_request){
        .method = p->method, .minor = p->minor, .line = {bytes + p->line, p->line_len}};
}

/* ---- reading a request's fields ------------------------------------------------------------ */

bool http_next_field(struct span *rest, const char *name, struct span *value)
{
    while (rest->len > 0) {
        struct span line = span_take_until(rest, '\n');
        line.len--; /* its CR */
        struct span key = span_take_until(&line, ':');
        if (!span_is_nocase(key, name))
            continue;
        *value = span_trim(line);
        return true;
    }
    return false;
}

struct span http_field(const struct http_request *request, const char *name)
{
    struct span rest = request->fields, value = {0};
    http_next_field(&rest, name, &value);
    return value;
}

bool http_next_member(struct span *list, struct span *member)
{
    if (list->len == 0)
        return false;
    bool quoted = false;
    size_t len = 0;
    while (len < list->len && (quoted || list->at[len] != ','))
        quoted ^= list->at[len++] == '"';
    *member = span_trim((struct span){list->at, len});
    len += len < list->len; /* the comma */
    *list = (struct span){list->at + len, list->len - len};
    return true;
}
