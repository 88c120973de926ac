/* redis: what all seven know of Redis: where it is, how to connect to it, how a
 * command is written and a reply is read. How to wait for a reply is redis_pool.h's
 * and redis_async.h's.
 *
 *  - hiredis puts commands into Redis' protocol, and turns the bytes of a reply
 *    into objects (redisReader). The sockets are ours: hiredis 0.14 connects and
 *    writes without checking what malloc(3) returns.
 *  - Redis' name is resolved once, at start.
 *  - If there is a password, AUTH is the first command on every connection.
 *  - A reply larger than any that a page needs is not read to its end.
 *  - Each error from Redis is printed on standard error once, in Redis' words.
 */
#ifndef REDIS_H
#define REDIS_H

#include "options.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* Why there is no reply. */
enum {
    REDIS_NO_CONNECTION = 1,
    REDIS_NO_REPLY,     /* in time */
    REDIS_NOT_ADMITTED, /* Redis did not accept the password, */
    REDIS_NOT_READY,    /* or refused AUTH for another reason */
};

/* ---- where it is --------------------------------------------------------------------------- */

enum { REDIS_MAX_PASSWORD = 511, REDIS_MAX_USER = 63 }; /* bytes */

/* The Redis server: where it is, its password, and how long it may take. */
struct redis_server {
    const char *name;                      /* of the program, for messages */
    struct redis_told *told;               /* what was printed already; NULL: print nothing */
    char password[REDIS_MAX_PASSWORD + 1]; /* "": none */
    char user[REDIS_MAX_USER + 1];         /* of an access control list; "": the default user */
    struct sockaddr_storage address;       /* the name was resolved at start */
    socklen_t address_size;
    int connect_ms, command_ms;
};

/* Finds Redis where --redis says, and resolves its name. A bad --redis ends the program with status
 * 2. If Redis does not answer, prints one line on standard error, and the server starts all the
 * same. If --redis has no password, the environment variable REDISCLI_AUTH may hold it, as for
 * redis-cli. A user without either ends the program with status 1. To be called before the first
 * fork, so that all children share the memory of what was printed. */
void redis_find(struct redis_server *, const struct options *);

/* Reads "host:port", "[address]:port", either of them behind "redis://", perhaps with "user@",
 * ":password@" or "user:password@", or "unix:path". In user and password %XX is the byte of that
 * number. Returns NULL, or says in words what would be right. */
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

/* ---- commands and replies ------------------------------------------------------------------ */

/* One command. The words are borrowed, until redis_ask() or redis_async_ask() returns. */
struct redis_command {
    int count;
    const char *words[4];
    size_t lens[4];
    const char *bytes; /* in Redis' protocol, if redis_prepare() was called; else NULL */
    size_t len;
};

/* Puts a command into Redis' protocol. redisFreeCommand() frees its `bytes`. A command that is
 * asked again and again is prepared once, at start, and never freed, which saves a quarter of all
 * instructions for a short page. Without memory the command stays as it was. */
void redis_prepare(struct redis_command *);

/* Are there bytes that have not become a reply yet? */
bool redis_has_more(const redisReader *);

/* Has Redis closed an idle connection, or sent something unasked? */
bool redis_is_stale(int fd);

/* ---- how large a reply may be -------------------------------------------------------------- */

enum {
    REDIS_MAX_ELEMENTS = 21,      /* of an array, which holds no other array */
    REDIS_MAX_STRING = 16 * 1024, /* bytes; of an error, too */
};

/* What limits the replies on one connection. */
struct redis_limits {
    redisReplyObjectFunctions functions;    /* ours, for hiredis' reader; they may refuse */
    const redisReplyObjectFunctions *plain; /* hiredis' own, which ours call */
    bool exceeded;                          /* a reply was refused */
};

/* For a new connection. `limits` must live as long as the reader is used. For a reply beyond the
 * limits nothing is allocated, and the reader reports an error, as if there were no memory. */
void redis_limit_replies(redisReader *, struct redis_limits *);

/* Is the rest in the reader longer than the longest string, so that it can never become a reply? To
 * be called after each read, when all whole replies have been taken out. */
bool redis_is_too_large(const redisReader *, struct redis_limits *);

/* ---- what both clients say ---------------------------------------------------------------- */

/* If a connection ended because a reply was malformed or too large, logs that. */
void redis_log_nonsense(const struct redis_server *, const redisReader *,
                        const struct redis_limits *);

/* The AUTH command. It borrows the user and the password. */
struct redis_command redis_auth_command(const struct redis_server *);

/* Takes the reply to AUTH. Returns 0 if Redis has accepted the password, REDIS_NOT_ADMITTED or
 * REDIS_NOT_READY. */
int redis_auth_refusal(const redisReply *);

#endif
