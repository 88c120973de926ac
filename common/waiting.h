/* waiting: the connections that wait in an event loop (chapters 6 and 7), and until when.
 *
 *  - A queue for each state. All deadlines of one state are equally long, so
 *    that whoever enters it last is due last: each queue is in order by itself,
 *    its head is the next one due, and nothing is ever searched or sorted.
 *  - CONN_DONE's queue holds ended connections until the round is over, because
 *    events that were already fetched may still name them.
 *  - The loop allocates connections, each at the start of its allocation.
 */
#ifndef WAITING_H
#define WAITING_H

#include "conn.h"

struct waiting {
    struct conn *queues[CONN_STATES]; /* utlist's DL */
    int count;
    int64_t stop_asked; /* clock_now_ms() when the server was asked to stop; 0: it was not */
};

/* A new connection joins the queue of its state. The queues own its memory now. */
void waiting_add(struct waiting *, struct conn *);

/* To be called whenever a connection may have changed its state or its deadline. */
void waiting_update(struct waiting *, struct conn *);

/* Milliseconds until the next deadline, as poll(2) and epoll_wait(2) take them; -1: none. Those of
 * clients that wait for Redis are redis_async_timeout()'s. */
int waiting_timeout(const struct waiting *);

/* Expires every connection whose deadline has passed, and calls advance() for each. While memory is
 * short, connections that have been idle for a tick are closed as well. */
void waiting_expire(struct waiting *, void (*advance)(struct conn *));

/* From now on a connection that owes no response is closed after a tick, and the rest after
 * STOP_MS. If Redis still owes a reply then, they also get its time, so that a stored entry is
 * answered. */
void waiting_stop(struct waiting *);
bool waiting_is_over(const struct waiting *);

/* Closes and frees ended connections. To be called at the end of a round, when no event names them
 * any more. */
void waiting_free_done(struct waiting *);

/* Closes and frees all connections. None may be at CONN_ASKING. */
void waiting_close(struct waiting *);

#endif
