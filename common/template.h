/* template: pages that are made from files, in a small subset of Mustache.
 *
 *    {{name}}                 a variable; & < > " and ' are escaped, always
 *    {{#list}} ... {{/list}}  a section: once for each item, so not at all for an empty list
 *    {{! ... }}               a comment
 *
 *  - The tag of a section, or a comment, that is alone on a line leaves no empty
 *    line behind.
 *  - A template is compiled once, into a flat list of steps, and again when its
 *    file has changed. It is rendered into a growing buffer.
 *  - The application declares every name beforehand, and the list it belongs
 *    to. A template that uses another name, or a name outside its list, does
 *    not compile. So a misspelt name is found at start-up, not by a visitor.
 *  - In chapters 4 and 5 all threads share each template, and many may render it at
 *    once. Once a second one thread locks out all others and checks the file.
 */
#ifndef TEMPLATE_H
#define TEMPLATE_H

#include "text.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* ---- compiling and rendering --------------------------------------------------------------- */

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

struct compiled; /* a template's steps */

enum { TEMPLATE_MAX_SIZE = 256 * 1024 }; /* bytes of a template's file */

/* Compiles a template, and copies its text. If it does not compile, or there is no memory, returns
 * NULL and one line in `error`: "file:line: what is wrong". The line is safe to print on a
 * terminal. */
struct compiled *template_compile(const char *file, struct span text,
                                  const struct template_name *names, char *error,
                                  size_t error_size);

/* Reads `file`, relative to the directory `root`, and compiles it like template_compile(). If it
 * returns NULL, errno says why the file could not be read, or is ENOMEM, or 0 if its text is wrong.
 * Never blocks: it takes regular files only (else EISDIR or EINVAL), of up to TEMPLATE_MAX_SIZE
 * bytes (else EFBIG). An empty file is no template: somebody is just writing it. */
struct compiled *template_read(int root, const char *file, const struct template_name *names,
                               char *error, size_t error_size);

/* Appends the page to a buffer. One compiled page may be rendered by many threads at once. */
void template_render(const struct compiled *, const struct template_values *, struct buffer *);

void template_free(struct compiled *);

/* ---- templates in use ---------------------------------------------------------------------- */

struct template
{
    const char *file;
    const struct template_name *names;
    int root;         /* the directory that `file` is relative to */
    const char *name; /* of the server, for messages */
    struct compiled *compiled;
    struct timespec changed; /* st_ctim, which no program can set; tar(1) sets st_mtim */
    int error;               /* errno of the last attempt to read it; printed once */
    _Atomic int64_t checked; /* clock_now_ms() of the last check */
    pthread_rwlock_t lock;   /* for all the above; `checked` may also be read without it */
};

/* Compiles the file, relative to the directory `root`, at start. If that fails, prints one line
 * that begins with `name`, and ends the program with status 1. Both arguments are kept. */
void template_load(struct template *, int root, const char *name);

/* Checks whether the file has changed, at most once a second. If it then does not compile, that is
 * reported once, and the template stays as it was. */
void template_check(struct template *);

/* Checks the template, and returns it for rendering; then release it. */
struct compiled *template_acquire(struct template *);
void template_release(struct template *);

#endif
