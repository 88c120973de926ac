/* fuzz_seeds: what fuzzing starts from, in FOLDER/http, FOLDER/conn, FOLDER/decode
 * and FOLDER/template: the cases of wire_cases.h, and a few texts of each other kind.
 *
 *    fuzz_seeds FOLDER
 */
#include "tests/wire_cases.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const texts[] = {
    "/a/./b//../c%20d/%2e%2e/e",      "/%3f%25%c3%a9",
    "guest-name=Ada+L.&x=%26%3d",     "Sun, 06 Nov 1994 08:49:37 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
    "\"a,b\", W/\"c\" ,,d",
};
static const char *const pages[] = {
    "\xc0\x02<p>{{a}}</p>\n{{! no }}\n{{#L}}\n {{b}}{{#M}}{{ c }}{{/M}}\n{{/L}}\n<&\"'>abc",
    "\xff\x01{{#L}}{{#L}}{{b}}{{/L}}{{/L}}",
    "\xff\x01{{b}}",
    "\xff\x01\n{{#L}}",
    "\xff\x01{{a",
};

/* What a client says, and the script, which begins at the end: see fuzz/conn.c. */
#define THREE_REPLIES "\x20\x28\x21\x20\x20"
static const char *const talks[] = {
    GET_OF("/tux.png") GET_OF("/guestbook") GET_OF("/tux.png") "\xff\x20\x20\x20\x60\x20\x20\x9f",
    GET_OF("/guestbook") GET_OF("/guestbook")
        GET_OF("/guestbook") "\xff" THREE_REPLIES THREE_REPLIES THREE_REPLIES "\x9f",
    GET_OF("/") GET_OF("/") "\xff\x20\x20\x9f\x04",
    GET_OF("/") "\xff\x20\x01\x20\x85",
    /* the deadline passes before HEAD has come in full: within a field, and within the method */
    "HEAD / HTTP/1.1\r\n" HOST "\r\n\xff\x20\x01\x20\x93",
    "HEAD / HTTP/1.1\r\n" HOST "\r\n\xff\x20\x01\x20\x81",
    /* nobody reads a large page: it is cut short behind its "Connection: close" */
    "GET /guestbook HTTP/1.0\r\n\r\n\xff\x01" THREE_REPLIES "\x9f",
    POSTED GET_OF("/guestbook") "\xff\x20\x20\x20\x9f\x03",
};

static FILE *create(const char *folder, const char *kind, size_t number)
{
    char name[4096];
    snprintf(name, sizeof(name), "%s/%s/%03zu", folder, kind, number);
    FILE *file = fopen(name, "w");
    if (!file) {
        perror(name);
        exit(1);
    }
    return file;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    for (size_t i = 0; i < sizeof(wire_cases) / sizeof(wire_cases[0]); i++) {
        FILE *http = create(argv[1], "http", i), *conn = create(argv[1], "conn", i);
        fputs("\x05\x01\x20", http); /* see fuzz/http.c */
        wire_write(http, &wire_cases[i], "{ETAG}");
        wire_write(conn, &wire_cases[i], "{ETAG}");
        fputs("\xff\x22\x21\x20\x20\x9f", conn); /* see fuzz/conn.c */
        fclose(http);
        fclose(conn);
    }
    for (size_t i = 0; i < sizeof(talks) / sizeof(talks[0]); i++) {
        FILE *conn = create(argv[1], "conn", 900 + i);
        fputs(talks[i], conn);
        fclose(conn);
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        FILE *decode = create(argv[1], "decode", i);
        fputs(texts[i], decode);
        fclose(decode);
    }
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        FILE *page = create(argv[1], "template", i);
        fputs(pages[i], page);
        fclose(page);
    }
    return 0;
}
