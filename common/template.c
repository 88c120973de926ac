#include "template.h"

#include "clock.h"
#include "log.h"
#include "process.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { CHECK_EVERY_MS = 1000 };

/* Compiles the file again if it has changed. If it does not compile, that is reported, and the page
 * stays as it was. At start there is no page yet, and the program ends. */
static void reload(struct template *t)
{
    char error[256];
    struct stat about;
    if (fstatat(t->root, t->file, &about, 0) < 0) {
        if (!t->page)
            process_die(t->name, "%s: %s; start it where templates/ is, or use --root", t->file,
                        strerror(errno));
        return;
    }
    if (t->page && about.st_ctim.tv_sec == t->changed.tv_sec &&
        about.st_ctim.tv_nsec == t->changed.tv_nsec)
        return;
    struct page *page = page_load(t->root, t->file, t->names, error, sizeof(error));
    int reason = page ? 0 : errno; /* 0: it was read */
    if (reason == 0)
        t->changed = about.st_ctim; /* a file that was not read is tried again */
    if (!page && !t->page)
        process_die(t->name, "%s", error);
    if (page) {
        page_free(t->page);
        t->page = page;
    } else if (reason == 0 || reason != t->error) {
        log_message(t->name, "%s", error);
    }
    t->error = reason;
}

void template_check(struct template *t)
{
    int64_t now = clock_now_ms();
    if (now - t->checked >= CHECK_EVERY_MS) {
        pthread_rwlock_wrlock(&t->lock);
        if (now - t->checked >= CHECK_EVERY_MS) {
            reload(t);
            t->checked = now;
        }
        pthread_rwlock_unlock(&t->lock);
    }
}

struct page *template_acquire(struct template *t)
{
    template_check(t);
    pthread_rwlock_rdlock(&t->lock);
    return t->page;
}

void template_release(struct template *t)
{
    pthread_rwlock_unlock(&t->lock);
}

void template_load(struct template *t, int root, const char *name)
{
    t->root = root;
    t->name = name;
    reload(t);
}
