/* loop: what the event loops of chapters 6 and 7 have in common. It knows every
 * connection, what each waits for, and until when. It does not know how the kernel
 * is asked which of them are ready: that is what the chapters differ in.
 *
 *  - A queue for each state. All deadlines of one state are equally long, so
 *    that whoever enters it last is due last: each queue is in order by itself,
 *    its head is the next one due, and nothing is ever searched or sorted.
 *  - CONN_DONE's queue holds ended connections until the round is over, because
 *    events that were already fetched may still name them.
 *  - One thread uses it, so nothing needs a lock.
 */
#ifndef LOOP_H
#define LOOP_H

#include "conn.h"
#include "redis_async.h"

/* A connection in its queue. */
struct client {
    struct conn conn;          /* first: a pointer to it is a pointer to the client */
    enum conn_state queued_as; /* its state and its deadline when it joined the queue */
    int64_t queued_until;
    unsigned interest; /* chapter 7: what the kernel watches it for; 0: nothing */
    struct client *prev, *next;
};

struct loop {
    /* first: a pointer to it is a pointer to the loop. Its listener is -1 once the server stops */
    struct worker worker;
    struct client *queues[CONN_STATES]; /* utlist's DL; they own the clients */
    int count;                          /* of clients */
    struct redis_async redis;           /* one connection, which all clients share */
    int signals;                        /* a signalfd(2) of SIGTERM and SIGINT */
    int64_t accept_paused_until;        /* clock_now_ms() */
    int64_t stop_asked;                 /* clock_now_ms(); 0: the server is not to stop */
    void (*moved)(struct client *);     /* a client may wait for something else now */
};

/* Completes a loop in which its worker, signals and `moved` (or NULL) are set. It owns both
 * descriptors from now on. */
void loop_start(struct loop *, const struct redis_server *);

/* For worker.count_waiting. In a loop no client has to make way for another, until the server
 * stops. Then all have to. */
int loop_count_waiting(const struct worker *);

/* Accepts the clients in the accept queue, 64 at most, so that a burst of new clients does not
 * starve the others. If descriptors or memory run out, no client is accepted for a tick, because
 * the kernel would report the same client again at once. */
void loop_accept(struct loop *);
bool loop_accepts(const struct loop *);
void loop_pause_accepting(struct loop *); /* for a tick */

/* Something has happened on a connection: it goes on as far as it can without waiting. If it asks
 * Redis, its command goes into a buffer that is sent at the end of the round. It joins the queue of
 * its state at once. Not for a connection that waits for Redis: it would ask a second time. */
void loop_advance(struct loop *, struct client *);

/* Milliseconds until the next deadline of all, as poll(2) and epoll_wait(2) take them; -1: none. */
int loop_timeout(const struct loop *);

/* The end of a round: expires every connection whose deadline has passed, sends the commands of all
 * clients in one write, and frees the connections that have ended. */
void loop_end_round(struct loop *);

/* The signalfd is readable: closes the listener. From now on a connection that owes no response is
 * closed after a tick, and the rest after STOP_MS. If Redis still owes a reply then, they also get
 * its time, so that a stored entry is answered. */
void loop_stop(struct loop *);
bool loop_is_over(const struct loop *);

/* Ends and frees all connections, and closes all but the listener, which loop_stop() has closed. */
void loop_close(struct loop *);

#endif
