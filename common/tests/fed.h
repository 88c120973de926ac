/* fed: a request as http_parse() gives it, fed in pieces. Unit tests and fuzz/request.c use it. */
#ifndef FED_H
#define FED_H

#include "http.h"

#include <stdlib.h>
#include <string.h>

/* What came of a request, however it was fed. */
struct outcome {
    int status;  /* 0: a request, or not yet; else refused with this */
    size_t used; /* bytes as they were sent, the framing of chunks included; 0: not yet */
    size_t most; /* bytes the buffer ever held */
    bool continue_due;
    struct http_request request;
    char *buffer; /* owned; what the request points into */
};

/* Feeds `first` bytes, then `second`, and then `step` at a time, as far as the parser wants them.
 * Small texts are fed in memory of exactly the size that has come, in another place each time. So a
 * sanitizer sees a parser that looks beyond it, and one that remembers where it was. */
static inline struct outcome feed(struct span text, size_t first, size_t second, size_t step)
{
    struct http_parser parser = {0};
    struct outcome o = {.buffer = malloc(text.len)};
    size_t fed = 0, len = 0;
    int got = 0;
    for (size_t turn = 0; fed < text.len && got == 0; turn++) {
        size_t more = turn == 0 ? first : turn == 1 ? second : step;
        more = more < text.len - fed ? more : text.len - fed;
        if (text.len < 4096) {
            char *moved = malloc(len + more);
            memcpy(moved, o.buffer, len);
            free(o.buffer);
            o.buffer = moved;
        }
        memcpy(o.buffer + len, text.at + fed, more);
        fed += more;
        len += more;
        o.most = len > o.most ? len : o.most;
        got = http_parse(&parser, o.buffer, &len, &o.request);
    }
    o.status = got < 0 ? -got : 0;
    o.used = got > 0 ? fed - (len - (size_t)got) : 0;
    o.continue_due = got >= 0 && parser.continue_due;
    return o;
}

static inline bool same_span(struct span a, struct span b)
{
    return !a.at == !b.at && a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static inline bool same_outcome(const struct outcome *a, const struct outcome *b)
{
    const struct http_request *x = &a->request, *y = &b->request;
    return a->status == b->status && a->used == b->used && a->continue_due == b->continue_due &&
           x->method == y->method && x->minor == y->minor && x->keep_alive == y->keep_alive &&
           same_span(x->line, y->line) && same_span(x->path, y->path) &&
           same_span(x->query, y->query) && same_span(x->host, y->host) &&
           same_span(x->fields, y->fields) && same_span(x->body, y->body);
}

#endif
