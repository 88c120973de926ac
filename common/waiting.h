/* waiting: who waits in an event loop (chapters 6 and 7), and until when.
 *
 *  - A queue for each state. All deadlines of one state are equally long, so
 *    that whoever enters it last is due last: each queue is in order by itself,
 *    its head is the next one due, and nothing is ever searched or sorted.
 *  - CONN_DONE's queue holds ended connections until the round is over, since
 *    events already fetched may still name them.
 *  - Connections are allocated by the loop, each at the start of its allocation.
 */
#ifndef WAITING_H
#define WAITING_H

#include "conn.h"

struct waiting {
    struct conn *queues[CONN_STATES]; /* utlist's DL */
    int count;
    int64_t stop_asked; /* clock_now_ms() when the server was asked to stop; 0: it was not */
};

/* A new connection joins the queue of its state; the memory belongs to the queues now. */
void waiting_add(struct waiting *, struct conn *);

/* To be called whenever a connection may have changed its state or its deadline. */
void waiting_update(struct waiting *, struct conn *);

/* Milliseconds until the next deadline, as poll(2) and epoll_wait(2) take them; -1: none. */
int waiting_timeout(const struct waiting *);

/* Expires every connection whose deadline has passed, and calls advance() for each. While memory
 * is short, connections that have been idle for a tick are given up as well. */
void waiting_expire(struct waiting *, void (*advance)(struct conn *));

/* Has the question that was asked first gone without a reply for too long? */
bool waiting_redis_is_overdue(const struct waiting *);

/* From now on connections that owe nothing are given up after a tick, and the rest after STOP_MS;
 * if Redis is being asked then, after its time too, so that what it stores is answered. */
void waiting_stop(struct waiting *);
bool waiting_is_over(const struct waiting *);

/* Closes and frees ended connections: at the end of a round, when nothing names them any more. */
void waiting_free_done(struct waiting *);

/* Closes and frees everybody; nobody may be at CONN_ASKING. */
void waiting_close(struct waiting *);

#endif
