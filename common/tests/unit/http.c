/* HTTP as bytes: every case is fed whole, cut in two at every position, and byte by byte, and has
 * to give the same. The numbers of rules are those of "What goes over the wire". What is a request
 * and what is refused is in wire_cases.h, which the servers are asked too. Here is the rest of what
 * the parser's caller sees. */
#include "tests/fed.h"
#include "tests/wire_cases.h"
#include "unit.h"

TestSuite(http, .timeout = 60);

/* ---- feeding ------------------------------------------------------------------------------- */

static void expect_same(const char *name, struct span text, const struct outcome *whole,
                        size_t first, size_t step)
{
    struct outcome cut = feed(text, first, step, step);
    cr_expect(same_outcome(whole, &cut),
              "%s: whole it gives status %d and uses %zu; "
              "%zu bytes first, then by %zu, it gives status %d and uses %zu",
              name, whole->status, whole->used, first, step, cut.status, cut.used);
    free(cut.buffer);
}

/* The outcome, which does not depend on how the text is cut. The caller frees its buffer. */
static struct outcome feed_every_way(const char *name, struct span text)
{
    struct outcome whole = feed(text, text.len, 1, 1);
    if (text.len < 2000)
        for (size_t cut = 1; cut < text.len; cut++)
            expect_same(name, text, &whole, cut, text.len);
    else
        for (size_t step = 2; step < text.len; step = step * 3 + 1)
            expect_same(name, text, &whole, step, step);
    expect_same(name, text, &whole, 1, 1);
    return whole;
}

/* ---- the wire cases ------------------------------------------------------------------------ */

/* One request of a row after the other, until there is none, or the connection ends. */
static void expect_row(const struct wire_case *row, size_t variant)
{
    char *bytes;
    size_t len;
    FILE *out = open_memstream(&bytes, &len);
    wire_write(out, row, variant, "\"tag\"");
    fclose(out);

    struct outcome got;
    int last = 0, left = 0; /* of the responses */
    for (const int *status = row->statuses; *status; status++)
        if (*status != 100) {
            last = abs(*status);
            left++;
        }
    bool kept = true;
    size_t at = 0;
    do {
        got = feed_every_way(row->sentence, (struct span){bytes + at, len - at});
        free(got.buffer);
        left -= got.used || got.status;
        at += got.used;
        kept = !got.used || got.request.keep_alive;
    } while (got.used && kept);
    expect_number(row->sentence, left, 0);
    if (got.status)
        expect_number(row->sentence, got.status, row->fate == KEPT ? 0 : last);
    else
        expect_number(row->sentence, kept, row->fate != CLOSED);
    cr_expect(row->fate != KEPT || at == len, "%s: %zu of %zu bytes", row->sentence, at, len);
    free(bytes);
}

Test(http, takes_and_refuses_what_it_should_however_it_is_cut)
{
    for (size_t i = 0; i < WIRE_CASES; i++)
        for (size_t variant = 0; variant < wire_variants(&wire_cases[i]); variant++)
            expect_row(&wire_cases[i], variant);
}

/* ---- limits ------------------------------------------------------------------------------ */

/* As large as every limit allows, all at once, the framing of chunks as wasteful as it can be. */
Test(http, a_buffer_of_HTTP_MAX_REQUEST_holds_the_largest_request)
{
    static char huge[HTTP_MAX_BODY * 300 + 40000];
    size_t len = 0;
    len += (size_t)sprintf(huge + len,
                           "\r\n\r\nPOST /%0*d HTTP/1.1\r\nHost: a\r\n"
                           "Transfer-Encoding: chunked\r\n\r\n",
                           8000 - (int)strlen("POST / HTTP/1.1"), 0);
    size_t fields = strlen("Host: a\r\nTransfer-Encoding: chunked\r\n");
    for (int i = 0; i < HTTP_MAX_BODY; i++)
        len += (size_t)sprintf(huge + len, "%0*d\r\nx\r\n", 256, 1);
    len += (size_t)sprintf(huge + len, "%0*d\r\nX: %0*d\r\n\r\n", 256, 0,
                           (int)(16384 - fields - strlen("X: \r\n")), 0);

    struct outcome got = feed((struct span){huge, len}, 1, 1, 1);
    expect_number("byte by byte", got.status, 0);
    expect_number("byte by byte", got.used, len);
    expect_number("byte by byte", got.request.body.len, HTTP_MAX_BODY);
    const size_t most = 2 * HTTP_MAX_EMPTY_LINES + HTTP_MAX_REQUEST_LINE + 2 +
                        HTTP_MAX_FIELD_BYTES + 2 + HTTP_MAX_BODY + HTTP_MAX_CHUNK_LINE + 2;
    cr_expect(got.most <= most, "it took %zu bytes", got.most);
    free(got.buffer);
}
