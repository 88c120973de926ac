/* board: the scoreboard. It shows what every worker is doing, in shared memory.
 *
 *  - A worker is a process, a thread, or an event loop that serves clients. Each
 *    has a slot of whole cache lines, so that no two workers write to one line.
 *  - Only its worker writes to a slot that is claimed. Any process or thread may read it at any
 *    time, without a lock.
 *  - Counters never go back. The next owner of a slot counts on where the last
 *    one stopped, so the sums over all slots hold for the whole run.
 *  - A worker may be killed at any instant. A number that it was writing is then
 *    either old or new. A request's text has a version that tells if it is whole.
 *  - The memory is mapped before the first fork, and never unmapped.
 */
#ifndef BOARD_H
#define BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a connection waits for. /status.json shows the states from CONN_FRESH to CONN_LINGERING. */
enum conn_state {
    CONN_NONE = -1, /* not opened yet */
    CONN_FRESH,     /* accepted; waits for its very first byte */
    CONN_IDLE,      /* between requests: waits for the next one's first byte */
    CONN_READING,   /* waits for the rest of a request */
    CONN_ASKING,    /* waits for Redis to answer app.ask */
    CONN_WRITING,   /* waits for room in the socket: for the rest of a response, or for the
                       response to a request that has come already */
    CONN_LINGERING, /* response sent; drops what the client still sends, until it has acknowledged
                       everything, so that no reset eats the response */
    CONN_DONE,      /* waits for conn_close() */
    CONN_STATES,
};

enum {
    BOARD_CLASSES = 4,  /* of responses: 2xx, 3xx, 4xx, 5xx */
    BOARD_REQUEST = 60, /* bytes of a request that are shown */
    BOARD_REQUEST_WORDS = 8,
};

/* No field says what a worker does: it is the state whose count is not zero. An event loop has many
 * connections, and is in no state. */
struct board_slot {
    _Alignas(64) _Atomic int32_t owner; /* process or thread id; 0: free */
    _Atomic uint32_t request_version;   /* odd while `request` is being written */
    atomic_bool is_loop;                /* its worker is an event loop */
    _Atomic int64_t since; /* clock_now_ms() of the last change of state, or of the claim */
    _Atomic uint64_t connections_by_state[CONN_STATES];
    _Atomic uint64_t connections;              /* accepted */
    _Atomic uint64_t responses[BOARD_CLASSES]; /* sent, refusals included */
    _Atomic uint64_t request[BOARD_REQUEST_WORDS];
};

struct board {
    int count;        /* of slots */
    int next;         /* where board_claim() looks first; only it uses this */
    _Atomic int used; /* slots [0, used) have had an owner; the memory of the rest is untouched */
    _Atomic int waiting; /* 02, 04: this many clients wait, and no worker can be made for them */
    struct board_slot slots[];
};

/* Maps a board with so many slots. Returns NULL with errno set if that fails. */
struct board *board_open(int slots);

/* Gives a free slot to `owner`, and clears everything in it but the counters. Returns NULL if all
 * slots are taken. Only one thread of one process may claim slots. Any process or thread may
 * release one. */
struct board_slot *board_claim(struct board *, int32_t owner);
void board_release(struct board_slot *);

/* A connection of this slot's worker changes its state at `now` (clock_now_ms()). From CONN_NONE it
 * is a new one, and is counted; to CONN_NONE it is closed. */
void board_change_state(struct board_slot *, enum conn_state from, enum conn_state to, int64_t now);

/* The worker begins to answer a request, and has answered it. `request` may hold any bytes. They
 * are shown up to the first NUL, at most BOARD_REQUEST of them. `status` (200 to 599) counts a
 * response that was sent whole; 0: it was not. */
void board_begin_request(struct board_slot *, const char *request, size_t len);
void board_end_request(struct board_slot *, int status);

/* Is there a worker without a connection? It is about to accept one. */
bool board_has_free_worker(const struct board *);

/* For readers: the request as a string. It is "" if there is none, if its writer was killed in the
 * middle, or if the writer began another one during every attempt to read it. */
void board_read_request(const struct board_slot *, char request[BOARD_REQUEST + 1]);

/* Sums over all slots. */
uint64_t board_requests(const struct board *);
uint64_t board_connections(const struct board *);

#endif
