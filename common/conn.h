/* conn: one client connection, from its first byte to its last. Nothing else
 * reads from a client or writes to one.
 *
 *  - A connection goes as far as its descriptor lets it: on a blocking
 *    descriptor that is all the way (or until a tick goes by), on a
 *    non-blocking one until the kernel says "not yet". Nothing else differs.
 *  - Its state says what it waits for; whoever owns it sees to the waiting.
 *  - Every state has a deadline. Looking at the clock is the owner's business.
 *  - It costs about 8 KiB while it idles, and never more than 128 KiB for a
 *    request and the size of one page for a response; a file is not held in memory.
 *    What all of them hold of requests is bounded, too (memory.h). One that does
 *    not fit is refused with 503.
 */
#ifndef CONN_H
#define CONN_H

#include "app.h"
#include "board.h"
#include "http.h"
#include "options.h"
#include "page.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum conn_state {
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

/* Who serves: a process, a thread, or an event loop, and what it needs for all its connections.
 * Nobody shares one. */
struct worker {
    const struct options *options;
    struct board_slot *slot;
    /* How many clients wait to be served, of whom this worker could serve one if it closed an idle
     * connection? A caller that is told of some closes one: in chapter 2 they are told of to one
     * child only. At least 1 if the server is stopping, which is as good a reason. */
    int (*claim_waiting_clients)(const struct worker *);
    /* Called before the worker waits for its client for the first time; NULL: nothing is. */
    void (*before_waiting)(void);
    int listener;
    time_t date_of; /* the second that `date` was made for */
    char date[HTTP_DATE_SIZE];
};

struct conn {
    int fd; /* owned */
    enum conn_state state;
    int64_t deadline; /* clock_now_ms() at which the state has lasted too long; see conn_expire() */
    struct worker *worker;

    struct buffer in; /* what has been received and not yet answered */
    struct http_parser parser;
    struct http_request request; /* points into `in` */
    size_t used;                 /* bytes of `in` that are the request's */
    size_t charged; /* bytes that are taken for `in` of the process' budget (memory.h) */

    struct app app; /* the request being answered */
    bool answering; /* a response is being written: `head`, then app.content or app.file */
    struct buffer head;
    size_t sent;     /* bytes of head and content */
    uint64_t length; /* bytes of content, for the log */
    uint64_t taken;  /* bytes that the socket has taken, on this connection */

    bool cut;     /* the last read filled the buffer: the rest of a request may be in the socket */
    bool silent;  /* the last attempt to read ended with a tick, not with a byte */
    bool refused; /* the response refuses the request: close, lingering */
    bool dont_wait;  /* receive only what has come already, even if the descriptor blocks */
    int refuse_with; /* answer whatever is asked with this status; 0: serve */
    int ahead;       /* responses in a row behind each of which the next request was there */

    enum conn_state queued_as; /* see waiting.h; no business of this file */
    int64_t queued_until;
    struct conn *prev, *next;
};

/* Takes over an accepted descriptor. `worker` must outlive the connection. */
void conn_open(struct conn *, int fd, struct worker *);

/* Goes on from whatever state, as far as the descriptor allows and no longer than a fair turn: one
 * read, one response, 240 KiB of a file. Returns the new state. At CONN_ASKING and CONN_DONE there
 * is nothing to be done. */
enum conn_state conn_advance(struct conn *);

/* Hands over the reply to app.ask; NULL if there is none, with redis.h's why. The reply stays the
 * caller's. Returns CONN_ASKING if there is another question, CONN_WRITING if there is a response
 * to be written, by conn_advance(), and CONN_DONE if there is no memory even for that. */
enum conn_state conn_reply(struct conn *, const redisReply *, int why);

/* The deadline has passed. What has come by now, or may be sent, is not too late, whoever looks at
 * it late: one more turn. Else refuses an unfinished request with 408, and ends the rest. Returns
 * the new state. Not to be called at CONN_ASKING, whose time is the business of who asks Redis. */
enum conn_state conn_expire(struct conn *);

/* Could this connection be given up for somebody who waits? It owes nothing, and was silent for a
 * whole tick. Means something on a blocking descriptor only. */
bool conn_can_make_way(const struct conn *);

/* Was it accepted less than two seconds ago, and has not said anything yet? */
bool conn_is_new(const struct conn *);

/* Has a request begun to arrive on a connection that waited for one? The last look before giving it
 * up: a tick may end just as the client speaks. */
bool conn_has_input(const struct conn *);

/* Ends the connection without another word: on to CONN_DONE. Not at CONN_ASKING. */
void conn_drop(struct conn *);

/* The same in the middle of a response: what the client has not taken of it is thrown away, so that
 * the kernel does not go on offering it. */
void conn_reset(struct conn *);

/* Closes the descriptor and frees everything, in any state but CONN_ASKING. */
void conn_close(struct conn *);

#endif
