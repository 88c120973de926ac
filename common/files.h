/* files: public/, from a path to an open file, and to the part that a request wants.
 *
 *  - The kernel makes sure that an opened file is beneath public/ (openat2(2),
 *    RESOLVE_BENEATH). Neither ".." nor a symbolic link leads out.
 *  - Only regular files are served. Names that begin with a dot are not.
 *  - A small file stays in memory for a second, because to open, examine and
 *    close it costs more than to send it: the last 64, with paths of up to 127 bytes.
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
    time_t modified;  /* the file system's time, which may be in the future; < 0: before 1970 */
    char last_modified[HTTP_DATE_SIZE]; /* the field: never in the future; "" if before 1970 */
    char etag[64];  /* a strong tag: it changes when the file is replaced or written to (except
                       within 4 ms on older kernels, see fill_file()) */
    char range[72]; /* the field Content-Range: three numbers of 19 digits fit */
};

/* Opens the directory that is served, in the directory `parent` (AT_FDCWD: the current one). To be
 * called once, at start. Returns false with errno set. */
bool files_open_root(int parent, const char *name);

/* Opens the file that a decoded path ("/a/b.html") names, or the index.html of the folder it names.
 * Returns 200, and the caller owns the file. Otherwise returns the status to answer with: 301 for a
 * folder without its final slash, 403, 404, or 503 (for example if there is no descriptor left).
 * The bytes of a small file (1 byte to 16 KiB), which were read within the last second, are
 * appended to `small`, and file->fd is -1. */
int files_open(const char *path, struct file *, struct buffer *small);

/* Applies the request's preconditions (RFC 9110, 13.2.2) and its range (14.2) to an open file.
 * Returns 200, 206 (with `at` and `left` set to the part), 304, 412 or 416. With the last three, of
 * which none is sent, it is closed. Several ranges and a malformed one are ignored. So is a range
 * whose If-Range is malformed, or a date whose second is not over. */
int files_apply_conditions(struct file *, const struct http_request *);

#endif
