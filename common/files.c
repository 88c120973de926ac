#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <uthash.h>

/* Both are set once, before the first client, and only read then: threads and children may share
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

const char *files_type(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    struct type *found = NULL;
    if (slash && slash[1] == '\0')
        return table[0].type; /* a folder's index.html */
    if (dot)
        HASH_FIND(hh, types, dot + 1, strlen(dot + 1), found);
    return found ? found->type : "application/octet-stream";
}

/* ---- opening ------------------------------------------------------------------------------- */

/* O_NONBLOCK: opening a FIFO must not wait for a writer; it means nothing to a regular file. */
enum { FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };

/* For kernels before 5.6 and sandboxes that forbid openat2(2): a walk of one openat(2) a name, none
 * of which may be a link. Paths come without ".." (http_decode_path). */
static int walk_beneath(const char *path)
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
        int next = openat(folder, len ? name : ".", FLAGS | O_NOFOLLOW | (last ? 0 : O_DIRECTORY));
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

/* `path` is relative; "." for the root itself. */
static int open_beneath(const char *path)
{
    struct open_how how = {
        .flags = FLAGS,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        return walk_beneath(path);
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
        return 503;
    default: /* ENOENT, ENOTDIR, ENAMETOOLONG, EXDEV (leads out), ELOOP, ENXIO (a socket) */
        return 404;
    }
}

int files_open(const char *path, struct file *file)
{
    char index[4096 + 16];
    struct stat about;

    if (strstr(path, "/."))
        return 404; /* dot segments are gone by now: this is a dot file */
    size_t len = strlen(path);
    bool folder = path[len - 1] == '/';
    if (len > 4096)
        return 404;
    snprintf(index, sizeof(index), "%s%s", path + 1, folder ? "index.html" : "");

    int fd = open_beneath(index);
    if (fd < 0)
        return status_of(errno);
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) {
        *file = (struct file){.fd = fd, .at = 0, .left = (uint64_t)about.st_size};
        return 200;
    }
    close(fd);
    return S_ISDIR(about.st_mode) && !folder ? 301 : 404;
}
