#include "board.h"

#include "process.h"

#include <string.h>
#include <sys/mman.h>

/* A worker that is killed in the middle of a store must leave the old number or the new one, and no
 * lock. So the processor has to store a 64-bit counter at once. */
#if ATOMIC_LLONG_LOCK_FREE != 2
#error "this processor cannot store 64 bits at once: ZeroHTTPd's counters need that"
#endif

_Static_assert(sizeof(struct board_slot) % 64 == 0, "a slot is whole cache lines");
_Static_assert(BOARD_REQUEST < BOARD_REQUEST_WORDS * sizeof(uint64_t), "a NUL fits behind it");

struct board *board_open(int slots)
{
    size_t size = sizeof(struct board) + (size_t)slots * sizeof(struct board_slot);
    struct board *board =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return NULL;
    board->count = slots;
    return board;
}

/* ---- claiming ------------------------------------------------------------------------------ */

/* Takes one of the next few slots that have been used, or else a new one. So a claim costs little
 * until all have been used, and few workers leave most of a large board's memory untouched. The
 * last owner may have been killed at any instant: everything but the counters is reset. */
struct board_slot *board_claim(struct board *board, int32_t owner)
{
    enum { LOOKS = 8 };
    struct board_slot *slot = NULL;
    int used = board->used;
    int looks = used < board->count && used > LOOKS ? LOOKS : used;
    for (int i = 0; i < looks && (!slot || slot->owner != 0); i++) {
        board->next = (board->next + 1) % used;
        slot = &board->slots[board->next];
    }
    if (!slot || slot->owner != 0) {
        if (used == board->count)
            return NULL;
        slot = &board->slots[used];
        board->used = used + 1;
    }
    for (int state = 0; state < CONN_STATES; state++)
        slot->connections_by_state[state] = 0;
    slot->since = clock_now_ms();
    slot->request[0] = 0;
    slot->request_version += slot->request_version % 2;
    slot->owner = owner;
    return slot;
}

void board_release(struct board_slot *slot)
{
    slot->owner = 0;
}

/* ---- counting ------------------------------------------------------------------------------ */

/* There is one writer, so a load and a store are enough. No other store can come between them, and
 * readers see the old count or the new one. An atomic addition would lock the cache line for
 * nothing. */
static void add(_Atomic uint64_t *count, int n)
{
    uint64_t now = atomic_load_explicit(count, memory_order_relaxed);
    atomic_store_explicit(count, now + (uint64_t)n, memory_order_relaxed);
}

void board_change_state(struct board_slot *slot, enum conn_state from, enum conn_state to,
                        int64_t now)
{
    if (from == to)
        return; /* `since` stays at the time when it came */
    if (to != CONN_NONE)
        add(&slot->connections_by_state[to], 1);
    add(from == CONN_NONE ? &slot->connections : &slot->connections_by_state[from],
        from == CONN_NONE ? 1 : -1);
    atomic_store_explicit(&slot->since, now, memory_order_relaxed);
}

/* A worker that changes its state at this moment may seem free. */
bool board_has_free_worker(const struct board *board)
{
    for (int i = 0; i < board->used; i++) {
        uint64_t open = 0;
        for (int state = 0; state < CONN_STATES; state++)
            open += board->slots[i].connections_by_state[state];
        if (open == 0 && board->slots[i].owner != 0)
            return true;
    }
    return false;
}

/* ---- the request's text -------------------------------------------------------------------- */

/* A sequence lock. The version is odd while the text changes, and has a new even value afterwards.
 * A reader that finds the same even version before and after has read the text whole. Each word is
 * an atomic that is stored and loaded in order (release, acquire), which costs nothing on x86. So a
 * reader that sees a new word also sees the odd version. (Fences would do as well, but the thread
 * sanitizer does not know them.) */
void board_begin_request(struct board_slot *slot, const char *request, size_t len)
{
    uint64_t words[BOARD_REQUEST_WORDS];
    len = len < BOARD_REQUEST ? len : BOARD_REQUEST;
    size_t count = len / sizeof(words[0]) + 1; /* the last word has at least a NUL */
    words[count - 1] = 0;
    memcpy(words, request, len);

    uint32_t version = atomic_load_explicit(&slot->request_version, memory_order_relaxed);
    atomic_store_explicit(&slot->request_version, version + 1, memory_order_relaxed);
    for (size_t i = 0; i < count; i++)
        atomic_store_explicit(&slot->request[i], words[i], memory_order_release);
    atomic_store_explicit(&slot->request_version, version + 2, memory_order_release);
}

/* Needs no version, because one word makes the text empty. */
void board_end_request(struct board_slot *slot, int status)
{
    if (status > 0)
        add(&slot->responses[status / 100 - 2], 1);
    atomic_store_explicit(&slot->request[0], 0, memory_order_relaxed);
}

void board_read_request(const struct board_slot *slot, char request[BOARD_REQUEST + 1])
{
    enum { TRIES = 8 }; /* writing takes nanoseconds, unless the writer sleeps, or is dead */
    uint64_t words[BOARD_REQUEST_WORDS];
    for (int tries = 0; tries < TRIES; tries++) {
        uint32_t before = atomic_load_explicit(&slot->request_version, memory_order_acquire);
        for (size_t i = 0; i < BOARD_REQUEST_WORDS; i++)
            words[i] = atomic_load_explicit(&slot->request[i], memory_order_acquire);
        uint32_t after = atomic_load_explicit(&slot->request_version, memory_order_relaxed);
        if (before % 2 == 0 && before == after) {
            memcpy(request, words, BOARD_REQUEST);
            request[BOARD_REQUEST] = '\0';
            return;
        }
    }
    request[0] = '\0';
}

/* ---- sums ---------------------------------------------------------------------------------- */

uint64_t board_requests(const struct board *board)
{
    uint64_t total = 0;
    for (int i = 0; i < board->used; i++)
        for (int kind = 0; kind < BOARD_CLASSES; kind++)
            total += board->slots[i].responses[kind];
    return total;
}

uint64_t board_connections(const struct board *board)
{
    uint64_t total = 0;
    for (int i = 0; i < board->used; i++)
        total += board->slots[i].connections;
    return total;
}
