/* reader: tells what http.c makes of requests. rules.py tells it, too, and test_differential.py
 * compares the two.
 *
 *  - Standard input: for each request its pieces, as they come out of the socket, and a 0. A piece
 *    is its length, a line end, and so many bytes.
 *  - Standard output: a line for each request, as describe() in test_differential.py writes it.
 */
#include "http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char bytes[2 * HTTP_MAX_REQUEST];
static size_t len, sent; /* bytes in it, and bytes that have come: chunks are squeezed */

static void print_span(struct span span)
{
    printf(" ");
    for (size_t i = 0; i < span.len; i++)
        printf("%02x", (unsigned char)span.at[i]);
    if (!span.at || span.len == 0)
        printf(span.at ? "''" : "-");
}

static void print_request(const struct http_request *r, int used, bool continue_due)
{
    char path[HTTP_MAX_REQUEST_LINE + 1];
    printf("request %zu %d %d %d %d", sent - (len - (size_t)used), r->method, r->minor == 0,
           r->keep_alive, continue_due);
    print_span(r->path);
    print_span(r->query);
    print_span(r->host);
    print_span(r->fields);
    print_span(r->body);
    print_span(http_field(r, "x"));
    bool is_path = !span_is(r->path, "*") && http_decode_path(r->path, path);
    print_span(is_path ? span_of(path) : (struct span){0});
    printf("\n");
}

static void print_verdict(const struct http_request *request, int verdict, bool continue_due)
{
    if (verdict > 0)
        print_request(request, verdict, continue_due);
    else if (verdict < 0)
        printf("refused %d\n", -verdict);
    else
        printf("more\n");
}

int main(void)
{
    struct http_parser parser = {0};
    struct http_request request = {0};
    size_t piece;
    int verdict = 0;
    while (scanf("%zu", &piece) == 1) {
        if (piece == 0) {
            print_verdict(&request, verdict, parser.continue_due);
            parser = (struct http_parser){0};
            len = sent = 0;
            verdict = 0;
            continue;
        }
        if (getchar() != '\n' || piece > sizeof(bytes) - len ||
            fread(bytes + len, 1, piece, stdin) != piece)
            return 1;
        if (verdict != 0)
            continue; /* behind the request, or behind what is refused */
        len += piece;
        sent += piece;
        verdict = http_parse(&parser, bytes, &len, &request);
    }
    return 0;
}
