/* redis: what all seven know of Redis: where it is, how to connect to it, how a
 * command is written and a reply is read. How to wait for a reply is redis_pool.h's
 * and redis_async.h's.
 *
 *  - hiredis puts commands into Redis' protocol, and turns the bytes of a reply
 *    into objects (redisReader). The sockets are ours: hiredis 0.14 connects and
 *    writes without checking what malloc(3) returns.
 *  - Redis' name is resolved once, at start.
 *  - If there is a password, AUTH is the first command on every connection.
 *  - Errors from Redis are logged on standard error in Redis' words, one a second
 *    by the whole server.
 */
#ifndef REDIS_H
#define REDIS_H

#include "options.h"
#include "text.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* Why there is no reply. */
enum {
    REDIS_NO_CONNECTION = 1, /* none, or it was lost: the command may have been carried out */
    REDIS_NO_REPLY,          /* in time */
};

/* ---- where it is --------------------------------------------------------------------------- */

/* The Redis server: where it is, its password, and how long it may take. */
struct redis_server {
    const char *name;                /* of the program, for messages */
    const char *where;               /* as --redis has it */
    const char *password;            /* "": none */
    struct redis_logged *logged;     /* what was logged, and when; NULL: log nothing */
    struct sockaddr_storage address; /* the name was resolved at start */
    socklen_t address_size;
    int connect_ms, command_ms;
};

/* Finds Redis where --redis says, and resolves its name. A bad --redis ends the program with status
 * 2. If Redis does not answer, prints one line on standard error, and the server starts all the
 * same. The environment variable REDISCLI_AUTH may hold a password, as for redis-cli. To be called
 * before the first fork, so that all children know when something was logged. */
void redis_find(struct redis_server *, const struct options *);

/* Reads "host:port", "[address]:port" or "unix:path". Returns NULL, or says in words what would be
 * right. */
const char *redis_parse_address(struct redis_server *, const char *where);

/* Connects within connect_ms. Returns a socket, which the caller closes, or -1 with errno set. A
 * read(2) from it waits for command_ms, and a write(2) for connect_ms. With the flag SOCK_NONBLOCK
 * none of them waits: when the socket becomes writable, the connection is made or has failed
 * (connect(2), EINPROGRESS). The flag is 0 otherwise. */
int redis_connect(const struct redis_server *, int flag);

/* ---- commands ------------------------------------------------------------------------------ */

/* One command. The words are borrowed, until redis_ask() or redis_async_ask() returns. */
struct redis_command {
    struct span words[4]; /* behind the last: NULL */
    const char *bytes;    /* in Redis' protocol, if redis_prepare() was called; else NULL */
    size_t len;
};

/* Puts a command into Redis' protocol. redisFreeCommand() frees its `bytes`. A command that is
 * asked again and again is prepared once, at start, and never freed, which saves a quarter of all
 * instructions for a short page. Without memory the command stays as it was. */
void redis_prepare(struct redis_command *);

/* Has Redis closed an idle connection, or sent something unasked? */
bool redis_is_stale(int fd);

/* ---- replies ------------------------------------------------------------------------------- */

/* Returns a reader, which the caller frees (redisReaderFree()). Its buffer is kept, but for one of
 * more than a MB, after a long reply. NULL: there is no memory. */
redisReader *redis_open_reader(void);

/* Takes a reply out of the reader, or NULL if it is not whole yet. The caller frees it
 * (freeReplyObject()). Returns false, and logs why, if it is malformed, or if there is no memory
 * for it: then the connection is of no use. A reply may be of any length: what another program has
 * stored costs the memory that it needs, for as long as the page takes. Redis is trusted to send as
 * many elements as it announces: hiredis allocates them first, and a thousand million that do not
 * come take it two seconds. */
bool redis_next_reply(const struct redis_server *, redisReader *, redisReply **);

/* Are there bytes that have not become a reply yet? (`pos` and `len` are fields of the public
 * struct redisReader, but they are not documented. Checked in hiredis 0.14.1 and 1.2.0.) */
static inline bool redis_has_more(const redisReader *reader)
{
    return reader->pos < reader->len;
}

/* The AUTH command. It borrows the password. */
struct redis_command redis_auth_command(const struct redis_server *);

/* Logs a reply that is an error, and no other. An error of AUTH is logged once in a run, and
 * changes nothing, as in redis-cli: a Redis that has no password goes on. */
void redis_log_error(const struct redis_server *, const redisReply *, bool is_of_auth);

#endif
