#include "http.h"

#include "uri.h"

#include <ctype.h>
#include <string.h>

/* ---- which bytes may appear where ---------------------------------------------------------- */

/* Of a token (RFC 9110, 5.6.2), and of a field's value: no control character but the tab (5.5). */
static bool in_token[256], in_value[256];

/* Runs before main(), so that every thread and child finds the tables ready. This is easier to read
 * than tables of 256 words. */
__attribute__((constructor)) static void fill_tables(void)
{
    for (int c = 0; c < 256; c++) {
        bool in_text = c > 0 && c < 128;
        in_token[c] = in_text && (isalnum(c) || strchr("!#$%&'*+-.^_`|~", c));
        in_value[c] = c == '\t' || (c >= ' ' && c != 127);
    }
}

/* ---- lines --------------------------------------------------------------------------------- */

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

/* Takes the next line. Returns 1 if it is in *line, without its CRLF; 0 if its end has not come
 * yet; < 0 to refuse. An unfinished line is measured like a finished one, so a limit applies at the
 * same byte however the bytes were cut. */
static int take_line(struct http_parser *p, const char *bytes, size_t len, size_t max, int too_long,
                     struct span *line)
{
    const char *lf = memchr(bytes + p->at, '\n', len - p->at);
    size_t end = lf ? (size_t)(lf - bytes) : len;
    bool cr = end > p->at && bytes[end - 1] == '\r';
    size_t line_len = end - p->at - cr;

    if (line_len > max)
        return -too_long;
    if (!lf)
        return 0; /* the next call looks from p->at again: that is at most 16 KiB */
    if (!cr)
        return -400; /* a bare LF: a request could hide from a program that sees no line end here */
    *line = (struct span){bytes + p->at, line_len};
    p->at = end + 1;
    return 1;
}

/* ---- the request line ---------------------------------------------------------------------- */

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
    if (target.at[0] != '/') { /* the absolute form (3.2.2) */
        struct span name, port;
        size_t len = 0;
        if (!span_take_prefix(&target, "http://"))
            return false;
        while (len < target.len && target.at[len] != '/' && target.at[len] != '?')
            len++;
        *host = (struct span){target.at, len};
        target = span_skip(target, len);
        if (!uri_split_authority(*host, &name, &port))
            return false;
    }
    *path = span_take_until(&target, '?');
    if (target.at > path->at + path->len)
        *query = target;
    if (path->len == 0)
        *path = SPAN("/");
    return uri_has_valid_bytes(*path) && uri_has_valid_bytes(*query);
}

/* Every step of the parser returns 1 if it is done, 0 if it needs more bytes, and < 0 to refuse. */

/* METHOD SP TARGET SP HTTP/1.x (RFC 9112, 3) */
static int read_request_line(struct http_parser *p, const char *bytes, size_t len)
{
    struct span rest, host, path, query;
    if (len > p->at && bytes[p->at] != '\r' && !in_token[(unsigned char)bytes[p->at]]) {
        p->line = p->at; /* this byte is all that the log shows */
        p->line_len = 1;
        return -400; /* no method begins like that: a client of TLS would wait for our answer */
    }
    int got = take_line(p, bytes, len, HTTP_MAX_REQUEST_LINE, 414, &rest);
    if (got <= 0)
        return got;
    if (rest.len == 0)
        return ++p->empty_lines > HTTP_MAX_EMPTY_LINES ? -400 : 1;
    p->line = (size_t)(rest.at - bytes);
    p->line_len = rest.len;
    p->fields = p->at;
    p->step = FIELD_LINES;

    struct span method = span_take_until(&rest, ' ');
    struct span target = span_take_until(&rest, ' ');
    if (method.len == 0 || !span_is_of(method, in_token) || target.len == 0)
        return -400;
    if (rest.len != 8 || memcmp(rest.at, "HTTP/", 5) != 0 || !isdigit((unsigned char)rest.at[5]) ||
        rest.at[6] != '.' || !isdigit((unsigned char)rest.at[7]))
        return -400;
    p->method = method_of(method);
    if (rest.at[5] != '1')
        return -505;
    p->minor = rest.at[7] - '0';
    p->keep_alive = p->minor >= 1;
    return split_target(target, p->method, &host, &path, &query) ? 1 : -400;
}

/* ---- fields -------------------------------------------------------------------------------- */

/* "chunked" may come only once, as the last coding (RFC 9112, 6.1), and without parameters. */
static int transfer_encoding(struct http_parser *p, struct span value)
{
    do {
        struct span parameters = span_trim(span_take_until(&value, ','));
        struct span coding = span_trim(span_take_until(&parameters, ';'));
        bool chunked = span_is_nocase(coding, "chunked");
        if (coding.len == 0 || !span_is_of(coding, in_token) || p->chunked ||
            (chunked && parameters.at[-1] == ';'))
            return 400;
        p->chunked = chunked;
        p->other_coding = p->other_coding || !chunked;
    } while (value.len > 0 || value.at[-1] == ',');
    return 0;
}

/* Checks one field line, and notes what decides where the request ends (RFC 9112, 5). Returns 0, or
 * the status to refuse it with. */
static int field_line(struct http_parser *p, const char *bytes, struct span line)
{
    struct span value = line, host, port;
    struct span name = span_take_until(&value, ':');
    if (name.len == 0 || name.len == line.len || !span_is_of(name, in_token) ||
        !span_is_of(value, in_value))
        return 400;
    if (p->step == TRAILERS)
        return 0; /* checked, and dropped: nothing behind a body may change how it was read */
    value = span_trim(value);
    if (span_is_nocase(name, "Host")) {
        p->host = (size_t)(value.at - bytes);
        p->host_len = value.len;
        return ++p->hosts == 1 && uri_split_authority(value, &host, &port) ? 0 : 400;
    }
    if (span_is_nocase(name, "Content-Length")) {
        if (p->has_length || !span_take_number(&value, &p->content_length) || value.len > 0)
            return 400;
        p->has_length = true;
    } else if (span_is_nocase(name, "Transfer-Encoding")) {
        return transfer_encoding(p, value);
    } else if (span_is_nocase(name, "Expect")) {
        bool is_alone = !p->expect; /* two fields are a list (RFC 9110, 5.3) */
        p->expect = true;
        return is_alone && span_is_nocase(value, "100-continue") ? 0 : 417;
    } else if (span_is_nocase(name, "Connection")) {
        while (value.len > 0) {
            struct span option = span_trim(span_take_until(&value, ','));
            p->close = p->close || span_is_nocase(option, "close");
            p->keep_alive = p->keep_alive || span_is_nocase(option, "keep-alive");
        }
    }
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

/* Reads up to the empty line, and finds out how the body ends (RFC 9112, 6.3). */
static int read_fields(struct http_parser *p, const char *bytes, size_t len)
{
    int got = take_fields(p, bytes, len);
    if (got <= 0)
        return got;
    p->fields_end = p->at - 2;
    if (p->hosts == 0 && p->minor >= 1)
        return -400;
    if ((p->chunked || p->other_coding) && (p->has_length || p->minor == 0))
        return -400; /* two programs on the way could disagree about its end */
    if (p->other_coding)
        return -501;
    if (p->content_length > HTTP_MAX_BODY)
        return -413;
    p->body = p->at;
    p->remaining = (size_t)p->content_length;
    p->step = p->chunked ? CHUNK_SIZE : FIXED_BODY;
    p->continue_due = p->expect && p->minor >= 1 && (p->chunked || p->remaining > 0);
    return 1;
}

/* ---- the body ------------------------------------------------------------------------------ */

/* Takes a token or a quoted string off the front, and the white space behind it. */
static bool take_word(struct span *rest, bool may_be_quoted)
{
    bool quoted = may_be_quoted && rest->len > 0 && rest->at[0] == '"';
    size_t n = quoted;
    while (n < rest->len && (quoted ? rest->at[n] != '"' : in_token[(unsigned char)rest->at[n]]))
        n += quoted && rest->at[n] == '\\' ? 2 : 1;
    n += quoted;
    if (n == 0 || n > rest->len)
        return false;
    *rest = span_trim(span_skip(*rest, n));
    return true;
}

/* A chunk's extensions, *( ";" name [ "=" value ] ), with white space around the parts. They are
 * ignored (RFC 9112, 7.1.1). But what is none could hide a request from another program. */
static bool is_extensions(struct span rest)
{
    if (!span_is_of(rest, in_value) || (rest.len > 0 && strchr(" \t", rest.at[rest.len - 1])))
        return false;
    for (rest = span_trim(rest); rest.len > 0;) {
        if (!span_take_prefix(&rest, ";"))
            return false;
        rest = span_trim(rest);
        if (!take_word(&rest, false))
            return false;
        if (!span_take_prefix(&rest, "="))
            continue;
        rest = span_trim(rest);
        if (!take_word(&rest, true))
            return false;
    }
    return true;
}

/* The line before a chunk (RFC 9112, 7.1). */
static int read_chunk_size(struct http_parser *p, const char *bytes, size_t len)
{
    struct span line;
    size_t size = 0, digits = 0;
    int got = take_line(p, bytes, len, HTTP_MAX_CHUNK_LINE, 400, &line);
    if (got <= 0)
        return got;
    for (; digits < line.len && text_hex_value(line.at[digits]) >= 0; digits++)
        if (size <= HTTP_MAX_BODY) /* more is too much, and soon an overflow */
            size = size * 16 + (size_t)text_hex_value(line.at[digits]);
    if (digits == 0 || !is_extensions(span_skip(line, digits)))
        return -400;
    if (size > HTTP_MAX_BODY - p->body_len)
        return -413;
    p->remaining = size;
    p->step = size > 0 ? CHUNK_DATA : TRAILERS;
    return 1;
}

/* Moves the bytes of a chunk that have come down to the end of the body. */
static int read_chunk_data(struct http_parser *p, char *bytes, size_t len)
{
    size_t n = len - p->at < p->remaining ? len - p->at : p->remaining;
    memmove(bytes + p->body + p->body_len, bytes + p->at, n);
    p->body_len += n;
    p->remaining -= n;
    p->at += n;
    if (p->remaining > 0)
        return 0;
    p->step = CHUNK_END;
    return 1;
}

/* ---- the parser ---------------------------------------------------------------------------- */

static int next_step(struct http_parser *p, char *bytes, size_t len)
{
    struct span empty;
    int got = 0;
    switch ((enum step)p->step) {
    case REQUEST_LINE:
        return read_request_line(p, bytes, len);
    case FIELD_LINES:
        return read_fields(p, bytes, len);
    case FIXED_BODY:
        p->body_len = len - p->body < p->remaining ? len - p->body : p->remaining;
        p->at = p->body + p->body_len;
        got = p->body_len == p->remaining;
        p->step = got ? COMPLETE : FIXED_BODY;
        break;
    case CHUNK_SIZE:
        return read_chunk_size(p, bytes, len);
    case CHUNK_DATA:
        return read_chunk_data(p, bytes, len);
    case CHUNK_END:
        got = take_line(p, bytes, len, 0, 400, &empty);
        p->step = got > 0 ? CHUNK_SIZE : CHUNK_END;
        break;
    case TRAILERS:
        got = take_fields(p, bytes, len);
        p->step = got > 0 ? COMPLETE : TRAILERS;
        break;
    case COMPLETE:
        break;
    }
    return got;
}

int http_parse(struct http_parser *p, char *bytes, size_t *len, struct http_request *request)
{
    int went;
    do
        went = next_step(p, bytes, *len);
    while (went > 0 && p->step != COMPLETE);

    if (p->chunked && p->body > 0) {
        /* Close the gap that the framing of chunks has left between the body and what is unread. */
        size_t end = p->body + p->body_len, gap = p->at - end;
        memmove(bytes + end, bytes + p->at, *len - p->at);
        *len -= gap;
        p->at -= gap;
    }
    if (went < 0 || p->step == COMPLETE)
        *request = http_partial_request(p, bytes);
    if (p->step != COMPLETE)
        return went;
    request->fields = (struct span){bytes + p->fields, p->fields_end - p->fields};
    request->body = (struct span){bytes + p->body, p->body_len};
    request->keep_alive = p->keep_alive && !p->close;
    request->host = (struct span){bytes + p->host, p->host_len};
    struct span rest = request->line;
    span_take_until(&rest, ' '); /* the method */
    split_target(span_take_until(&rest, ' '), p->method, &request->host, &request->path,
                 &request->query);
    return (int)p->at;
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

/* ---- response heads -------------------------------------------------------------------------- */

/* This and put_field() are inline, so that the compiler knows the lengths of the names. */
static inline void put(struct buffer *out, const char *text)
{
    buffer_append(out, text, strlen(text));
}

/* Writes a number in digits. */
static const char *digits_of(uint64_t number, char digits[21])
{
    char *at = digits + 20;
    *at = '\0';
    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    return at;
}

static inline void put_field(struct buffer *out, const char *name, const char *value)
{
    if (!value)
        return;
    put(out, name);
    put(out, ": ");
    put(out, value);
    put(out, "\r\n");
}

void http_format_head(const struct http_response *r, struct buffer *out)
{
    static _Thread_local time_t second = -1; /* a date is made once a second */
    static _Thread_local char date[HTTP_DATE_SIZE];
    char digits[21];
    if (r->date != second)
        http_format_date(r->date, date);
    second = r->date;
    put(out, "HTTP/1.1 ");
    put(out, digits_of((uint64_t)r->status, digits));
    put(out, " ");
    put(out, r->reason);
    put(out, "\r\n");
    put_field(out, "Date", date);
    put_field(out, "Server", r->server);
    put_field(out, "Connection", r->keep_alive ? "keep-alive" : "close");
    put_field(out, "Location", r->location);
    put_field(out, "Allow", r->allow);
    put_field(out, "Last-Modified", r->last_modified);
    put_field(out, "ETag", r->etag);
    put_field(out, "Content-Range", r->content_range);
    put_field(out, "Content-Type", r->type);
    put_field(out, "Content-Length", r->has_length ? digits_of(r->length, digits) : NULL);
    if (r->fields)
        put(out, r->fields);
    put(out, "\r\n");
}

/* ---- dates --------------------------------------------------------------------------------- */

void http_format_date(time_t when, char date[HTTP_DATE_SIZE])
{
    struct tm utc;
    gmtime_r(&when, &utc);
    strftime(date, HTTP_DATE_SIZE, "%a, %d %b %Y %H:%M:%S GMT", &utc);
}

time_t http_parse_date(struct span text)
{
    static const char *const forms[] = {
        "%a, %d %b %Y %H:%M:%S GMT", /* IMF-fixdate, the form to be sent */
        "%A, %d-%b-%y %H:%M:%S GMT", /* RFC 850 */
        "%a %b %e %H:%M:%S %Y",      /* asctime(3) */
    };
    char date[40]; /* the longest is a Wednesday in RFC 850's form: 33 bytes */
    if (text.len == 0 || text.len >= sizeof(date))
        return -1;
    memcpy(date, text.at, text.len);
    date[text.len] = '\0';
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct tm utc = {0};
        const char *end = strptime(date, forms[i], &utc);
        int day = utc.tm_mday;
        if (end && *end == '\0' && utc.tm_sec < 60) {
            time_t when = timegm(&utc); /* makes a day of March of 30 February */
            return utc.tm_mday == day ? when : -1;
        }
    }
    return -1;
}
