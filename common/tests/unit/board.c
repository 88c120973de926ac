/* The scoreboard: slots, counts, and that they are shared with children. */
#include "board.h"
#include "clock.h"
#include "unit.h"

#include <signal.h>
#include <sys/prctl.h>

TestSuite(board, .timeout = 30);

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

/* Workers come and go by the thousand (chapters 2 and 4): the memory they have touched is that of
 * as many as there were at once, and a few. */
Test(board, few_workers_use_few_slots_of_many)
{
    enum { AT_ONCE = 10 };
    struct board *board = board_open(1000);
    struct board_slot *slots[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++)
        slots[i] = board_claim(board, 1);
    for (int i = 0; i < 5000; i++) {
        int which = i * 7 % AT_ONCE;
        board_release(slots[which]);
        slots[which] = board_claim(board, i + 1);
        cr_assert(slots[which]);
        expect_number("owner", slots[which]->owner, i + 1);
    }
    cr_expect(board->used <= 4 * AT_ONCE, "%d slots", board->used);
    while (board_claim(board, 1))
        ;
    expect_number("and in the end", board->used, 1000);
    for (int i = 0; i < 1000; i++)
        cr_assert(board->slots[i].owner != 0, "slot %d is free", i);
}

Test(board, a_claim_clears_states_but_not_counters)
{
    struct board *board = board_open(1);
    struct board_slot *slot = board_claim(board, 1);
    board_change_state(slot, -1, 2, 0);
    board_count_response(slot, 200);
    board_count_connection(slot);
    board_release(slot);
    slot = board_claim(board, 2);
    for (int state = 0; state < BOARD_STATES; state++)
        expect_number("state", slot->connections_by_state[state], 0);
    expect_number("requests", board_requests(board), 1);
    expect_number("connections", board_connections(board), 1);
}

Test(board, knows_since_when)
{
    struct board *board = board_open(1);
    int64_t before = clock_now_ms();
    struct board_slot *slot = board_claim(board, 1);
    cr_expect(slot->since >= before && slot->since <= clock_now_ms(), "claimed");
    board_change_state(slot, -1, 2, 1000);
    expect_number("came", slot->since, 1000);
    board_change_state(slot, 2, 2, 2000);
    expect_number("stayed", slot->since, 1000);
    board_change_state(slot, 2, 4, 3000);
    expect_number("moved", slot->since, 3000);
    board_leave(slot, 4);
    expect_number("free since then", slot->since, 3000);
}

/* ---- what a worker is at ------------------------------------------------------------------- */

static void expect_request(const struct board_slot *slot, const char *expected)
{
    char request[BOARD_REQUEST + 1];
    memset(request, 'x', sizeof(request));
    board_read_request(slot, request);
    expect_text("request", request, expected);
}

Test(board, shows_the_request_from_its_beginning_to_its_end)
{
    struct board_slot *slot = board_claim(board_open(1), 1);
    expect_request(slot, "");
    board_begin_request(slot, "GET /guestbook HTTP/1.1", strlen("GET /guestbook"));
    expect_request(slot, "GET /guestbook");
    board_begin_request(slot, "GET /", 5);
    expect_request(slot, "GET /");
    board_end_request(slot);
    expect_request(slot, "");
    board_begin_request(slot, "GET /a", 6);
    board_change_state(slot, -1, 0, 0);
    board_leave(slot, 0);
    expect_request(slot, "");
}

Test(board, shows_any_request_whole_or_its_first_60_bytes)
{
    char text[100], expected[100];
    struct board_slot *slot = board_claim(board_open(1), 1);
    for (size_t len = 0; len < sizeof(text); len++) {
        for (size_t i = 0; i < len; i++)
            text[i] = expected[i] = (char)('a' + (i + len) % 26);
        expected[len < BOARD_REQUEST ? len : BOARD_REQUEST] = '\0';
        board_begin_request(slot, text, len);
        expect_request(slot, expected);
    }
}

/* As a worker leaves its slot that is killed between two words of it. */
Test(board, half_a_request_of_a_killed_worker_is_not_shown)
{
    struct board *board = board_open(1);
    struct board_slot *slot = board_claim(board, 1);
    board_begin_request(slot, "GET /a-path-of-several-words", 28);
    slot->request_version++;
    memcpy((char *)slot->request, "POST /an", 8);
    expect_request(slot, "");
    board_release(slot);
    cr_assert(board_claim(board, 2) == slot);
    expect_request(slot, "");
    board_begin_request(slot, "GET /b", 6);
    expect_request(slot, "GET /b");
}

/* A process writes a letter 60 times, and another one, and is killed; again and again: whoever
 * reads meanwhile sees one letter, or nothing, and never waits for the dead. */
static void write_letters(struct board_slot *slot)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* whatever becomes of the test */
    for (unsigned i = 0;; i++) {
        char letters[BOARD_REQUEST];
        memset(letters, 'A' + (int)(i % 26), sizeof(letters));
        board_begin_request(slot, letters, sizeof(letters));
        if (i % 5 == 0)
            board_end_request(slot);
    }
}

static void expect_one_letter(const struct board_slot *slot, int *seen)
{
    char request[BOARD_REQUEST + 1];
    board_read_request(slot, request);
    size_t len = strlen(request);
    cr_assert(len == 0 || len == BOARD_REQUEST, "%s", request);
    cr_assert(len == 0 || strspn(request, (char[]){request[0], '\0'}) == len, "%s", request);
    *seen += len > 0;
}

Test(board, a_reader_sees_all_of_a_request_or_nothing_whenever_its_writer_is_killed)
{
    struct board *board = board_open(1);
    int seen = 0;
    unsigned odd = 0;
    for (int round = 0; round < 200; round++) {
        struct board_slot *slot = board_claim(board, 1);
        pid_t writer = fork();
        cr_assert(writer >= 0);
        if (writer == 0)
            write_letters(slot);
        int before = seen;
        int64_t limit = clock_now_ms() + PATIENCE_MS;
        for (int i = 0; i < 200 || (seen == before && clock_now_ms() < limit); i++)
            expect_one_letter(slot, &seen);
        cr_expect(seen > before, "nothing was ever seen");
        kill(writer, SIGKILL);
        wait_for(writer);
        odd += slot->request_version % 2;
        expect_one_letter(slot, &seen);
        board_release(slot);
    }
    cr_log_info("killed in the middle: %u of 200, %d letters seen\n", odd, seen);
}
