/* fuzz_http: the same bytes give the same request, however they are cut.
 *
 *  - The input's first three bytes choose the sizes of the pieces, the rest
 *    is what a client sends.
 *  - Fed whole and fed in pieces it gives the same verdict, at the same byte,
 *    with the same request; and asked once more the parser says it once more.
 *  - What is accepted keeps the promises of http.h: spans within the buffer,
 *    lines and fields without control characters, nothing above a limit.
 *  - Nothing is read but what has come, where it is now.
 */
#include "http.h"
#include "fuzz.h"

#include <sanitizer/asan_interface.h>

enum { CUTS = 3, LONGEST = 20000 }; /* bytes */

struct outcome {
    int verdict; /* > 0: a request; 0: more is wanted; < 0: refused */
    size_t used; /* bytes as they were sent, the framing of chunks included */
    bool continue_due;
    struct http_request request;
    char *buffer; /* one of the places; what the request points into */
    size_t len;
};

/* Large inputs are cut into larger pieces, since each is a copy of all before it. */
static size_t piece(const uint8_t *cuts, size_t turn, size_t size)
{
    return cuts ? cuts[turn % CUTS] % 255u * (1 + size / 512) + 1 : size;
}

/* Feeds the bytes in pieces; without `cuts` in one. With each piece all that has come moves to the
 * other of two places, so the sanitizer sees a parser that looks beyond it, and one that remembers
 * where it was. */
static struct outcome feed(const uint8_t *bytes, size_t size, const uint8_t *cuts,
                           char places[2][LONGEST])
{
    struct http_parser parser = {0};
    struct outcome o = {.buffer = places[0]};
    char *next = places[1];
    size_t fed = 0;
    for (size_t turn = 0; fed < size && o.verdict == 0; turn++) {
        size_t more = piece(cuts, turn, size);
        more = more < size - fed ? more : size - fed;
        ASAN_UNPOISON_MEMORY_REGION(next, o.len + more);
        memcpy(next, o.buffer, o.len);
        memcpy(next + o.len, bytes + fed, more);
        ASAN_POISON_MEMORY_REGION(o.buffer, fed);
        char *here = next;
        next = o.buffer;
        o.buffer = here;
        o.len += more;
        fed += more;
        o.verdict = http_parse(&parser, o.buffer, &o.len, &o.request);
        /* its field lines so far, and the first byte of the empty line behind them */
        size_t head = parser.fields ? o.len - parser.fields : 0;
        must(o.verdict != 0 || o.len <= HTTP_MAX_REQUEST);
        must(o.verdict != 0 || parser.fields ||
             o.len <= 2 * HTTP_MAX_EMPTY_LINES + HTTP_MAX_REQUEST_LINE + 1);
        must(o.verdict != 0 || parser.body || head <= HTTP_MAX_FIELD_BYTES + 1);
    }
    o.used = o.verdict > 0 ? fed - (o.len - (size_t)o.verdict) : 0;
    o.continue_due = parser.continue_due;
    if (o.verdict > 0)
        must(http_parse(&parser, o.buffer, &o.len, &o.request) == o.verdict);
    return o;
}

static bool same(struct span a, struct span b)
{
    return !a.at == !b.at && a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static void must_be_same(const struct outcome *a, const struct outcome *b)
{
    const struct http_request *x = &a->request, *y = &b->request;
    must(a->verdict == b->verdict && a->used == b->used);
    if (a->verdict == 0)
        return;
    must(x->method == y->method && x->minor == y->minor && x->keep_alive == y->keep_alive);
    must(same(x->line, y->line) && same(x->path, y->path) && same(x->query, y->query));
    must(same(x->host, y->host) && same(x->fields, y->fields) && same(x->body, y->body));
    must(a->verdict < 0 || a->continue_due == b->continue_due);
}

static bool is_clean(struct span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (((unsigned char)text.at[i] < ' ' && text.at[i] != '\t') || text.at[i] == 127)
            return false;
    return true;
}

static void must_be_within(const struct outcome *o, struct span span)
{
    must(!span.at || (span.at >= o->buffer && span.at + span.len <= o->buffer + o->verdict));
}

static void must_keep_promises(const struct outcome *o)
{
    const struct http_request *r = &o->request;
    const struct span *spans[] = {&r->line, &r->query, &r->fields, &r->body};
    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
        must_be_within(o, *spans[i]);
    must(r->line.len <= HTTP_MAX_REQUEST_LINE && is_clean(r->line));
    must(r->fields.len <= HTTP_MAX_FIELD_BYTES && r->body.len <= HTTP_MAX_BODY);
    must(r->path.at[0] == '/' || (span_is(r->path, "*") && r->method == HTTP_OPTIONS));
    must(is_clean(r->path) && is_clean(r->query) && is_clean(r->host));
    must(r->host.len > 0 || r->minor == 0);

    struct span rest = r->fields, value;
    int hosts = 0;
    for (; http_next_field(&rest, "host", &value); hosts++)
        must_be_within(o, value);
    must(hosts == 1 || (hosts == 0 && r->minor == 0));
    for (rest = r->fields; http_next_field(&rest, "x", &value);)
        must(is_clean(value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static _Alignas(16) char places[4][LONGEST]; /* malloc(3) would take a fifth of the time */
    if (size < CUTS || size > LONGEST)
        return 0;
    ASAN_POISON_MEMORY_REGION(places, sizeof(places));
    struct outcome whole = feed(data + CUTS, size - CUTS, NULL, places);
    struct outcome cut = feed(data + CUTS, size - CUTS, data, places + 2);
    must_be_same(&whole, &cut);
    if (whole.verdict > 0)
        must_keep_promises(&whole);
    return 0;
}
