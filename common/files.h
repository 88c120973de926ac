/* files: public/, from a name to an open file, and which part of it a request wants.
 *
 *  - What is opened lies beneath public/ by the kernel's own rule (openat2(2),
 *    RESOLVE_BENEATH): neither ".." nor a symbolic link leads out.
 *  - Regular files only; names that begin with a dot are not served.
 *  - Small ones are sent from memory, where they stay for a second: opening,
 *    examining and closing one costs more than sending it.
 */
#ifndef FILES_H
#define FILES_H

#include "http.h"
#include "text.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* A file, or a part of one: bytes [at, at + left) are still to be sent. */
struct file {
    int fd; /* owned; -1: none */
    off_t at;
    uint64_t left;
    uint64_t size;    /* of the whole file */
    const char *type; /* Content-Type, by its name */
    time_t modified;  /* by the file system, which may say anything; < 0: before 1970 */
    char last_modified[HTTP_DATE_SIZE]; /* the field: no date to come, and "" if before 1970 */
    char etag[64]; /* strong: another one whenever the file is replaced or written to */
};

/* Opens the directory that is served; false with errno set. Once, at start. */
bool files_open_root(int parent, const char *name);

/* Opens the file that a decoded path ("/a/b.html") names, or the index.html of the folder it names.
 * Returns 200, and the file, which the caller owns then; or the status that says why not: 301 for a
 * folder without its slash, 403, 404, 503 (no descriptor or memory left). */
int files_open(const char *path, struct file *);

/* The same, but of a small file (16 KiB at most) the bytes are appended to `small`, and file->fd
 * is -1. They are what the file was at some time within the last second. */
int files_load(const char *path, struct file *, struct buffer *small);

/* What the request's preconditions (RFC 9110, 13.2.2) and its range (14.2) make of an open file:
 * 200, 206 (with at and left set to the part), 304, 412, 416. Several ranges, malformed ones, and
 * those under a condition that is malformed or a date whose second is not over, are ignored. */
int files_apply_conditions(struct file *, const struct http_request *);

/* The Content-Type that the name's extension stands for. */
const char *files_type(const char *path);

#endif
