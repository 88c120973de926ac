/* redis_server: where Redis is, how to connect to it, and what it had to say.
 *
 *  - Its name is resolved once, at start.
 *  - What Redis refuses is said on standard error, once, in Redis' words.
 */
#ifndef REDIS_SERVER_H
#define REDIS_SERVER_H

#include "options.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

enum { REDIS_MAX_PASSWORD = 511 }; /* bytes */

/* Where Redis is, what it wants to hear first, and how long it may take. */
struct redis_server {
    const char *name;                      /* of the program, for what is said on standard error */
    struct redis_told *told;               /* what was said already; NULL: nothing is to be said */
    char password[REDIS_MAX_PASSWORD + 1]; /* "": none */
    const char *path;                      /* of its Unix socket; NULL: host and port */
    char host[INET6_ADDRSTRLEN];           /* numeric: the name was resolved once, at start */
    int port;
    int connect_ms, command_ms;
};

/* Finds Redis where --redis says, resolving its name, and says once, on standard error, if nobody
 * answers there: the server starts all the same. A bad --redis ends the program with status 2.
 * Without a password in --redis, the environment variable REDISCLI_AUTH has it, as for redis-cli.
 * To be called before anything forks: all children remember together what was said. */
void redis_start(struct redis_server *, const struct options *);

/* Reads "host:port", "[address]:port", either of them behind "redis://" or "redis://:password@", or
 * "unix:path" (which is borrowed). In the password %XX is the byte of that number. Returns NULL, or
 * what would be right, in words. */
const char *redis_parse_address(struct redis_server *, const char *where);

/* Connects within connect_ms. Returns a blocking socket, which the caller closes; -1 with errno. */
int redis_connect(const struct redis_server *);

/* Begins to connect, without waiting. Returns a non-blocking socket, which the caller closes: the
 * connection is made, or has failed, when it becomes writable (connect(2), EINPROGRESS). -1: it
 * has failed already, and errno says why. */
int redis_connect_nonblocking(const struct redis_server *);

/* Prints "NAME: Redis DOES: ERROR" on standard error, in one line: the first 200 bytes of the
 * error, those that cannot be printed as \xHH. The same error is printed once in a run, and no more
 * than 16 are. For any thread and any child. */
void redis_log(const struct redis_server *, const char *does, const char *error, size_t len);

#endif
