/* The scoreboard: what a worker is at. */
#include "board.h"
#include "unit.h"

TestSuite(board, .timeout = 60);

static void expect_request(const struct board_slot *slot, const char *expected)
{
    char request[BOARD_REQUEST + 1];
    memset(request, 'x', sizeof(request));
    board_read_request(slot, request);
    expect_text("request", request, expected);
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

/* A thread writes a letter 60 times, and another one, again and again. */
static _Atomic bool written_enough;

static void *write_letters(void *slot)
{
    for (unsigned i = 0; !written_enough; i++) {
        char letters[BOARD_REQUEST];
        memset(letters, 'A' + (int)(i % 26), sizeof(letters));
        board_begin_request(slot, letters, sizeof(letters));
    }
    return NULL;
}

Test(board, a_reader_sees_all_of_a_request_or_nothing_whenever_its_writer_is_killed)
{
    char request[BOARD_REQUEST + 1], last = '\0';
    pthread_t writer;
    struct board *board = board_open(1);
    struct board_slot *slot = board_claim(board, 1);
    pthread_create(&writer, NULL, write_letters, slot);
    for (int changes = 0; changes < 50; last = request[0]) { /* both have run in turn, or at once */
        board_read_request(slot, request);
        size_t len = strlen(request);
        cr_assert(len == 0 || len == BOARD_REQUEST, "%s", request);
        cr_assert(strspn(request, (char[]){request[0], '\0'}) == len, "%s", request);
        changes += len > 0 && request[0] != last;
    }
    written_enough = true;
    pthread_join(writer, NULL);

    slot->request_version++; /* as if the writer had been killed in the middle */
    expect_request(slot, "");
    board_release(slot);
    board_begin_request(board_claim(board, 2), "GET /", 5);
    expect_request(slot, "GET /");
}
