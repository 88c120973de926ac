#include "files.h"

#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int root = -1; /* set once, before the first client, so that all threads may share it */

/* ---- names and types ----------------------------------------------------------------------- */

static const struct {
    const char *extension, *type;
} types[] = {
    {"html", "text/html; charset=utf-8"},
    {"css", "text/css; charset=utf-8"},
    {"js", "text/javascript; charset=utf-8"},
    {"txt", "text/plain; charset=utf-8"},
    {"json", "application/json"},
    {"xml", "application/xml"},
    {"pdf", "application/pdf"},
    {"wasm", "application/wasm"},
    {"svg", "image/svg+xml"},
    {"png", "image/png"},
    {"jpg", "image/jpeg"},
    {"jpeg", "image/jpeg"},
    {"gif", "image/gif"},
    {"webp", "image/webp"},
    {"ico", "image/x-icon"},
    {"woff2", "font/woff2"},
    {"mp4", "video/mp4"},
};

bool files_open_root(int parent, const char *name)
{
    root = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return root >= 0;
}

static const char *type_of(const char *path)
{
    const char *dot = strrchr(path, '.'); /* one in a folder's name has no extension behind it */
    if (path[strlen(path) - 1] == '/')
        return types[0].type; /* its index.html */
    for (size_t i = 0; dot && i < sizeof(types) / sizeof(types[0]); i++)
        if (strcasecmp(dot + 1, types[i].extension) == 0)
            return types[i].type;
    return "application/octet-stream";
}

/* ---- opening ------------------------------------------------------------------------------- */

/* O_NONBLOCK: a FIFO must not make us wait for a writer. For a regular file it means nothing.
 * O_LARGEFILE: on a machine of 32 bits, openat2(2) refuses a file of 2 GiB without it. */
/* NOLINTNEXTLINE(misc-redundant-expression): it is 0 where a long has 64 bits */
enum { READ = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_LARGEFILE };

/* For kernels before 5.6, and for sandboxes that forbid openat2(2): opens one name after the other
 * with openat(2). None of them may be a link. Paths come without ".." (uri_decode_path()). */
static int walk_beneath(char *path)
{
    int folder = dup(root);
    for (char *slash; folder >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
        *slash = '\0';
        int next = openat(folder, path, O_NOFOLLOW | O_PATH | O_DIRECTORY | O_CLOEXEC);
        close(folder); /* leaves errno as it is */
        folder = next;
    }
    int file = folder < 0 ? -1 : openat(folder, path, O_NOFOLLOW | READ);
    if (folder >= 0)
        close(folder);
    return file;
}

static int status_of(int error)
{
    switch (error) {
    case EACCES:
    case EPERM:
        return 403;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EIO:
    case EINTR:  /* on a network file system */
    case EAGAIN: /* during a rename: openat2(2) does not know whether the path leads out */
        return 503;
    default: /* ENOENT, ENOTDIR, ENAMETOOLONG, EXDEV (leads out), ELOOP */
        return 404;
    }
}

static void fill_file(struct file *file, int fd, const struct stat *about)
{
    time_t now = time(NULL);
    *file = (struct file){
        .fd = fd,
        .left = (uint64_t)about->st_size,
        .size = (uint64_t)about->st_size,
        .modified = about->st_mtim.tv_sec,
    };
    /* The tag changes with the file's inode, its size, or st_ctim, which no program can set (tar(1)
     * sets st_mtim). Before Linux 6.13 that time is only exact to one tick of the kernel (about
     * 4 ms). Of two writes within a tick that leave the size as it is, the second does not change
     * the tag then. */
    snprintf(file->etag, sizeof(file->etag), "\"%llx-%llx-%llx.%lx\"",
             (unsigned long long)about->st_ino, (unsigned long long)about->st_size,
             (unsigned long long)about->st_ctim.tv_sec, about->st_ctim.tv_nsec);
    /* A date in the future is not sent; the present one is (RFC 9110, 8.8.2.1). A date before 1970
     * is not sent either, because http_parse_date() could not tell it from its -1. */
    if (file->modified >= 0)
        http_format_date(file->modified < now ? file->modified : now, file->last_modified);
}

static int open_file(const char *path, struct file *file)
{
    char name[PATH_MAX];
    struct stat about;
    int status = 404;
    if (strstr(path, "/."))
        return 404; /* dot segments are gone by now: this is a dot file */
    bool folder = path[strlen(path) - 1] == '/';
    int len = snprintf(name, sizeof(name), "%s%s", path + 1, folder ? "index.html" : "");
    if (len >= (int)sizeof(name))
        return 404;

    struct open_how how = {
        .flags = READ,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    int fd = (int)syscall(SYS_openat2, root, name, &how, sizeof(how));
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        fd = walk_beneath(name);
    if (fd < 0)
        return status_of(errno);
    if (fstat(fd, &about) < 0)
        status = status_of(errno);
    else if (S_ISDIR(about.st_mode) && !folder)
        status = 301;
    else if (S_ISREG(about.st_mode)) {
        fill_file(file, fd, &about);
        file->type = type_of(path);
        return 200;
    }
    close(fd);
    return status;
}

/* ---- the cache of small files -------------------------------------------------------------- */

enum {
    SMALL_BYTES = 16 * 1024,
    CACHE_FILES = 64, /* a MiB at most: there may be hundreds of processes */
    CACHE_MS = 1000,
};

/* Each process has its own. The threads of chapters 4 and 5 share one, and hold the lock while they
 * copy bytes, but not while they read from the disk. Memory that is not used yet costs nothing, and
 * no place behind the first unused one is looked at. */
static struct cached {
    int64_t until; /* clock_now_ms(); then it is read again. 0: unused */
    struct file file;
    char path[128];
    char bytes[SMALL_BYTES];
} cache[CACHE_FILES];
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

/* Where that file is, or is to be: in an unused place, or in that of the oldest. */
static struct cached *place_of(const char *path)
{
    struct cached *oldest = cache;
    for (struct cached *c = cache; c < cache + CACHE_FILES; c++) {
        if (c->until == 0 || strcmp(c->path, path) == 0)
            return c;
        if (c->until < oldest->until)
            oldest = c;
    }
    return oldest;
}

static bool copy_from_cache(const char *path, struct file *file, struct buffer *small)
{
    pthread_rwlock_rdlock(&lock);
    const struct cached *c = place_of(path);
    bool fresh = clock_now_ms() < c->until && strcmp(c->path, path) == 0 &&
                 buffer_reserve(small, c->file.size);
    if (fresh) {
        *file = c->file;
        buffer_append(small, c->bytes, c->file.size);
    }
    pthread_rwlock_unlock(&lock);
    return fresh;
}

static void copy_to_cache(const char *path, const struct file *file, const char *bytes)
{
    size_t size = strlen(path) + 1;
    if (size > sizeof(cache->path))
        return;
    pthread_rwlock_wrlock(&lock);
    struct cached *c = place_of(path);
    c->until = clock_now_ms() + CACHE_MS;
    c->file = *file;
    memcpy(c->path, path, size);
    memcpy(c->bytes, bytes, file->size);
    pthread_rwlock_unlock(&lock);
}

int files_open(const char *path, struct file *file, struct buffer *small)
{
    if (copy_from_cache(path, file, small))
        return 200;
    int status = open_file(path, file);
    /* An empty file needs no memory. One that cannot be read whole is sent as far as it goes. */
    if (status != 200 || file->size == 0 || file->size > SMALL_BYTES ||
        !buffer_reserve(small, file->size) ||
        pread(file->fd, small->bytes + small->len, file->size, 0) != (ssize_t)file->size)
        return status;
    close(file->fd);
    file->fd = -1;
    copy_to_cache(path, file, small->bytes + small->len);
    small->len += file->size;
    return 200;
}

/* ---- preconditions (RFC 9110, 13) ---------------------------------------------------------- */

/* Is the file's tag in a list, which may have several lines? If `weak`, W/ makes no difference. */
static bool names_etag(const struct file *file, const struct http_request *request,
                       const char *field, bool weak)
{
    struct span rest = request->fields, list, tag;
    while (http_next_field(&rest, field, &list)) {
        if (span_is(list, "*"))
            return true;
        while (list.len > 0) { /* a comma within a tag separates, too, but ours has none */
            tag = span_trim(span_take_until(&list, ','));
            bool is_weak = tag.len > 2 && memcmp(tag.at, "W/", 2) == 0;
            tag = span_skip(tag, is_weak ? 2 : 0);
            if (span_is(tag, file->etag) && (weak || !is_weak))
                return true;
        }
    }
    return false;
}

/* The value of a field that is no list. If it comes twice, it means nothing, and "" (5.3). */
static struct span single_field(const struct http_request *request, const char *name)
{
    struct span rest = request->fields, value = {0}, second;
    if (http_next_field(&rest, name, &value) && http_next_field(&rest, name, &second))
        return SPAN("");
    return value;
}

/* ---- one range (RFC 9110, 14) -------------------------------------------------------------- */

/* Reads "bytes=FIRST-LAST", "bytes=FIRST-" or "bytes=-COUNT". Returns 206 and sets the part, 416 if
 * the file does not reach that far, or 200 for anything else. */
static int take_range(struct file *file, struct span range)
{
    uint64_t first, last;
    if (!span_take_prefix(&range, "bytes="))
        return 200;
    bool has_first = span_take_number(&range, &first);
    if (!span_take_prefix(&range, "-"))
        return 200;
    bool has_last = span_take_number(&range, &last);
    if (range.len > 0 || (!has_first && !has_last) || (has_first && has_last && last < first))
        return 200;
    if (!has_first) { /* bytes=-COUNT, and COUNT is in `last` */
        if (last == 0)
            return 416;
        if (file->size == 0)
            return 200; /* an empty file has no part that a 206 could send */
        first = last < file->size ? file->size - last : 0;
    }
    if (first >= file->size)
        return 416;
    if (!has_first || !has_last || last >= file->size)
        last = file->size - 1;
    file->at = (off_t)first;
    file->left = last - first + 1;
    return 206;
}

/* The client means a part of the file that it knows (RFC 9110, 13.1.5). A date tells which file
 * that is only when its second is over, because until then the file may change once more (8.8.2.2).
 */
static bool range_applies(const struct file *file, const struct http_request *request)
{
    struct span known = single_field(request, "If-Range");
    if (!known.at)
        return true;
    if (known.len > 0 && known.at[0] == '"')
        return span_is(known, file->etag);
    return file->modified >= 0 && file->modified < time(NULL) &&
           http_parse_date(known) == file->modified;
}

/* Which status the conditions and the range lead to. */
static int status_for(struct file *file, const struct http_request *request)
{
    /* A field with tags overrides the one with a date. A date that cannot be read is ignored. */
    time_t unmodified = http_parse_date(single_field(request, "If-Unmodified-Since"));
    if (http_field(request, "If-Match").at) {
        if (!names_etag(file, request, "If-Match", false))
            return 412;
    } else if (unmodified >= 0 && file->modified > unmodified) {
        return 412;
    }
    if (http_field(request, "If-None-Match").at) {
        if (names_etag(file, request, "If-None-Match", true))
            return 304;
    } else if (file->modified >= 0 &&
               file->modified <= http_parse_date(single_field(request, "If-Modified-Since"))) {
        return 304;
    }
    struct span range = single_field(request, "Range");
    if (range.at && request->method == HTTP_GET && range_applies(file, request))
        return take_range(file, range);
    return 200;
}

int files_apply_conditions(struct file *file, const struct http_request *request)
{
    int status = status_for(file, request);
    unsigned long long first = (unsigned long long)file->at, size = file->size;
    if (status == 206)
        snprintf(file->range, sizeof(file->range), "bytes %llu-%llu/%llu", first,
                 first + file->left - 1, size);
    if (status == 416)
        snprintf(file->range, sizeof(file->range), "bytes */%llu", size);
    if (status == 200 || status == 206)
        return status;
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    file->left = 0;
    return status;
}
