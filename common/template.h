/* template: pages that are compiled from files, and compiled again when a file
 * has changed.
 *
 *  - Chapters 4 and 5 share each one among their threads. Many render at once.
 *    Once a second one of them holds off all others while it checks the file.
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
    struct timespec changed; /* st_ctim, which nobody can set: an archive brings its own st_mtim */
    int error;               /* errno of the last attempt to read it, told once */
    _Atomic int64_t checked; /* clock_now_ms() of the last check */
    pthread_rwlock_t lock;   /* of all the above, but for a quick look at `checked` */
};

/* Compiles the file, relative to the directory `root`, at start. If that fails: one line, which
 * `name` begins, and status 1. Both arguments are kept for later. */
void template_load(struct template *, int root, const char *name);

/* Checks, once a second at most, whether the file has changed. What does not compile then is
 * reported once, and the page stays as it was. */
void template_check(struct template *);

/* The page, to render it, and the end of that. It is checked first. */
struct page *template_acquire(struct template *);
void template_release(struct template *);

#endif
