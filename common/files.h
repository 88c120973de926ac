/* files: public/, from a name to an open file.
 *
 *  - What is opened lies beneath public/ by the kernel's own rule (openat2(2),
 *    RESOLVE_BENEATH): neither ".." nor a symbolic link leads out.
 *  - Regular files only; names that begin with a dot are not served.
 */
#ifndef FILES_H
#define FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* An open file, or a part of one: octets [at, at + left) are still to be sent. */
struct file {
    int fd; /* owned; -1: none */
    off_t at;
    uint64_t left;
};

/* Opens the directory that is served; false with errno set. Once, at start. */
bool files_open_root(int parent, const char *name);

/* Opens the file that a decoded path ("/a/b.html") names, or the index.html of the folder it names.
 * Returns 200, and the file, which the caller owns then; or the status that says why not: 301 for a
 * folder without its slash, 403, 404, 503 (no descriptor or memory left). */
int files_open(const char *path, struct file *);

/* The Content-Type that the name's extension stands for. */
const char *files_type(const char *path);

#endif
