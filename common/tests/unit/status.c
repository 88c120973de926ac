/* The status: what is on the board and in /proc, as JSON. */
#include "status.h"

#include "options.h"
#include "process.h"
#include "unit.h"

#include <signal.h>
#include <sys/prctl.h>

static struct options options;
static struct board *board;
static struct buffer out;

static void start(int slots)
{
    options = unit_options();
    options.workers = slots;
    board = board_open(slots);
    cr_assert(board);
    status_start(&options, board, "in a few words");
}

static void take_json(void)
{
    out.len = 0;
    status_write_json(&out);
    buffer_append(&out, "", 1);
    cr_assert(!out.failed);
}

static void finish(void)
{
    buffer_clear(&out, 0);
}

TestSuite(status, .timeout = 60, .fini = finish);

/* ---- slots --------------------------------------------------------------------------------- */

/* The main process claims a slot, and then makes the worker who is to have it. It may also have to
 * refuse a client itself, for whom it could make none. */
Test(status, a_worker_that_is_not_there_yet_is_left_out)
{
    start(2);
    board_claim(board, getpid());
    board_change_state(board_claim(board, getpid()), CONN_NONE, CONN_WRITING, clock_now_ms());
    take_json();
    expect_part("the first one", out.bytes, "\"slots\": [\n  {\"slot\": 1, ");
    expect_part("its state", out.bytes, "\"state\": \"writing\"");
}

/* The instant between two stores of board_change_state(), where its worker may be killed. */
Test(status, a_worker_is_in_one_state_even_while_it_moves)
{
    start(1);
    struct board_slot *slot = board_claim(board, 1);
    board_change_state(slot, CONN_NONE, CONN_READING, 0);
    slot->connections_by_state[CONN_WRITING]++;
    take_json();
    expect_part("state", out.bytes, "\"state\": \"reading\"");
    expect_part("sums", out.bytes, "\"reading\": 1, \"asking\": 0, \"writing\": 0");
}

/* Whatever a client asks for: the JSON can be read, and says what it was. It may be looked at with
 * curl, in a terminal. */
Test(status, any_byte_in_a_request_is_written_out)
{
    start(1);
    struct board_slot *slot = board_claim(board, 1);
    board_change_state(slot, CONN_NONE, CONN_WRITING, clock_now_ms());
    for (int byte = 1; byte < 256; byte++) {
        const char request[] = {'<', (char)byte, '>', '\0'};
        char told[40];
        bool plain = byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\';
        snprintf(told, sizeof(told), plain ? "\"<%c>\"" : "\"<\\u%04x>\"", byte);
        board_begin_request(slot, request, 3);
        take_json();
        expect_part("request", out.bytes, told);
        for (const char *at = out.bytes; *at; at++)
            cr_assert(*at == '\n' || (*at >= ' ' && *at <= '~'), "byte %d", byte);
    }
}
