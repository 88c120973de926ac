/* Deadlines: how long a server waits for a client, at least and at most. The least is the time that
 * the client was promised; the most is three seconds more, for the tick of chapters 1 to 5 and for
 * a busy machine.
 *
 * What follows --timeout is in net.h: a fresh connection that says nothing gets half of it,
 * lingering a tenth.
 */
#include "tests/harness/harness.h"

#define GET_HOME "GET / HTTP/1.1\r\nHost: test\r\n\r\n"

enum {
    EARLY_MS = 100, /* a byte on its way is in two sockets, and a server's clock is coarse */
    LATE_MS = 3000,
};

static void check_deadline(int64_t start, int64_t deadline_ms)
{
    check_took(start, deadline_ms - EARLY_MS, deadline_ms + patience(LATE_MS));
}

/* ---- a request ----------------------------------------------------------------------------- */

/* Says a request a byte at a time, and then the last byte of it again and again, never too late
 * for the gap between two to be noticed. Returns when there is an answer. */
static void drip(struct client *c, const char *request)
{
    int64_t limit = now_ms() + patience(SOON_MS);
    for (const char *at = request; !has_heard(c); poll(NULL, 0, 10)) {
        check(now_ms() < limit, "it was not cut off");
        say_bytes(c, at, 1);
        at += at[1] != '\0';
    }
}

/* So has the second request of a connection. */
static void check_cut_off(const char *request, bool is_second)
{
    struct client *c = dial();
    if (is_second) {
        say(c, GET_HOME);
        check(hear(c)->kept, "not kept");
    }
    int64_t start = now_ms();
    drip(c, request);
    check_deadline(start, 1000);
    check(hear(c)->status == 408 && !c->answer.kept, "%d to %s", c->answer.status, request);
    hang_up(c);
}

EVERY_SERVER(a_request_that_takes_too_long_is_cut_off_by_its_total_with_408)
{
    static const char *const requests[] = {
        "GET /aaaa",
        "GET / HTTP/1.1\r\nHost: test\r\nX: a",
        "POST /guestbook HTTP/1.1\r\nHost: test\r\nContent-Length: 9999\r\n\r\na",
        "POST /guestbook HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\nff\r\na",
    };
    start_server("--timeout", "1", "--keep-alive", "60");
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
        check_cut_off(requests[i], i % 2);
}

/* An empty line before a request is skipped (RFC 9112, 2.2), but not for ever: with its first byte
 * a request has begun, and is answered when its time is over. */
EVERY_SERVER(an_empty_line_is_the_first_byte_of_a_request)
{
    start_server("--timeout", "1");
    int64_t start = now_ms();
    struct client *c = dial_and_say("\r\n");
    check(hear(c)->status == 408, "status %d", c->answer.status);
    check_deadline(start, 1000);
}

/* ---- silence ------------------------------------------------------------------------------- */

static void check_fresh(const char *keep_alive)
{
    start_server("--timeout", "1", "--keep-alive", keep_alive);
    int64_t start = now_ms();
    struct client *c = dial();
    hear_end(c);
    check_deadline(start, 500);
    hang_up(c);
    stop_server();
}

EVERY_SERVER(a_new_connection_that_says_nothing_is_closed_silently_whatever_keep_alive_is)
{
    check_fresh("0");
    check_fresh("60");
}

EVERY_SERVER(a_kept_connection_is_closed_silently_when_its_time_is_over)
{
    start_server("--timeout", "60", "--keep-alive", "0.8");
    struct client *c = dial();
    int64_t start = now_ms(); /* before: it idles as soon as it has sent its response */
    say(c, GET_HOME);
    check(hear(c)->kept, "not kept");
    hear_end(c);
    check_deadline(start, 800);
}

/* ---- clients that do not read -------------------------------------------------------------- */

/* It takes some of its response now and then: that is progress, but less than 8 KiB a second. */
EVERY_SERVER(who_takes_a_response_too_slowly_is_cut_off)
{
    enum { SIZE = 32 * 1024, SOME_BYTES = 1000, EVERY_MS = 300 };
    start_server("--timeout", "1", "--root", make_root_with_file(SIZE));
    struct client *slow = dial_with_room(SOME_BYTES);
    int64_t start = now_ms();
    say(slow, "GET /file.bin HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    check(hear_slowly(slow, SOME_BYTES, EVERY_MS) < SIZE, "it got all of it");
    check_took(start, 4000, patience(9000));
}

/* ---- lingering ----------------------------------------------------------------------------- */

/* Has a request refused whose body goes on and on, and says so much of it every 10 ms. */
static void check_lingering(size_t piece, int pause_ms)
{
    static char body[64 * 1024];
    struct client *c = dial();
    int64_t start = now_ms(); /* before: it lingers as soon as it has sent its response */
    say(c, "POST /guestbook HTTP/1.1\r\nHost: test\r\nContent-Length: 99999999\r\n\r\n");
    check(hear(c)->status == 413, "status %d", c->answer.status);
    while (try_to_say(c, body, piece)) {
        check(now_ms() - start < patience(SOON_MS), "it listens for ever to what it has refused");
        poll(NULL, 0, pause_ms);
    }
    check_deadline(start, 500);
    hang_up(c);
}

EVERY_SERVER(a_refused_client_that_goes_on_is_listened_to_for_its_time_and_no_longer)
{
    start_server("--timeout", "5");
    check_lingering(1, 10);
    check_lingering(64 * 1024, 0);
}

EVERY_SERVER(a_refused_client_that_leaves_is_listened_to_no_longer)
{
    struct inet_diag_msg end;
    start_server("--timeout", "60"); /* six seconds for lingering */
    struct client *c = dial();
    int64_t start = now_ms();
    say(c, "nonsense\r\n\r\n");
    check(hear(c)->status == 400, "status %d", c->answer.status);
    say_no_more(c);
    wait_until(!find_server_end(c, &end) || end.idiag_inode == 0, SOON_MS,
               "it is still listened to");
    check_took(start, 0, patience(5000));
}

/* ---- nobody to serve ----------------------------------------------------------------------- */

EVERY_SERVER(a_server_without_anything_to_do_sleeps)
{
    enum { IDLE = 7 }; /* one less than chapters 3 and 5 have workers */
    struct client *idle[IDLE];
    int count = server_is("iterative") ? 1 : IDLE;
    start_redis();
    start_server("--keep-alive", "60");
    check_it_sleeps(1500, "nobody there");
    for (int i = 0; i < count; i++) {
        idle[i] = dial();
        say(idle[i], "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
        check(hear(idle[i])->status == 200 && idle[i]->answer.kept, "%d", idle[i]->answer.status);
    }
    check_it_sleeps(1500, "with kept clients");
}
