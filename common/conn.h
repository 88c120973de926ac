/* conn: one client connection, from its first byte to its last. No other code
 * reads from a client or writes to one.
 *
 *  - A call of conn_advance() is one fair turn at most. With a blocking descriptor
 *    it waits within its turn, until a tick goes by. With a non-blocking one it
 *    returns when the kernel says "not yet". Nothing else differs.
 *  - Its state says what it waits for. Its owner does the waiting.
 *  - Every state has a deadline. The owner checks the clock.
 *  - It costs about 8 KiB while idle, at most 128 KiB for a request, and the
 *    size of one page for a response. A file is not held in memory.
 *  - All requests and responses of a process share one budget (text.h). What does
 *    not fit is answered with a short 503. The kernel's part is limited by the
 *    listener (net.c), and for a long file by FILE_BUFFER (conn.c).
 */
#ifndef CONN_H
#define CONN_H

#include "app.h"
#include "board.h"
#include "http.h"
#include "log.h"
#include "options.h"

#include <stdbool.h>
#include <stdint.h>

/* What a process, a thread or an event loop needs to serve its connections. Each has its own. */
struct worker {
    const struct options *options;
    struct board *board;
    struct board_slot *slot; /* on the board, its own */
    int listener;
    /* How many clients wait for a place that this worker could free, by closing a connection that
     * owes nothing? (The trade's name for what follows from it is keep-alive policy.) While some
     * wait, a response says "close". Whoever asks may claim them (chapters 2 and 4), so this is
     * asked only for a connection that can make way. At least 1 if the server is stopping. */
    int (*count_waiting)(const struct worker *);
};

struct conn {
    int fd; /* owned */
    enum conn_state state;
    int64_t since;    /* clock_now_ms() when it entered that state, or last made progress in it */
    int64_t deadline; /* when the state has lasted too long; see conn_expire() */
    struct worker *worker;

    struct buffer in; /* received, and not yet answered */
    struct http_parser parser;
    struct http_request request; /* points into `in` */
    size_t used;                 /* bytes of `in` that belong to the request */

    struct app app; /* the request being answered */
    bool answering; /* a response is being written: `head`, then app.content or app.file */
    struct buffer head;
    size_t sent;            /* bytes of head and content */
    int64_t response_until; /* clock_now_ms() by which the client has to have taken it whole; 0:
                               all of it has found room in the socket so far */
    int64_t linger_until;   /* lingering: until then the client may go on sending */

    bool silent;      /* the last attempt to read ended with a tick, not with bytes */
    bool ended;       /* the client's FIN has come: nothing more can be read */
    bool refused;     /* the response refuses the request: linger, then close */
    bool unavailable; /* no worker can serve it: its request is refused with 503 */

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

/* Is no response due or under way, and no request either, not even one whose first bytes have just
 * come? Then the connection may be closed in favour of a client that waits. */
bool conn_owes_nothing(const struct conn *);

/* Ends the connection without a response: it enters CONN_DONE. What the client has not acknowledged
 * is discarded with a reset. Not at CONN_ASKING. */
void conn_drop(struct conn *);

/* Closes the descriptor and frees everything, in any state but CONN_ASKING. */
void conn_close(struct conn *);

#endif
