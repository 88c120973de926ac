/* template: pages that are made from files, in a small subset of Mustache.
 *
 *    {{name}}                 a variable; & < > " and ' are escaped, always
 *    {{#list}} ... {{/list}}  a section: once for each item, so not at all for an empty list
 *    {{! ... }}               a comment
 *
 *  - A template is compiled at start, into a flat list of steps. After that nothing
 *    changes it, so threads may share it. It is rendered into a growing buffer.
 *  - The application declares every name beforehand, and the list it belongs
 *    to. A template that uses another name, or a name outside its list, does
 *    not compile. So a misspelt name is found at start-up, not by a visitor.
 */
#ifndef TEMPLATE_H
#define TEMPLATE_H

#include "text.h"

#include <stdbool.h>
#include <stddef.h>

/* One name a template may use. A table of them ends with {NULL}. */
struct template_name {
    const char *name;
    int id;       /* how the application knows it; not 0 */
    int in;       /* the id of the list it belongs to; 0: it may be used everywhere */
    bool is_list; /* {{#name}} instead of {{name}} */
};

/* Where the values come from while a page is rendered. */
struct template_values {
    /* The value of a variable. */
    struct span (*text)(void *data, int id);
    /* Selects item `index` (0, 1, ...) of a list. Returns false if there is none. */
    bool (*item)(void *data, int list, size_t index);
    void *data;
};

struct template; /* its steps */

/* Compiles a template, and copies its text. If it does not compile, or there is no memory, returns
 * NULL and one line in `error`: "file:line: what is wrong". The line is safe to print on a
 * terminal. */
struct template *template_compile(const char *file, struct span text,
                                  const struct template_name *names, char *error,
                                  size_t error_size);

/* Compiles a file, relative to the directory `root`, at start. If that fails, prints one line that
 * begins with `server`, and ends the program with status 1. */
struct template *template_load(int root, const char *file, const struct template_name *names,
                               const char *server);

void template_free(struct template *);

/* Appends the page to a buffer. */
void template_render(const struct template *, const struct template_values *, struct buffer *);

#endif
