/* redis: Redis for servers that may wait. Connecting, asking, connecting again;
 * and a pool for those who share connections. Knows nothing of HTTP but two
 * numbers: why there is no reply, 503 (no connection) or 504 (no reply in time).
 *
 *  - hiredis puts commands into Redis' protocol, and turns the bytes of a reply
 *    into objects (redisReader). The sockets are ours: hiredis 0.14 connects and
 *    writes without a look at what malloc(3) returns.
 *  - A connection is opened when it is first needed, and kept.
 *  - A lost one is opened again for the next request. The command whose reply
 *    was lost is never sent a second time: Redis may have done it.
 *  - If there is a password, AUTH is the first command on every connection.
 *  - What Redis refuses is said on standard error, once, in Redis' words.
 *  - A reply larger than any that a page needs is not read to its end.
 */
#ifndef REDIS_H
#define REDIS_H

#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Why there is no reply. The third is a 503 as well: Redis did not accept the password. */
enum { REDIS_NO_CONNECTION = 503, REDIS_NO_REPLY = 504, REDIS_NOT_ADMITTED = 1 };

/* One command. The words are borrowed, until redis_ask() or redis_async_ask() returns. */
struct redis_command {
    int count;
    const char *words[4];
    size_t lens[4];
    const char *bytes; /* as they go to Redis, if redis_prepare() has made them; NULL: not yet */
    size_t len;
};

/* Puts a command that is asked again and again into Redis' protocol, once, at start: for a short
 * page hiredis would spend a quarter of all its instructions on that. The bytes are never freed.
 * Without memory it stays as it was. */
void redis_prepare(struct redis_command *);

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

struct options;

/* Finds Redis where --redis says, resolving its name, and says once, on standard error, if nobody
 * answers there: the server starts all the same. A bad --redis ends the program with status 2.
 * Without a password in --redis, the environment variable REDISCLI_AUTH has it, as for redis-cli.
 * To be called before anything forks: all children remember together what was said. */
void redis_start(struct redis_server *, const struct options *);

/* Reads "host:port", "[address]:port", either of them behind "redis://" or "redis://:password@", or
 * "unix:path" (which is borrowed). In the password %XX is the byte of that number. Returns NULL, or
 * what would be right, in words. */
const char *redis_locate(struct redis_server *, const char *where);

/* Begins to connect, without waiting. Returns a non-blocking socket, which the caller closes: the
 * connection is made, or has failed, when it becomes writable (connect(2), EINPROGRESS). -1: it
 * has failed already, and errno says why. */
int redis_begin_to_connect(const struct redis_server *);

/* ---- how large a reply may be -------------------------------------------------------------- */

enum {
    REDIS_MAX_ELEMENTS = 21,      /* of an array, in which there is no other array */
    REDIS_MAX_STRING = 16 * 1024, /* bytes; of an error, too */
};

/* What bounds the replies on one connection. */
struct redis_bounds {
    redisReplyObjectFunctions functions;    /* for hiredis' reader: ours, which may refuse */
    const redisReplyObjectFunctions *plain; /* its own */
    bool exceeded;                          /* a reply was refused */
};

/* For a new connection. Both live as long as the reader is read. A reply beyond the bounds is an
 * error of the reader, as if there were no memory for it, and nothing is allocated for it. */
void redis_bound(redisReader *, struct redis_bounds *);

/* To be asked after each reading, when all that is whole has been taken out: is what is left longer
 * than the longest string? It would never become a reply. */
bool redis_exceeds(const redisReader *, struct redis_bounds *);

/* ---- a reply's bytes ----------------------------------------------------------------------- */

/* Reads from the socket once, 16 KiB at most, and feeds the reader. Returns what read(2) does; -1
 * with ENOMEM if there is no memory for the bytes, which are lost then. */
ssize_t redis_read(int fd, redisReader *);

/* Are there bytes that have not become a reply yet? */
bool redis_says_more(const redisReader *);

/* ---- what is said to it, and by it --------------------------------------------------------- */

/* Says an error of Redis on standard error, in one line: its first 200 bytes, those that cannot be
 * printed as \xHH. The same one is said once in a run, and no more than 16 are said. For any thread
 * and any child. */
void redis_tell(const struct redis_server *, const char *error, size_t len);

/* Says, like redis_tell(), why a connection came to its end, if that is nonsense from Redis. */
void redis_tell_nonsense(const struct redis_server *, const redisReader *,
                         const struct redis_bounds *);

/* AUTH. Borrows the password. */
struct redis_command redis_auth(const struct redis_server *);

/* Takes the reply to AUTH: has Redis accepted the password? An error is told. */
bool redis_admits(const struct redis_server *, const redisReply *);

/* ---- a pool of connections ----------------------------------------------------------------- */

/* One connection; nobody but the one who took it from its pool may use it. */
struct redis {
    int fd; /* -1: not open */
    redisReader *reader;
    const struct redis_server *server;
    struct redis_bounds bounds;
    int why;            /* what everybody else would meet with, too; 0: nothing is known of that */
    struct redis *next; /* in the pool */
};

/* A pool of one serves a process or thread that shares with nobody. */
struct redis_pool {
    pthread_mutex_t lock;
    struct redis *idle; /* the one used last first: its connection is the likeliest to be alive */
    struct redis_waiter *line; /* utlist's DL, in the order in which they came */
    struct redis *all;
    int size;
};

/* Opens nothing yet. A child must not use a pool made before the fork. False: no memory. */
bool redis_pool_open(struct redis_pool *, const struct redis_server *, int size);
void redis_pool_close(struct redis_pool *);

/* Takes a connection for one request. If all are taken it waits in line, first come, first served,
 * for `most_ms` at most. If Redis cannot be reached any more, or does not answer in time, everybody
 * in line is told so at once: each would only find out the same, one after the other. That a
 * connection has ended says nothing about Redis, and concerns its own request only. NULL: none, and
 * *why says why. A connection that Redis has closed meanwhile is noticed here, before a first
 * command could be lost on it. */
struct redis *redis_take(struct redis_pool *, int most_ms, int *why);

/* Gives it back: to the first in line, if somebody is. */
void redis_give(struct redis_pool *, struct redis *);

/* Asks and waits for the reply, which the caller frees (freeReplyObject). An error of Redis is a
 * reply, and is told. NULL: there is none, *why says which kind of none, and the connection is
 * closed. */
redisReply *redis_ask(struct redis *, const struct redis_command *, int *why);

#endif
