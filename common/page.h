/* page: templates, in a small subset of Mustache.
 *
 *    {{name}}                 a variable; & < > " and ' are escaped, always
 *    {{#list}} ... {{/list}}  a section: once for each item, so not at all for an empty list
 *    {{! ... }}               a comment
 *
 *  - A section's tag, or a comment, that stands alone on a line leaves no empty
 *    line behind.
 *  - Compiled once, into a flat list of steps; rendered into a growing buffer.
 *  - The application declares every name beforehand, and the list it belongs
 *    to. A template that uses another name, or a name outside its list, does
 *    not compile: a misspelt name is found at start-up, not by a visitor.
 *  - No I/O but in page_load().
 */
#ifndef PAGE_H
#define PAGE_H

#include "text.h"

#include <stdbool.h>
#include <stddef.h>

/* ---- templates ----------------------------------------------------------------------------- */

/* One name a template may use. A table of them ends with {NULL}. */
struct page_name {
    const char *name;
    int id;       /* how the application knows it; not 0 */
    int in;       /* the id of the list it belongs to; 0: it stands everywhere */
    bool is_list; /* {{#name}} instead of {{name}} */
};

/* Where the values come from while a page is rendered. */
struct page_values {
    /* The value of a variable. */
    struct span (*text)(void *data, int id);
    /* Turns to item `index` (0, 1, ...) of a list; false if there is none. */
    bool (*item)(void *data, int list, size_t index);
    void *data;
};

struct page;

enum { PAGE_MAX_TEMPLATE = 256 * 1024 }; /* bytes of a template's file */

/* Compiles a template. The text is copied. Returns NULL, and one line in `error`, as
 * "file:line: what is wrong", which a terminal may show, if it does not compile or there is no
 * memory. */
struct page *page_compile(const char *file, struct span text, const struct page_name *names,
                          char *error, size_t error_size);

/* Reads `file`, relative to the directory `root`, and compiles it; otherwise like page_compile().
 * If it returns NULL, errno says why it could not be read, and is 0 if it could. Never waits: it
 * has to be a regular file (EINVAL), of PAGE_MAX_TEMPLATE bytes at most (EFBIG). */
struct page *page_load(int root, const char *file, const struct page_name *names, char *error,
                       size_t error_size);

/* Appends the page to a buffer. One compiled page may be rendered by many threads at once. */
void page_render(const struct page *, const struct page_values *, struct buffer *);

void page_free(struct page *);

#endif
