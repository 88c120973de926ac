#include "files.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* If there is no memory, an item is not added. By default uthash would end the program. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Headers of kernels before 5.6 do not have openat2(2). This is its number on x86, ARM, POWER, s390
 * and RISC-V. MIPS and Alpha have other numbers. */
#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#else
struct open_how {
    uint64_t flags, mode, resolve;
};
enum { RESOLVE_NO_MAGICLINKS = 0x02, RESOLVE_BENEATH = 0x08 };
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

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

const char *files_type(const char *path)
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

/* LOOK opens the name only, and not what it stands for. O_NONBLOCK: if a FIFO has come between,
 * READ must not wait for a writer. For a regular file it means nothing. O_LARGEFILE: on a machine
 * of 32 bits, openat2(2) refuses a file of 2 GiB without it. */
enum {
    LOOK = O_PATH | O_CLOEXEC,
    READ = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_LARGEFILE, /* NOLINT: 0 on x86-64 */
};

/* For kernels before 5.6, and for sandboxes that forbid openat2(2): opens one name after the other
 * with openat(2). None of them may be a link. Paths come without ".." (http_decode_path()). */
static int walk_beneath(const char *path, int flags)
{
    char name[NAME_MAX + 2]; /* what is too long for it is too long for openat(2), too */
    int folder = dup(root);
    while (folder >= 0) {
        size_t len = strcspn(path, "/");
        bool last = path[len] == '\0';
        snprintf(name, sizeof(name), "%.*s", (int)len, path);
        int next = openat(folder, name, O_NOFOLLOW | (last ? flags : LOOK | O_DIRECTORY));
        int error = errno;
        close(folder);
        errno = error;
        if (last)
            return next;
        folder = next;
        path += len + 1;
    }
    return -1;
}

/* `path` is relative, and not empty. */
static int open_beneath(const char *path, int flags)
{
    struct open_how how = {
        .flags = (unsigned)flags,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        return walk_beneath(path, flags);
    return fd;
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

/* Opens a file, and asks what it is. Returns 200, or else the status to answer with. */
static int open_regular(const char *path, int flags, int *fd, struct stat *about)
{
    int status = 404;
    *fd = open_beneath(path, flags);
    if (*fd < 0)
        return status_of(errno);
    if (fstat(*fd, about) < 0)
        status = status_of(errno);
    else if (S_ISREG(about->st_mode))
        return 200;
    else if (S_ISDIR(about->st_mode))
        status = 301;
    close(*fd);
    return status;
}

int files_open(const char *path, struct file *file)
{
    char name[PATH_MAX];
    struct stat about;
    int fd;

    if (strstr(path, "/."))
        return 404; /* dot segments are gone by now: this is a dot file */
    bool folder = path[strlen(path) - 1] == '/';
    int len = snprintf(name, sizeof(name), "%s%s", path + 1, folder ? "index.html" : "");
    if (len >= (int)sizeof(name))
        return 404;

    /* Opening has effects: it wakes a program that waits to write to a FIFO, or starts a device. So
     * look first. If a name stands for something else afterwards, that is not served either. */
    int status = open_regular(name, LOOK, &fd, &about);
    if (status == 200) {
        close(fd);
        status = open_regular(name, READ, &fd, &about);
    }
    if (status == 200) {
        fill_file(file, fd, &about);
        file->type = files_type(path);
    }
    return status == 301 && folder ? 404 : status;
}

/* ---- the cache of small files -------------------------------------------------------------- */

enum {
    SMALL_BYTES = 16 * 1024,
    CACHE_BYTES = 1024 * 1024, /* for all files of a process; there may be hundreds of processes */
    CACHE_MS = 1000,
};

/* A small file as it was read. It does not change until it is dropped. */
struct cached {
    int64_t until; /* clock_now_ms(); then it is read again */
    size_t bytes_taken;
    struct file file;
    UT_hash_handle hh;
    char bytes[]; /* the file's, and behind them its path, the key */
};

/* Each process has its own, and so has a child of chapter 2 or 3. The threads of chapters 4 and 5
 * share one, and hold the lock while they copy bytes, but not while they read from the disk. uthash
 * keeps the order in which items were added, so `cache` is the oldest. */
static struct cached *cache;
static size_t cache_bytes;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static bool copy_from_cache(const char *path, struct file *file, struct buffer *small)
{
    struct cached *found;
    pthread_rwlock_rdlock(&lock);
    HASH_FIND_STR(cache, path, found);
    bool fresh = found && clock_now_ms() < found->until && buffer_reserve(small, found->file.size);
    if (fresh) {
        *file = found->file;
        buffer_append(small, found->bytes, found->file.size);
    }
    pthread_rwlock_unlock(&lock);
    return fresh;
}

static void drop(struct cached *old)
{
    cache_bytes -= old->bytes_taken;
    HASH_DEL(cache, old);
    free(old);
}

/* Without memory for it, the file is not kept. Nothing else changes. */
static void add_to_cache(const char *path, const struct file *file, const char *bytes)
{
    size_t len = strlen(path), taken = sizeof(struct cached) + file->size + len + 1;
    struct cached *new = malloc(taken), *old;
    if (!new)
        return;
    *new = (struct cached){.until = clock_now_ms() + CACHE_MS, .bytes_taken = taken, .file = *file};
    memcpy(new->bytes, bytes, file->size);
    char *key = memcpy(new->bytes + file->size, path, len + 1);

    pthread_rwlock_wrlock(&lock);
    HASH_FIND(hh, cache, key, len, old);
    if (old)
        drop(old); /* an older copy of the same file */
    /* NOLINTBEGIN(clang-analyzer-unix.Malloc): it does not know that the oldest is the first */
    while (cache && cache_bytes + taken > CACHE_BYTES)
        drop(cache);
    HASH_ADD_KEYPTR(hh, cache, key, len, new);
    /* NOLINTEND(clang-analyzer-unix.Malloc) */
    if (new->hh.tbl)
        cache_bytes += taken;
    else
        free(new);
    pthread_rwlock_unlock(&lock);
}

int files_load(const char *path, struct file *file, struct buffer *small)
{
    if (copy_from_cache(path, file, small))
        return 200;
    int status = files_open(path, file);
    /* An empty file needs no memory. One that cannot be read whole is sent as far as it goes. */
    if (status != 200 || file->size == 0 || file->size > SMALL_BYTES ||
        !buffer_reserve(small, file->size) ||
        pread(file->fd, small->bytes + small->len, file->size, 0) != (ssize_t)file->size)
        return status;
    close(file->fd);
    file->fd = -1;
    add_to_cache(path, file, small->bytes + small->len);
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
        while (http_next_member(&list, &tag)) {
            bool is_weak = tag.len > 2 && memcmp(tag.at, "W/", 2) == 0;
            tag = span_skip(tag, is_weak ? 2 : 0);
            if (span_is(tag, file->etag) && (weak || !is_weak))
                return true;
        }
    }
    return false;
}

static bool comes_twice(const struct http_request *request, const char *name)
{
    struct span rest = request->fields, value;
    int count = 0;
    while (http_next_field(&rest, name, &value))
        count++;
    return count > 1;
}

/* The date of a field; -1 if there is none, or two, or it is malformed (13.1.3, 13.1.4). */
static time_t date_of(const struct http_request *request, const char *name)
{
    struct span value = http_field(request, name);
    return value.at && !comes_twice(request, name) ? http_parse_date(value) : -1;
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
 * Neither Range nor If-Range is a list, so a field that comes twice means nothing (5.3). */
static bool range_applies(const struct file *file, const struct http_request *request)
{
    struct span known = http_field(request, "If-Range");
    if (comes_twice(request, "Range") || comes_twice(request, "If-Range"))
        return false;
    if (!known.at)
        return true;
    if (known.len > 0 && known.at[0] == '"')
        return span_is(known, file->etag);
    return file->modified >= 0 && file->modified < time(NULL) &&
           http_parse_date(known) == file->modified;
}

int files_apply_conditions(struct file *file, const struct http_request *request)
{
    /* A field with tags overrides the one with a date. A date that cannot be read is ignored. */
    time_t unmodified = date_of(request, "If-Unmodified-Since");
    if (http_field(request, "If-Match").at) {
        if (!names_etag(file, request, "If-Match", false))
            return 412;
    } else if (unmodified >= 0 && file->modified > unmodified) {
        return 412;
    }
    if (http_field(request, "If-None-Match").at) {
        if (names_etag(file, request, "If-None-Match", true))
            return 304;
    } else if (file->modified >= 0 && file->modified <= date_of(request, "If-Modified-Since")) {
        return 304;
    }
    struct span range = http_field(request, "Range");
    if (range.at && request->method == HTTP_GET && range_applies(file, request))
        return take_range(file, range);
    return 200;
}

/* ---- the response -------------------------------------------------------------------------- */

void files_respond(struct file *file, int status, const struct buffer *small,
                   struct http_response *response, struct span *content)
{
    unsigned long long first = (unsigned long long)file->at, size = file->size;
    bool is_sent = status == 200 || status == 206;
    if (status == 206)
        snprintf(file->range, sizeof(file->range), "bytes %llu-%llu/%llu", first,
                 first + file->left - 1, size);
    if (status == 416)
        snprintf(file->range, sizeof(file->range), "bytes */%llu", size);
    response->status = status;
    response->content_range = file->range[0] ? file->range : NULL;
    response->last_modified = file->last_modified[0] ? file->last_modified : NULL;
    response->etag = file->etag;
    if (is_sent)
        response->type = file->type;
    if (is_sent && file->fd >= 0)
        return;
    if (is_sent)
        *content = (struct span){small->bytes + file->at, file->left};
    else if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    file->left = 0;
}
