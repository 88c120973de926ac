/* fuzz_decode: what is decoded, encoded and taken apart once a request is accepted.
 *
 *  - Decoding makes nothing longer; what was escaped byte by byte decodes
 *    to what it was.
 *  - A decoded path begins at the root, holds no control character and no
 *    "", "." or ".." segment; escaped again it decodes to the same.
 *  - A date that is understood is understood again as it is then formatted.
 *  - The members of a list lie in it one behind the other, trimmed.
 */
#include "fuzz.h"
#include "http.h"

/* Escapes every byte, as no browser would but each may. */
static size_t escape_all(const uint8_t *data, size_t size, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++, n += 3) {
        out[n] = '%';
        out[n + 1] = "0123456789abcdef"[data[i] >> 4];
        out[n + 2] = "0123456789ABCDEF"[data[i] & 15];
    }
    return n;
}

static void form(const uint8_t *data, size_t size)
{
    char *text = exact_copy(data, size);
    long len = http_decode_form(text, size);
    must(len >= -1 && len <= (long)size);
    must(len == (long)size || memchr(data, '%', size));
    free(text);

    char *escaped = malloc(3 * size);
    must(escaped || size == 0);
    must(http_decode_form(escaped, escape_all(data, size, escaped)) == (long)size);
    must(size == 0 || memcmp(escaped, data, size) == 0);
    free(escaped);
}

static void must_be_resolved(const char *path)
{
    must(path[0] == '/');
    must(!strstr(path, "//") && !strstr(path, "/./") && !strstr(path, "/../"));
    size_t len = strlen(path);
    must(len < 2 || strcmp(path + len - 2, "/.") != 0);
    must(len < 3 || strcmp(path + len - 3, "/..") != 0);
    for (const char *at = path; *at; at++)
        must((unsigned char)*at >= ' ' && *at != 127);
}

#define URI_CHARACTERS                                                                             \
    "%-._~!$&'()*+,;=:@/0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static void query(const uint8_t *data, size_t size)
{
    char *text = exact_copy(data, size), *encoded = malloc(3 * size + 1);
    char *again = malloc(9 * size + 1);
    must(encoded && again);
    size_t n = http_encode((struct span){text, size}, true, encoded);
    must(n == strlen(encoded) && n <= 3 * size && strspn(encoded, URI_CHARACTERS "?") == n);
    must(http_encode((struct span){encoded, n}, true, again) == n && strcmp(again, encoded) == 0);
    free(text);
    free(encoded);
    free(again);
}

static void path(const uint8_t *data, size_t size)
{
    char *text = exact_copy(data, size), *decoded = malloc(size + 1);
    must(decoded);
    if (http_decode_path((struct span){text, size}, decoded)) {
        size_t len = strlen(decoded);
        must(len <= size);
        must_be_resolved(decoded);
        char *encoded = malloc(3 * len + 1), *again = malloc(3 * len + 1);
        must(encoded && again);
        size_t n = http_encode(span_of(decoded), false, encoded);
        must(n == strlen(encoded) && n <= 3 * len);
        must(strspn(encoded, URI_CHARACTERS) == n);
        must(http_decode_path((struct span){encoded, n}, again) && strcmp(again, decoded) == 0);
        free(encoded);
        free(again);
    }
    free(text);
    free(decoded);
}

static void date(const uint8_t *data, size_t size)
{
    char *text = exact_copy(data, size), formatted[HTTP_DATE_SIZE];
    time_t when = http_parse_date((struct span){text, size});
    free(text);
    if (when == -1)
        return;
    http_format_date(when, formatted);
    must(memchr(formatted, '\0', sizeof(formatted)));
    must(http_parse_date(span_of(formatted)) == when);
}

static void list(const uint8_t *data, size_t size)
{
    char *text = exact_copy(data, size);
    const char *behind = text;
    struct span rest = {text, size}, member;
    size_t members = 0;
    while (http_next_member(&rest, &member)) {
        must(member.at >= behind && rest.at >= member.at + member.len);
        must(rest.at + rest.len == text + size && ++members <= size);
        must(!memchr(member.at, ',', member.len) || memchr(member.at, '"', member.len));
        must(member.len == 0 || (!strchr(" \t", member.at[0]) || member.at[0] == '\0'));
        behind = rest.at;
    }
    must(rest.len == 0);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    form(data, size);
    path(data, size);
    query(data, size);
    date(data, size);
    if (size > 0)
        list(data, size);
    return 0;
}
