/* The scoreboard: slots, counts, and that they are shared with children. */
#include "board.h"
#include "unit.h"

TestSuite(board, .timeout = 30);

Test(board, opens_empty)
{
    struct board *board = board_open(3);
    cr_assert(board);
    expect_number("board", board->count, 3);
    expect_number("board", board_requests(board), 0);
    expect_number("board", board_connections(board), 0);
    for (int i = 0; i < 3; i++)
        expect_number("slot", board->slots[i].owner, 0);
}

Test(board, each_slot_is_claimed_once)
{
    struct board *board = board_open(3);
    struct board_slot *slots[3];
    for (int i = 0; i < 3; i++) {
        slots[i] = board_claim(board, 100 + i);
        cr_assert(slots[i]);
        expect_number("owner", slots[i]->owner, 100 + i);
        expect_number("a cache line", (uintptr_t)slots[i] % 64, 0);
    }
    cr_expect(slots[0] != slots[1] && slots[1] != slots[2] && slots[0] != slots[2]);
    cr_expect(!board_claim(board, 200), "there is no fourth");
}

Test(board, a_released_slot_is_claimed_again)
{
    struct board *board = board_open(3);
    board_claim(board, 1);
    struct board_slot *second = board_claim(board, 2);
    board_claim(board, 3);
    board_release(second);
    expect_number("released", second->owner, 0);
    cr_expect(board_claim(board, 4) == second);
    expect_number("claimed", second->owner, 4);
    cr_expect(!board_claim(board, 5));
}

Test(board, a_claim_clears_states_but_not_counters)
{
    struct board *board = board_open(1);
    struct board_slot *slot = board_claim(board, 1);
    board_move(slot, -1, 2);
    board_count(&slot->requests);
    board_count(&slot->connections);
    board_release(slot);
    slot = board_claim(board, 2);
    for (int state = 0; state < BOARD_STATES; state++)
        expect_number("state", slot->connections_by_state[state], 0);
    expect_number("requests", board_requests(board), 1);
    expect_number("connections", board_connections(board), 1);
}

Test(board, moves_connections_between_states)
{
    struct board *board = board_open(1);
    struct board_slot *slot = board_claim(board, 1);
    board_move(slot, -1, 0);
    board_move(slot, -1, 0);
    board_move(slot, 0, BOARD_STATES - 1);
    expect_number("left", slot->connections_by_state[0], 1);
    expect_number("entered", slot->connections_by_state[BOARD_STATES - 1], 1);
    board_move(slot, 0, 0);
    expect_number("stayed", slot->connections_by_state[0], 1);
    board_move(slot, 0, -1);
    board_move(slot, BOARD_STATES - 1, -1);
    for (int state = 0; state < BOARD_STATES; state++)
        expect_number("gone", slot->connections_by_state[state], 0);
}

Test(board, sums_over_all_slots)
{
    struct board *board = board_open(4);
    for (int i = 0; i < 4; i++) {
        struct board_slot *slot = board_claim(board, i + 1);
        for (int n = 0; n <= i; n++)
            board_count(&slot->requests);
        board_count(&slot->connections);
        if (i % 2)
            board_release(slot); /* what is gone counts on */
    }
    expect_number("1 + 2 + 3 + 4", board_requests(board), 10);
    expect_number("one each", board_connections(board), 4);
}

static void count_one(const void *slot)
{
    board_count(&((struct board_slot *)slot)->requests);
    board_move((struct board_slot *)slot, -1, 3);
}

Test(board, is_shared_with_children)
{
    struct board *board = board_open(1);
    struct board_slot *slot = board_claim(board, 1);
    expect_number("the child", run_apart(count_one, slot).status, 0);
    expect_number("what it counted", board_requests(board), 1);
    expect_number("where it moved", slot->connections_by_state[3], 1);
}
