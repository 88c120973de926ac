/* redis_server: where Redis is, how to connect to it, and how its errors are logged.
 *
 *  - Its name is resolved once, at start.
 *  - Each error from Redis is printed on standard error once, in Redis' words.
 */
#ifndef REDIS_SERVER_H
#define REDIS_SERVER_H

#include "options.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

enum { REDIS_MAX_PASSWORD = 511, REDIS_MAX_USER = 63 }; /* bytes */

/* Where Redis is, its password, and how long it may take. */
struct redis_server {
    const char *name;                      /* of the program, for messages */
    struct redis_told *told;               /* what was printed already; NULL: print nothing */
    char password[REDIS_MAX_PASSWORD + 1]; /* "": none */
    char user[REDIS_MAX_USER + 1];         /* of an access control list; "": the default user */
    const char *path;                      /* of its Unix socket; NULL: host and port */
    char host[INET6_ADDRSTRLEN];           /* numeric; the name was resolved at start */
    int port;
    int connect_ms, command_ms;
};

/* Finds Redis where --redis says, and resolves its name. A bad --redis ends the program with status
 * 2. If Redis does not answer, prints one line on standard error, and the server starts all the
 * same. If --redis has no password, the environment variable REDISCLI_AUTH may hold it, as for
 * redis-cli. A user without either is bad. To be called before the first fork, so that all children
 * share the memory of what was printed. */
void redis_start(struct redis_server *, const struct options *);

/* Reads "host:port", "[address]:port", either of them behind "redis://", perhaps with "user@",
 * ":password@" or "user:password@", or "unix:path", which is borrowed. In user and password %XX is
 * the byte of that number. Returns NULL, or says in words what would be right. */
const char *redis_parse_address(struct redis_server *, const char *where);

/* Connects within connect_ms. Returns a blocking socket, which the caller closes, or -1 with errno
 * set. */
int redis_connect(const struct redis_server *);

/* Begins to connect, and does not wait. Returns a non-blocking socket, which the caller closes.
 * When it becomes writable, the connection is made or has failed (connect(2), EINPROGRESS). Returns
 * -1 with errno set if it has failed already. */
int redis_connect_nonblocking(const struct redis_server *);

/* Prints one line on standard error, "NAME: Redis DOES: ERROR". It shows the first 200 bytes of the
 * error, those that cannot be printed as \xHH. The same error is printed once in a run, and at most
 * 16 errors are. Any thread and any child may call this. */
void redis_log(const struct redis_server *, const char *does, const char *error, size_t len);

#endif
