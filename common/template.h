/* template: pages that are compiled from files, and compiled again when a file
 * has changed.
 *
 *  - In chapters 4 and 5 all threads share each template, and many may render it at
 *    once. Once a second one thread locks out all others and checks the file.
 */
#ifndef TEMPLATE_H
#define TEMPLATE_H

#include "page.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

struct template
{
    const char *file;
    const struct page_name *names;
    int root;         /* the directory that `file` is relative to */
    const char *name; /* of the server, for messages */
    struct page *page;
    struct timespec changed; /* st_ctim, which no program can set; tar(1) sets st_mtim */
    int error;               /* errno of the last attempt to read it; printed once */
    _Atomic int64_t checked; /* clock_now_ms() of the last check */
    pthread_rwlock_t lock;   /* for all the above; `checked` may also be read without it */
};

/* Compiles the file, relative to the directory `root`, at start. If that fails, prints one line
 * that begins with `name`, and ends the program with status 1. Both arguments are kept. */
void template_load(struct template *, int root, const char *name);

/* Checks whether the file has changed, at most once a second. If it then does not compile, that is
 * reported once, and the page stays as it was. */
void template_check(struct template *);

/* Checks the template, and returns its page for rendering; then release it. */
struct page *template_acquire(struct template *);
void template_release(struct template *);

#endif
