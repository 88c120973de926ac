/* redis: Redis for servers that may wait. Connecting, asking, connecting again.
 * Of HTTP it knows two numbers, which say why there is no reply: 503 (no connection)
 * and 504 (no reply in time).
 *
 *  - hiredis puts commands into Redis' protocol, and turns the bytes of a reply
 *    into objects (redisReader). The sockets are ours: hiredis 0.14 connects and
 *    writes without a look at what malloc(3) returns.
 *  - A connection is opened when it is first needed, and kept.
 *  - A lost one is opened again for the next request. The command whose reply
 *    was lost is never sent a second time: Redis may have done it.
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

/* ---- how large a reply may be -------------------------------------------------------------- */

enum {
    REDIS_MAX_ELEMENTS = 21,      /* of an array, in which there is no other array */
    REDIS_MAX_STRING = 16 * 1024, /* bytes; of an error, too */
};

/* What limits the replies on one connection. */
struct redis_limits {
    redisReplyObjectFunctions functions;    /* for hiredis' reader: ours, which may refuse */
    const redisReplyObjectFunctions *plain; /* its own */
    bool exceeded;                          /* a reply was refused */
};

/* For a new connection. Both live as long as the reader is read. A reply beyond the limits is an
 * error of the reader, as if there were no memory for it, and nothing is allocated for it. */
void redis_limit_replies(redisReader *, struct redis_limits *);

/* To be asked after each reading, when all that is whole has been taken out: is what is left longer
 * than the longest string? It would never become a reply. */
bool redis_is_too_large(const redisReader *, struct redis_limits *);

/* ---- a reply's bytes ----------------------------------------------------------------------- */

/* Reads from the socket once, 16 KiB at most, and feeds the reader. Returns what read(2) does; -1
 * with ENOMEM if there is no memory for the bytes, which are lost then. */
ssize_t redis_read(int fd, redisReader *);

/* Are there bytes that have not become a reply yet? */
bool redis_has_more(const redisReader *);

/* ---- one connection ------------------------------------------------------------------------ */

/* Logs a reply that is an error. */
void redis_log_error(const struct redis_server *, const redisReply *);

/* Logs what the reader could not read, or what was too large, if a connection ended for that. */
void redis_log_nonsense(const struct redis_server *, const redisReader *,
                        const struct redis_limits *);

/* AUTH. Borrows the password. */
struct redis_command redis_auth_command(const struct redis_server *);

/* Takes the reply to AUTH: has Redis accepted the password? An error is logged. */
bool redis_auth_accepted(const struct redis_server *, const redisReply *);

/* One connection; nobody but the one who took it from its pool may use it. */
struct redis {
    int fd; /* -1: not open */
    redisReader *reader;
    const struct redis_server *server;
    struct redis_limits limits;
    int why;            /* what everybody else would meet with, too; 0: nothing is known of that */
    struct redis *next; /* in its pool */
};

/* Was the connection closed by Redis while it was idle, or did Redis say something unasked? */
bool redis_is_stale(const struct redis *);

/* Closes the connection, if it is open. */
void redis_close(struct redis *);

/* Asks and waits for the reply, which the caller frees (freeReplyObject). An error of Redis is a
 * reply, and is logged. NULL: there is none, *why says why, and the connection is closed. */
redisReply *redis_ask(struct redis *, const struct redis_command *, int *why);

#endif
