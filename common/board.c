#include "board.h"

#include "clock.h"

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

/* The slot's last owner may have been killed at any instant: everything but the counters is
 * reset. */
static struct board_slot *take(struct board_slot *slot, int32_t owner)
{
    for (int state = 0; state < BOARD_STATES; state++)
        atomic_store_explicit(&slot->connections_by_state[state], 0, memory_order_relaxed);
    atomic_store_explicit(&slot->since, clock_now_ms(), memory_order_relaxed);
    atomic_store_explicit(&slot->request[0], 0, memory_order_relaxed);
    uint32_t version = atomic_load_explicit(&slot->request_version, memory_order_relaxed);
    atomic_store_explicit(&slot->request_version, version + version % 2, memory_order_release);
    atomic_store(&slot->owner, owner);
    return slot;
}

enum { LOOKS = 8 };

/* Takes one of the next few slots that have been used, or else a new one. So a claim costs little
 * however many are taken, and few workers leave most of a large board's memory untouched. */
struct board_slot *board_claim(struct board *board, int32_t owner)
{
    int used = board->used;
    int looks = used < board->count && used > LOOKS ? LOOKS : used;
    for (int i = 0; i < looks; i++) {
        board->next = (board->next + 1) % used;
        if (atomic_load(&board->slots[board->next].owner) == 0)
            return take(&board->slots[board->next], owner);
    }
    if (used == board->count)
        return NULL;
    board->used = used + 1;
    return take(&board->slots[used], owner);
}

void board_release(struct board_slot *slot)
{
    atomic_store(&slot->owner, 0);
}

/* ---- counting ------------------------------------------------------------------------------ */

/* There is one writer, so a load and a store are enough. No other store can come between them, and
 * readers see the old count or the new one. An atomic addition would lock the cache line for
 * nothing. */
static void add(_Atomic uint32_t *count, uint32_t n)
{
    uint32_t now = atomic_load_explicit(count, memory_order_relaxed);
    atomic_store_explicit(count, now + n, memory_order_relaxed);
}

static void add_one(_Atomic uint64_t *counter)
{
    uint64_t now = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, now + 1, memory_order_relaxed);
}

void board_change_state(struct board_slot *slot, int from, int to, int64_t now)
{
    if (from == to)
        return; /* `since` stays at the time when it came */
    add(&slot->connections_by_state[to], 1);
    if (from >= 0)
        add(&slot->connections_by_state[from], (uint32_t)-1);
    atomic_store_explicit(&slot->since, now, memory_order_relaxed);
}

void board_leave(struct board_slot *slot, int from)
{
    add(&slot->connections_by_state[from], (uint32_t)-1);
    board_end_request(slot);
}

void board_count_connection(struct board_slot *slot)
{
    add_one(&slot->connections);
}

void board_count_response(struct board_slot *slot, int status)
{
    add_one(&slot->responses[status / 100 - 2]);
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
void board_end_request(struct board_slot *slot)
{
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

static uint64_t look_at(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

uint64_t board_slot_requests(const struct board_slot *slot)
{
    uint64_t total = 0;
    for (int i = 0; i < BOARD_CLASSES; i++)
        total += look_at(&slot->responses[i]);
    return total;
}

uint64_t board_responses(const struct board *board, int status_class)
{
    uint64_t total = 0;
    for (int i = 0; i < board->used; i++)
        total += look_at(&board->slots[i].responses[status_class]);
    return total;
}

uint64_t board_requests(const struct board *board)
{
    uint64_t total = 0;
    for (int i = 0; i < BOARD_CLASSES; i++)
        total += board_responses(board, i);
    return total;
}

uint64_t board_connections(const struct board *board)
{
    uint64_t total = 0;
    for (int i = 0; i < board->used; i++)
        total += look_at(&board->slots[i].connections);
    return total;
}
