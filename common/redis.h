/* redis: Redis for servers that may block. Connecting, asking, connecting again.
 * It knows two status codes of HTTP, which say why there is no reply: 503 (no
 * connection) and 504 (no reply in time).
 *
 *  - hiredis puts commands into Redis' protocol, and turns the bytes of a reply
 *    into objects (redisReader). The sockets are ours: hiredis 0.14 connects and
 *    writes without checking what malloc(3) returns.
 *  - A connection is opened when it is first needed, and kept.
 *  - A lost connection is opened again for the next request. The command whose
 *    reply was lost is never sent a second time: Redis may have executed it.
 *  - If there is a password, AUTH is the first command on every connection.
 *  - A reply larger than any that a page needs is not read to its end.
 */
#ifndef REDIS_H
#define REDIS_H

#include "redis_server.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Why there is no reply. The last two lead to a 503 as well: Redis did not accept the password, or
 * refused AUTH for another reason. */
enum {
    REDIS_NO_CONNECTION = 503,
    REDIS_NO_REPLY = 504,
    REDIS_NOT_ADMITTED = 1,
    REDIS_NOT_READY = 2,
};

/* One command. The words are borrowed, until redis_ask() or redis_async_ask() returns. */
struct redis_command {
    int count;
    const char *words[4];
    size_t lens[4];
    const char *bytes; /* in Redis' protocol, if redis_prepare() was called; else NULL */
    size_t len;
};

/* Puts a command that is asked again and again into Redis' protocol, once, at start. Otherwise a
 * quarter of all instructions for a short page would be spent on that. The bytes are never freed.
 * Without memory the command stays as it was. */
void redis_prepare(struct redis_command *);

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

/* ---- a reply's bytes ----------------------------------------------------------------------- */

/* Reads from the socket once, 16 KiB at most, and feeds the reader. Returns the result of read(2),
 * or -1 with ENOMEM if there is no memory for the bytes. They are lost then. */
ssize_t redis_read(int fd, redisReader *);

/* Are there bytes that have not become a reply yet? */
bool redis_has_more(const redisReader *);

/* ---- one connection ------------------------------------------------------------------------ */

/* Logs a reply that is an error. */
void redis_log_error(const struct redis_server *, const redisReply *);

/* If a connection ended because a reply was malformed or too large, logs that. */
void redis_log_nonsense(const struct redis_server *, const redisReader *,
                        const struct redis_limits *);

/* The AUTH command. It borrows the user and the password. */
struct redis_command redis_auth_command(const struct redis_server *);

/* Takes the reply to AUTH. Returns 0 if Redis has accepted the password, REDIS_NOT_ADMITTED or
 * REDIS_NOT_READY. An error is logged. */
int redis_auth_refusal(const struct redis_server *, const redisReply *);

/* One connection. Only the thread that took it from its pool may use it. */
struct redis {
    int fd; /* -1: not open */
    redisReader *reader;
    const struct redis_server *server;
    struct redis_limits limits;
    int why;            /* why any other connection would fail, too; 0: not known to */
    struct redis *next; /* in its pool */
};

/* Did Redis close the connection while it was idle, or send something unasked? */
bool redis_is_stale(const struct redis *);

/* Closes the connection, if it is open. */
void redis_close(struct redis *);

/* Asks, and waits for the reply, which the caller frees (freeReplyObject()). Connects first if need
 * be. An error from Redis is a reply, and is logged. Returns NULL if there is no reply. Then *why
 * says why, and the connection is closed. */
redisReply *redis_ask(struct redis *, const struct redis_command *, int *why);

#endif
