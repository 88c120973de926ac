#include "polite.h"

#include "clock.h"
#include "memory.h"

enum {
    MOST_IN_A_ROW = 100,  /* requests that had come before their turn */
    CROWD = 100,          /* so many clients at once come from one program that opens them all */
    LEAST_RATE = 8 * 1024 /* bytes a second */
};

/* No request is cut off on a connection that was announced as kept. So a request that has come is
 * answered, and after a hundred of them it is the others' turn. The waiting clients are not counted
 * any earlier, because that would change nothing. */
bool polite_may_keep(const struct worker *worker, bool next_has_come, int *in_a_row)
{
    if (next_has_come && ++*in_a_row < MOST_IN_A_ROW)
        return true;
    *in_a_row = 0;
    return !memory_is_short() && worker->claim_waiting_clients(worker) == 0;
}

/* A program that opens a crowd of connections needs a while before it has sent something on each. A
 * browser's spare connection may be silent for ever. */
bool polite_must_make_way(const struct worker *worker, bool is_new)
{
    if (memory_is_short())
        return true;
    int waiting = worker->claim_waiting_clients(worker);
    return waiting > 0 && !(is_new && waiting > CROWD);
}

/* A client that reads a byte now and then makes progress, so its deadline never passes. While other
 * clients wait, it has to take LEAST_RATE of its responses, on average over --timeout. The time
 * between two responses, when the next request has come already, does not count: there is nothing
 * to take. */
bool polite_is_too_slow(const struct worker *worker, struct pace *pace, int64_t taken)
{
    enum { LONGEST = 2 * TICK_MS }; /* between two looks, if the server itself was not held up */
    bool sends = taken >= 0;
    int64_t now = clock_now_ms(), passed = now - pace->last;
    if (pace->last != 0)
        pace->ms += passed < LONGEST ? passed : LONGEST;
    else if (pace->ms == 0 && sends)
        pace->taken = taken;
    pace->last = sends ? now : 0;
    if (!sends || pace->ms < worker->options->timeout_ms)
        return false;
    bool slow = (taken - pace->taken) * 1000 < pace->ms * LEAST_RATE;
    *pace = (struct pace){.last = now, .taken = taken};
    return slow && worker->claim_waiting_clients(worker) > 0;
}
