/* board: the scoreboard. What every worker is doing, in memory they all share.
 *
 *  - A worker is whatever serves clients: a process, a thread, or an event
 *    loop. Each has a slot of whole cache lines, so that none slows another down.
 *  - A slot has one writer, its worker; anybody may read, at any time, without
 *    a lock. Counters never go back, so that a slot's next owner goes on where
 *    the last one stopped and the sums over all slots hold for the whole run.
 *  - A worker may be killed at any instant. What it was writing then is one
 *    number, old or new, or the request's text, which its version tells.
 *  - The memory is mapped before anything forks, and lives until the program ends.
 */
#ifndef BOARD_H
#define BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BOARD_STATES = 8,   /* room for enum conn_state */
    BOARD_CLASSES = 4,  /* of responses: 2xx, 3xx, 4xx, 5xx */
    BOARD_REQUEST = 60, /* bytes of a request that are shown */
    BOARD_REQUEST_WORDS = 8,
};

/* What a worker does needs no field: it is the state whose count is not zero. A loop has many. */
struct board_slot {
    _Alignas(64) _Atomic int32_t owner; /* process or thread id; 0: free */
    _Atomic uint32_t request_version;   /* odd while `request` is being written */
    _Atomic int64_t since; /* clock_now_ms() of the last change; of the claim, before any */
    _Atomic uint32_t connections_by_state[BOARD_STATES];
    _Atomic uint64_t connections;              /* accepted */
    _Atomic uint64_t responses[BOARD_CLASSES]; /* sent, refusals included */
    _Atomic uint64_t request[BOARD_REQUEST_WORDS];
};

struct board {
    int count;           /* of slots */
    int next;            /* where board_claim() looks first; only its caller's business */
    _Atomic int used;    /* slots [0, used) have had an owner; nobody touches the others' memory */
    _Atomic int waiting; /* 02: every child that may live does, and so many clients wait: a notice
                            that the parent puts up, and one child takes down */
    struct board_slot slots[];
};

/* Maps a board with that many slots; NULL with errno set. Never freed. */
struct board *board_open(int slots);

/* Gives a free slot to `owner` and clears all but its counters; NULL if there is none. One thread
 * of one process claims; anybody may release. */
struct board_slot *board_claim(struct board *, int32_t owner);
void board_release(struct board_slot *);

/* A connection of this slot's worker enters a state, at `now`; `from` is -1 for a new one. */
void board_change_state(struct board_slot *, int from, int to, int64_t now);
/* And its last one: it is closed. Its worker has had nobody since it entered that. */
void board_leave(struct board_slot *, int from);

/* The worker begins to answer a request, and is done with it. What is shown of it may be any
 * bytes; they end at the first NUL, or after BOARD_REQUEST. */
void board_begin_request(struct board_slot *, const char *request, size_t len);
void board_end_request(struct board_slot *);

/* A client was accepted; a response, of status 200 to 599, was sent whole. */
void board_count_connection(struct board_slot *);
void board_count_response(struct board_slot *, int status);

/* For readers. The request as a string; "" if there is none, or if it cannot be had: its writer was
 * killed in the middle, or writes another one at every look. */
void board_read_request(const struct board_slot *, char request[BOARD_REQUEST + 1]);
uint64_t board_slot_requests(const struct board_slot *);

/* Sums over all slots. */
uint64_t board_requests(const struct board *);
uint64_t board_connections(const struct board *);
uint64_t board_responses(const struct board *, int status_class); /* 0 is 2xx */

#endif
