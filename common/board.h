/* board: the scoreboard. What every worker is doing, in memory they all share.
 *
 *  - A worker is whatever serves clients: a process, a thread, or an event
 *    loop. Each has a slot of one cache line, so that none slows another down.
 *  - A slot has one writer, its worker; anybody may read, at any time, without
 *    a lock. Counters never go back, so that a slot's next owner goes on where
 *    the last one stopped and the sums over all slots hold for the whole run.
 *  - The memory is mapped before anything forks, and lives until the program ends.
 */
#ifndef BOARD_H
#define BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { BOARD_STATES = 8 }; /* room for enum conn_state */

struct board_slot {
    _Alignas(64) _Atomic int32_t owner; /* process or thread id; 0: free */
    _Atomic uint32_t connections_by_state[BOARD_STATES];
    _Atomic uint64_t requests;    /* answered, refusals included */
    _Atomic uint64_t connections; /* accepted */
};

struct board {
    int count;            /* of slots */
    int next;             /* where board_claim() looks first; only its caller's business */
    _Atomic bool crowded; /* 02: every child that may live does, and somebody waits */
    struct board_slot slots[];
};

/* Maps a board with that many slots; NULL with errno set. Never freed. */
struct board *board_open(int slots);

/* Gives a free slot to `owner` and clears its states; NULL if there is none. One thread of one
 * process claims; anybody may release. */
struct board_slot *board_claim(struct board *, int32_t owner);
void board_release(struct board_slot *);

/* A connection of this slot's worker enters and leaves a state, -1 for none. */
void board_move(struct board_slot *, int from, int to);

/* Adds one to a counter that only the slot's worker writes. */
void board_count(_Atomic uint64_t *counter);

/* Sums over all slots. */
uint64_t board_requests(const struct board *);
uint64_t board_connections(const struct board *);

#endif
