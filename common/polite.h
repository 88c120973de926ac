/* polite: which connection makes way for a client that waits, and when.
 *
 *  - A worker serves one connection at a time (chapters 1 to 5). As long as
 *    nobody else wants it, a client may keep it.
 *  - While clients wait, or memory is short, a connection is kept for nobody: it
 *    ends when it owes no response, or when its client takes a response too slowly.
 *  - In an event loop no connection is in another's way. Its worker says that
 *    nobody waits, until the server stops.
 */
#ifndef POLITE_H
#define POLITE_H

#include "worker.h"

#include <stdbool.h>
#include <stdint.h>

/* May the connection be kept after the response that begins now? `next_has_come`: its next request
 * has come whole already. `in_a_row` counts those, for one connection. */
bool polite_may_keep(const struct worker *, bool next_has_come, int *in_a_row);

/* Must a silent connection, which owes no response, make way? `is_new`: it was accepted a moment
 * ago. This claims the waiting clients (chapter 2), so it is asked only of a connection that may
 * be closed. Before it is, the caller looks once more whether a request has come. If it stays, the
 * parent tells of the clients again. */
bool polite_must_make_way(const struct worker *, bool is_new);

/* How long a worker has waited for its client to take responses, and what the client had taken of
 * them when that began. It begins as {0}. */
struct pace {
    int64_t last; /* clock_now_ms() of the last look; 0: no response was being sent then */
    int64_t ms;
    int64_t taken;
};

/* Does the client take its responses too slowly, while others wait? To be called after each turn.
 * `taken`: the bytes of all responses that it has acknowledged, or -1 if none is being sent. */
bool polite_is_too_slow(const struct worker *, struct pace *, int64_t taken);

#endif
