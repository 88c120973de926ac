/* redis: hiredis for those who may wait. Connecting, asking, connecting again;
 * and a pool for those who share connections. Knows nothing of HTTP but two
 * numbers: why there is no reply, 503 (no connection) or 504 (no reply in time).
 *
 *  - A connection is opened when it is first needed, and kept.
 *  - A lost one is opened again for the next request. The command whose reply
 *    was lost is never sent a second time: Redis may have done it.
 */
#ifndef REDIS_H
#define REDIS_H

#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REDIS_NO_CONNECTION = 503, REDIS_NO_REPLY = 504 };

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

/* Where Redis is, and how long it may take. */
struct redis_server {
    const char *path;            /* of its Unix socket; NULL: host and port */
    char host[INET6_ADDRSTRLEN]; /* numeric: the name was resolved once, at start */
    int port;
    int connect_ms, command_ms;
};

struct options;

/* Finds Redis where --redis says, resolving its name, and says once, on standard error, if nobody
 * answers there: the server starts all the same. A bad --redis ends the program with status 2. */
void redis_start(struct redis_server *, const struct options *);

/* Reads "host:port", "[address]:port" or "unix:path" (which is borrowed). Returns NULL, or what
 * would be right, in words. */
const char *redis_locate(struct redis_server *, const char *where);

/* ---- a pool of connections ----------------------------------------------------------------- */

/* One connection; nobody but the one who took it from its pool may use it. */
struct redis {
    redisContext *context; /* NULL: not open */
    const struct redis_server *server;
    int why;            /* Redis cannot be reached, or did not answer in time; 0: neither */
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
 * *why is 503 or 504. A connection that Redis has closed meanwhile is noticed here, before a first
 * command could be lost on it. */
struct redis *redis_take(struct redis_pool *, int most_ms, int *why);

/* Gives it back: to the first in line, if somebody is. */
void redis_give(struct redis_pool *, struct redis *);

/* Asks and waits for the reply, which the caller frees (freeReplyObject). NULL: there is none,
 * *why says which kind of none, and the connection is closed. */
redisReply *redis_ask(struct redis *, const struct redis_command *, int *why);

#endif
