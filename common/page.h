/* page: templates, in a small subset of Mustache.
 *
 *    {{name}}                 a variable; & < > " and ' are escaped, always
 *    {{#list}} ... {{/list}}  a section: once for each item, so not at all for an empty list
 *    {{! ... }}               a comment
 *
 *  - The tag of a section, or a comment, that is alone on a line leaves no empty
 *    line behind.
 *  - A template is compiled once, into a flat list of steps. It is rendered into
 *    a growing buffer.
 *  - The application declares every name beforehand, and the list it belongs
 *    to. A template that uses another name, or a name outside its list, does
 *    not compile. So a misspelt name is found at start-up, not by a visitor.
 *  - Only page_load() does I/O.
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
    int in;       /* the id of the list it belongs to; 0: it may be used everywhere */
    bool is_list; /* {{#name}} instead of {{name}} */
};

/* Where the values come from while a page is rendered. */
struct page_values {
    /* The value of a variable. */
    struct span (*text)(void *data, int id);
    /* Selects item `index` (0, 1, ...) of a list. Returns false if there is none. */
    bool (*item)(void *data, int list, size_t index);
    void *data;
};

struct page;

enum { PAGE_MAX_TEMPLATE = 256 * 1024 }; /* bytes of a template's file */

/* Compiles a template, and copies its text. If it does not compile, or there is no memory, returns
 * NULL and one line in `error`: "file:line: what is wrong". The line is safe to print on a
 * terminal. */
struct page *page_compile(const char *file, struct span text, const struct page_name *names,
                          char *error, size_t error_size);

/* Reads `file`, relative to the directory `root`, and compiles it like page_compile(). If it
 * returns NULL, errno says why the file could not be read, or is 0 if it could. Never blocks: it
 * takes regular files only (else EINVAL), of up to PAGE_MAX_TEMPLATE bytes (else EFBIG). An empty
 * file is no template: somebody is just writing it. */
struct page *page_load(int root, const char *file, const struct page_name *names, char *error,
                       size_t error_size);

/* Appends the page to a buffer. One compiled page may be rendered by many threads at once. */
void page_render(const struct page *, const struct page_values *, struct buffer *);

void page_free(struct page *);

#endif
