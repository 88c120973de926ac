/* conn: one client connection, from its first byte to its last. No other code
 * reads from a client or writes to one.
 *
 *  - A connection goes as far as its descriptor allows. With a blocking one that
 *    is all the way, or until a tick goes by. With a non-blocking one it is until
 *    the kernel says "not yet". Nothing else differs.
 *  - Its state says what it waits for. Its owner does the waiting.
 *  - Every state has a deadline. The owner checks the clock.
 *  - It costs about 8 KiB while idle, at most 128 KiB for a request, and the
 *    size of one page for a response. A file is not held in memory.
 *  - The memory for the requests and responses of all connections is limited,
 *    too (memory.h). What does not fit is answered with a short 503.
 */
#ifndef CONN_H
#define CONN_H

#include "app.h"
#include "http.h"
#include "log.h"
#include "worker.h"

#include <stdbool.h>
#include <stdint.h>

enum conn_state {
    CONN_NONE = -1, /* not opened yet */
    CONN_FRESH,     /* accepted; waits for its very first byte */
    CONN_IDLE,      /* between requests: waits for the next one's first byte */
    CONN_READING,   /* waits for the rest of a request */
    CONN_ASKING,    /* waits for Redis to answer app.ask */
    CONN_WRITING,   /* waits for room in the socket: for the rest of a response, or for the
                       response to a request that has come already */
    CONN_LINGERING, /* response sent; drains what the client still sends, so that no reset eats
                       the response */
    CONN_DONE,      /* waits for conn_close() */
    CONN_STATES,
};

struct conn {
    int fd; /* owned */
    enum conn_state state;
    int64_t deadline; /* clock_now_ms() at which the state has lasted too long; see conn_expire() */
    struct worker *worker;

    struct buffer in; /* received, and not yet answered */
    struct http_parser parser;
    struct http_request request; /* points into `in` */
    size_t used;                 /* bytes of `in` that belong to the request */
    size_t charged;              /* bytes reserved for `in` from the process's budget (memory.h) */

    struct app app; /* the request being answered */
    bool answering; /* a response is being written: `head`, then app.content or app.file */
    struct buffer head;
    size_t sent;     /* bytes of head and content */
    uint64_t length; /* bytes of content, for the log */
    uint64_t taken;  /* bytes that the socket has taken since the connection was accepted */

    size_t charged_out;  /* bytes reserved for responses, here and in the kernel */
    size_t in_kernel;    /* those of earlier responses, at the last check */
    uint64_t checked_at; /* `taken` at that check */
    int in_flight;       /* lingering: bytes that the client has not acknowledged, */
    int64_t stuck_since; /* and when that number last changed (clock_now_ms()) */

    bool read_full;  /* the last read filled the buffer: more may be in the socket */
    bool silent;     /* the last attempt to read ended with a tick, not with bytes */
    bool refused;    /* the response refuses the request: linger, then close */
    bool dont_wait;  /* receive only bytes that have come already, even on a blocking descriptor */
    int refuse_with; /* answer every request with this status; 0: serve it */
    int pipelined;   /* responses in a row whose next request had already come */

    enum conn_state queued_as; /* these four belong to waiting.h */
    int64_t queued_until;
    struct conn *prev, *next;

    char peer[LOG_PEER_SIZE]; /* the client's address, for the log (--verbose) */
};

/* Takes over an accepted descriptor. `worker` must outlive the connection. */
void conn_open(struct conn *, int fd, struct worker *);

/* Goes on as far as the descriptor allows, for one fair turn at most: one read, one response, 240
 * KiB of a file. Returns the new state. Does nothing at CONN_ASKING and CONN_DONE. */
enum conn_state conn_advance(struct conn *);

/* Hands over the reply to app.ask, or NULL and one of redis.h's reasons. The caller still owns the
 * reply. Returns CONN_ASKING if there is another command to ask, CONN_WRITING if conn_advance() has
 * a response to write, and CONN_DONE if there is no memory even for that. */
enum conn_state conn_reply(struct conn *, const redisReply *, int why);

/* To be called when the deadline has passed. The caller may be late, so bytes that have come by
 * now, or that can be sent now, still count: the connection gets one more turn. Otherwise an
 * unfinished request is refused with 408, and a connection in another state ends, or lingers while
 * the client takes its responses. Returns the new state. Not to be called at CONN_ASKING: the code
 * that asks Redis has its own time limit. */
enum conn_state conn_expire(struct conn *);

/* May this connection be closed in favour of a client that waits? It may if no response is due or
 * under way, and nothing has come for a whole tick. Only for blocking descriptors. */
bool conn_can_make_way(const struct conn *);

/* Was it accepted less than two seconds ago, and has nothing come on it yet? */
bool conn_is_new(const struct conn *);

/* Has a request begun to arrive? This is the last check before a silent connection is closed: the
 * client may have sent something just as the tick ended. False at CONN_LINGERING. */
bool conn_has_input(const struct conn *);

/* How many bytes of our responses has the client's kernel not acknowledged yet? A reset would
 * destroy them, and the kernel sends one if the client says another word after close(). RFC
 * 9112, 9.6. */
int conn_in_flight(const struct conn *);

/* Asks that again, and changes what is reserved for responses accordingly. */
void conn_check_in_flight(struct conn *);

/* How many bytes of all responses has the client's kernel acknowledged? -1 if none is being sent.
 */
int64_t conn_taken_by_client(const struct conn *);

/* Ends the connection without a response: it enters CONN_DONE. What the client has not acknowledged
 * is discarded, as by conn_reset(). Not at CONN_ASKING. */
void conn_drop(struct conn *);

/* The same in the middle of a response. conn_close() then discards the bytes that the client has
 * not taken, so that the kernel does not go on offering them. */
void conn_reset(struct conn *);

/* Closes the descriptor and frees everything, in any state but CONN_ASKING. */
void conn_close(struct conn *);

#endif
