/* http_head: the response heads and the dates of http.h (RFC 9110, 5.6.7). */
#include "http.h"

#include <string.h>

/* ---- heads --------------------------------------------------------------------------------- */

const char *http_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {200, "OK"},
        {204, "No Content"},
        {206, "Partial Content"},
        {301, "Moved Permanently"},
        {303, "See Other"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {416, "Range Not Satisfiable"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Unknown";
}

/* Appends to a bounded buffer. When something does not fit, nothing more is appended. */
struct writer {
    char *at, *end;
    bool full;
};

static inline void put(struct writer *w, const char *text)
{
    size_t len = strlen(text);
    w->full = w->full || len > (size_t)(w->end - w->at);
    if (w->full)
        return;
    memcpy(w->at, text, len);
    w->at += len;
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

static inline void put_field(struct writer *w, const char *name, const char *value)
{
    if (!value)
        return;
    put(w, name);
    put(w, ": ");
    put(w, value);
    put(w, "\r\n");
}

size_t http_format_head(const struct http_response *r, const char *date, const char *server,
                        char *out, size_t size)
{
    struct writer w = {.at = out, .end = out + size};
    char digits[21];
    put(&w, "HTTP/1.1 ");
    put(&w, digits_of((uint64_t)r->status, digits));
    put(&w, " ");
    put(&w, http_reason(r->status));
    put(&w, "\r\n");
    put_field(&w, "Date", date);
    put_field(&w, "Server", server);
    put_field(&w, "Connection", r->keep_alive ? "keep-alive" : "close");
    put_field(&w, "Location", r->location);
    put_field(&w, "Allow", r->allow);
    put_field(&w, "Last-Modified", r->last_modified);
    put_field(&w, "ETag", r->etag);
    put_field(&w, "Content-Range", r->content_range);
    put_field(&w, "Content-Type", r->type);
    put_field(&w, "Content-Length", r->has_length ? digits_of(r->length, digits) : NULL);
    if (r->fields)
        put(&w, r->fields);
    put(&w, "\r\n");
    return w.full ? 0 : (size_t)(w.at - out);
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
    const time_t fifty_years = (time_t)50 * 365 * 86400; /* the most for two digits */
    static const char *const forms[] = {
        "%a, %d %b %Y %H:%M:%S GMT", /* IMF-fixdate, the form to be sent */
        "%A, %d-%b-%y %H:%M:%S GMT", /* RFC 850 */
        "%a %b %e %H:%M:%S %Y",      /* asctime(3) */
    };
    char date[40], again[40]; /* the longest is a Wednesday in RFC 850's form: 33 bytes */
    if (text.len >= sizeof(date))
        return -1;
    memcpy(date, text.at, text.len);
    date[text.len] = '\0';
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct tm utc = {0};
        const char *end = strptime(date, forms[i], &utc);
        if (!end || *end)
            continue;
        if (i == 1) /* strptime(3) takes two digits for 1969 to 2068 */
            utc.tm_year = 100 + utc.tm_year % 100;
        time_t when = timegm(&utc);
        if (i == 1 && when > time(NULL) + fifty_years) {
            utc.tm_year -= 100;
            when = timegm(&utc);
        }
        /* strptime(3) also takes other spaces, other cases, long names, and 31 February. The
         * weekday adds nothing, and is not compared. */
        gmtime_r(&when, &utc);
        strftime(again, sizeof(again), forms[i], &utc);
        const char *rest = strchr(date, ' ');
        return rest && strcmp(rest, strchr(again, ' ')) == 0 ? when : -1;
    }
    return -1;
}
