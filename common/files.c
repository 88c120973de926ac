#include "files.h"

#include "clock.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
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

/* Both are set once, before the first client, and only read afterwards. So all threads may share
 * them. */
static int root = -1;
static struct type *types;

/* ---- names and types ----------------------------------------------------------------------- */

static struct type {
    const char *extension, *type;
    UT_hash_handle hh;
} table[] = {
    {.extension = "html", .type = "text/html; charset=utf-8"},
    {.extension = "css", .type = "text/css; charset=utf-8"},
    {.extension = "js", .type = "text/javascript; charset=utf-8"},
    {.extension = "txt", .type = "text/plain; charset=utf-8"},
    {.extension = "json", .type = "application/json"},
    {.extension = "xml", .type = "application/xml"},
    {.extension = "pdf", .type = "application/pdf"},
    {.extension = "wasm", .type = "application/wasm"},
    {.extension = "svg", .type = "image/svg+xml"},
    {.extension = "png", .type = "image/png"},
    {.extension = "jpg", .type = "image/jpeg"},
    {.extension = "jpeg", .type = "image/jpeg"},
    {.extension = "gif", .type = "image/gif"},
    {.extension = "webp", .type = "image/webp"},
    {.extension = "ico", .type = "image/x-icon"},
    {.extension = "woff2", .type = "font/woff2"},
    {.extension = "mp4", .type = "video/mp4"},
};

bool files_open_root(int parent, const char *name)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        HASH_ADD_KEYPTR(hh, types, table[i].extension, strlen(table[i].extension), &table[i]);
    root = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return root >= 0;
}

enum { EXTENSION = 8 }; /* bytes; the table has no longer one */

static size_t lower_case(const char *text, char lower[EXTENSION])
{
    size_t len = 0;
    for (; text[len] && len < EXTENSION; len++)
        lower[len] = (char)tolower((unsigned char)text[len]);
    return len;
}

const char *files_type(const char *path)
{
    char extension[EXTENSION];
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    struct type *found = NULL;
    if (slash && slash[1] == '\0')
        return table[0].type; /* a folder's index.html */
    size_t len = dot ? lower_case(dot + 1, extension) : 0;
    HASH_FIND(hh, types, extension, len, found);
    return found ? found->type : "application/octet-stream";
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
    char name[256];
    int folder = dup(root);
    while (folder >= 0) {
        size_t len = strcspn(path, "/");
        bool last = path[len] == '\0';
        if (len >= sizeof(name)) {
            close(folder);
            errno = ENAMETOOLONG;
            return -1;
        }
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

/* The tag changes with the file's inode, its size, or st_ctim, which no program can set (tar(1)
 * sets st_mtim). Before Linux 6.13 that time is only exact to one tick of the kernel (about 4 ms).
 * Of two writes within a tick that leave the size as it is, the second does not change the tag
 * then. A date in the future is not sent; the present one is (RFC 9110, 8.8.2.1). A date before
 * 1970 is not sent either, because http_parse_date() could not tell it from its -1. */
static void fill_file(struct file *file, int fd, const struct stat *about)
{
    time_t now = time(NULL);
    *file = (struct file){
        .fd = fd,
        .left = (uint64_t)about->st_size,
        .size = (uint64_t)about->st_size,
        .modified = about->st_mtim.tv_sec,
    };
    snprintf(file->etag, sizeof(file->etag), "\"%llx-%llx-%llx.%lx\"",
             (unsigned long long)about->st_ino, (unsigned long long)about->st_size,
             (unsigned long long)about->st_ctim.tv_sec, about->st_ctim.tv_nsec);
    if (file->modified >= 0)
        http_format_date(file->modified < now ? file->modified : now, file->last_modified);
}

/* Opens a file, and asks what it is. Returns 200, or else the status to answer with. */
static int open_regular(const char *path, int flags, int *fd, struct stat *about)
{
    *fd = open_beneath(path, flags);
    if (*fd < 0)
        return status_of(errno);
    int status = fstat(*fd, about) < 0     ? status_of(errno)
                 : S_ISREG(about->st_mode) ? 200
                 : S_ISDIR(about->st_mode) ? 301
                                           : 404;
    if (status != 200)
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

/* ---- small files --------------------------------------------------------------------------- */

enum {
    SMALL_BYTES = 16 * 1024,
    KEPT_BYTES = 1024 * 1024, /* for all files of a process; there may be hundreds of processes */
    KEPT_MS = 1000,
};

/* A small file as it was read. It does not change until it is dropped. */
struct kept {
    int64_t until; /* clock_now_ms(); then it is read again */
    struct file file;
    UT_hash_handle hh;
    char bytes[]; /* the file's, and behind them its path, the key */
};

/* Each process has its own, and so has a child of chapter 2 or 3. The threads of chapters 4 and 5
 * share one, and hold the lock while they copy bytes, but not while they read from the disk. uthash
 * keeps the order in which items were added, so `kept` is the oldest. */
static struct kept *kept;
static size_t kept_bytes;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static size_t size_of(const struct kept *k)
{
    return sizeof(*k) + k->file.size + strlen(k->hh.key) + 1;
}

static bool copy_kept(const char *path, struct file *file, struct buffer *small)
{
    struct kept *found;
    pthread_rwlock_rdlock(&lock);
    HASH_FIND_STR(kept, path, found);
    bool fresh = found && clock_now_ms() < found->until && buffer_reserve(small, found->file.size);
    if (fresh) {
        *file = found->file;
        buffer_append(small, found->bytes, found->file.size);
    }
    pthread_rwlock_unlock(&lock);
    return fresh;
}

static void drop(struct kept *old)
{
    kept_bytes -= size_of(old);
    HASH_DEL(kept, old);
    free(old);
}

/* Replaces an older copy of the same file, and drops the oldest files if it needs their room. */
static void add_kept(struct kept *new)
{
    struct kept *old;
    pthread_rwlock_wrlock(&lock);
    HASH_FIND_STR(kept, (char *)new->hh.key, old);
    if (old)
        drop(old);
    /* NOLINTBEGIN(clang-analyzer-unix.Malloc): it does not know that the oldest is the first */
    while (kept && kept_bytes + size_of(new) > KEPT_BYTES)
        drop(kept);
    HASH_ADD_KEYPTR(hh, kept, new->hh.key, strlen(new->hh.key), new);
    /* NOLINTEND(clang-analyzer-unix.Malloc) */
    if (new->hh.tbl)
        kept_bytes += size_of(new);
    else
        free(new);
    pthread_rwlock_unlock(&lock);
}

/* Without memory for it, the file is not kept. Nothing else changes. */
static void keep(const char *path, const struct file *file, const char *bytes)
{
    size_t len = strlen(path) + 1;
    struct kept *new = malloc(sizeof(*new) + file->size + len);
    if (!new)
        return;
    *new = (struct kept){.until = clock_now_ms() + KEPT_MS, .file = *file};
    memcpy(new->bytes, bytes, file->size);
    new->hh.key = memcpy(new->bytes + file->size, path, len);
    add_kept(new);
}

/* Reads all of an open file, and closes it. Returns false if the file is large, or empty (it needs
 * no memory), or could not be read whole. It stays open then. */
static bool read_small(struct file *file, struct buffer *small)
{
    if (file->size == 0 || file->size > SMALL_BYTES || !buffer_reserve(small, file->size) ||
        pread(file->fd, small->bytes + small->len, file->size, 0) != (ssize_t)file->size)
        return false;
    small->len += file->size;
    close(file->fd);
    file->fd = -1;
    return true;
}

int files_load(const char *path, struct file *file, struct buffer *small)
{
    if (copy_kept(path, file, small))
        return 200;
    int status = files_open(path, file);
    if (status == 200 && read_small(file, small))
        keep(path, file, small->bytes + small->len - file->size);
    return status;
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
            bool is_weak = tag.len > 2 && tag.at[0] == 'W' && tag.at[1] == '/';
            if (is_weak)
                tag = (struct span){tag.at + 2, tag.len - 2};
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

/* Returns 200 to go on, or else 304 or 412. A field with tags overrides the one with a date. A date
 * that cannot be read is ignored. */
static int check_preconditions(const struct file *file, const struct http_request *request)
{
    time_t unmodified = date_of(request, "If-Unmodified-Since");

    if (http_field(request, "If-Match").at) {
        if (!names_etag(file, request, "If-Match", false))
            return 412;
    } else if (unmodified >= 0 && file->modified > unmodified) {
        return 412;
    }
    if (http_field(request, "If-None-Match").at)
        return names_etag(file, request, "If-None-Match", true) ? 304 : 200;
    if (file->modified >= 0 && file->modified <= date_of(request, "If-Modified-Since"))
        return 304;
    return 200;
}

/* ---- one range (RFC 9110, 14) -------------------------------------------------------------- */

/* Takes a number off the front. Returns false if there is none. One that is too large becomes the
 * largest. */
static bool take_number(struct span *text, uint64_t *number)
{
    size_t digits = 0;
    *number = 0;
    for (; digits < text->len && text->at[digits] >= '0' && text->at[digits] <= '9'; digits++) {
        uint64_t digit = (uint64_t)(text->at[digits] - '0');
        *number = *number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : *number * 10 + digit;
    }
    *text = (struct span){text->at + digits, text->len - digits};
    return digits > 0;
}

/* Reads "bytes=FIRST-LAST", "bytes=FIRST-" or "bytes=-COUNT". Returns 206 and sets the part, 416 if
 * the file does not reach that far, or 200 for anything else. */
static int take_range(struct file *file, struct span range)
{
    uint64_t first = 0, last = UINT64_MAX;
    struct span unit = {range.at, range.len < 6 ? range.len : 6};
    if (!span_is_nocase(unit, "bytes="))
        return 200;
    range = (struct span){range.at + 6, range.len - 6};
    bool has_first = take_number(&range, &first);
    if (range.len == 0 || range.at[0] != '-')
        return 200;
    range = (struct span){range.at + 1, range.len - 1};
    bool has_last = take_number(&range, &last);
    if (range.len > 0 || (!has_first && !has_last) || (has_first && has_last && last < first))
        return 200;
    if (!has_last)
        last = UINT64_MAX;
    if (!has_first) { /* bytes=-COUNT, and COUNT is in `last` */
        if (last == 0)
            return 416;
        if (file->size == 0)
            return 200; /* an empty file has no part that a 206 could send */
        first = last < file->size ? file->size - last : 0;
        last = UINT64_MAX;
    }
    if (first >= file->size)
        return 416;
    last = last < file->size ? last : file->size - 1;
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
    struct span range = http_field(request, "Range");
    int status = check_preconditions(file, request);
    if (status == 200 && range.at && request->method == HTTP_GET && range_applies(file, request))
        status = take_range(file, range);
    return status;
}
