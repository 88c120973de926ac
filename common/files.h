/* files: public/, from a name to an open file, and which part of it a request wants.
 *
 *  - What is opened lies beneath public/ by the kernel's own rule (openat2(2),
 *    RESOLVE_BENEATH): neither ".." nor a symbolic link leads out.
 *  - Regular files only; names that begin with a dot are not served.
 */
#ifndef FILES_H
#define FILES_H

#include "http.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* An open file, or a part of one: octets [at, at + left) are still to be sent. */
struct file {
    int fd; /* owned; -1: none */
    off_t at;
    uint64_t left;
    uint64_t size;   /* of the whole file */
    time_t modified; /* as Last-Modified says it */
    char etag[56];   /* strong: another one whenever the file is replaced or written to */
};

/* Opens the directory that is served; false with errno set. Once, at start. */
bool files_open_root(int parent, const char *name);

/* Opens the file that a decoded path ("/a/b.html") names, or the index.html of the folder it names.
 * Returns 200, and the file, which the caller owns then; or the status that says why not: 301 for a
 * folder without its slash, 403, 404, 503 (no descriptor or memory left). */
int files_open(const char *path, struct file *);

/* What the request's preconditions (RFC 9110, 13.2.2) and its range (14.2) make of an open file:
 * 200, 206 (with at and left set to the part), 304, 412, 416. Several ranges, and malformed ones,
 * are ignored. */
int files_select(struct file *, const struct http_request *);

/* The Content-Type that the name's extension stands for. */
const char *files_type(const char *path);

#endif
