#include "board.h"

#include <stddef.h>
#include <sys/mman.h>

_Static_assert(sizeof(struct board_slot) == 64, "a slot is one cache line");

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

struct board_slot *board_claim(struct board *board, int32_t owner)
{
    for (int i = 0; i < board->count; i++) {
        struct board_slot *slot = &board->slots[board->next];
        board->next = (board->next + 1) % board->count;
        if (atomic_load(&slot->owner) != 0)
            continue;
        for (int state = 0; state < BOARD_STATES; state++)
            atomic_store_explicit(&slot->connections_by_state[state], 0, memory_order_relaxed);
        atomic_store(&slot->owner, owner);
        return slot;
    }
    return NULL;
}

void board_release(struct board_slot *slot)
{
    atomic_store(&slot->owner, 0);
}

/* One writer, so a load and a store do: no other can come between them, and readers see the old
 * count or the new one. An atomic addition would lock the cache line for nothing. */
static void add(_Atomic uint32_t *count, uint32_t n)
{
    uint32_t now = atomic_load_explicit(count, memory_order_relaxed);
    atomic_store_explicit(count, now + n, memory_order_relaxed);
}

void board_move(struct board_slot *slot, int from, int to)
{
    if (from >= 0)
        add(&slot->connections_by_state[from], (uint32_t)-1);
    if (to >= 0)
        add(&slot->connections_by_state[to], 1);
}

void board_count(_Atomic uint64_t *counter)
{
    uint64_t now = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, now + 1, memory_order_relaxed);
}

static uint64_t sum(const struct board *board, size_t counter)
{
    uint64_t total = 0;
    for (int i = 0; i < board->count; i++) {
        const char *slot = (const char *)&board->slots[i];
        total += atomic_load_explicit((_Atomic uint64_t *)(slot + counter), memory_order_relaxed);
    }
    return total;
}

uint64_t board_requests(const struct board *board)
{
    return sum(board, offsetof(struct board_slot, requests));
}

uint64_t board_connections(const struct board *board)
{
    return sum(board, offsetof(struct board_slot, connections));
}
