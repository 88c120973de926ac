/* A response is under way until the client's kernel has acknowledged all of it. If the server
 * closes before that and the client says another word, the kernel answers with a reset, which
 * destroys the rest (RFC 9112, 9.6). The clients here have little room, so the server's kernel
 * holds most of the response while they do not read.
 */
#include "tests/harness/harness.h"

#define PICTURE          "public/tux.png"
#define GET_PART         "GET /tux.png HTTP/1.1\r\nHost: test\r\nRange: bytes=0-8191\r\n\r\n"
#define GET_HOME         "GET / HTTP/1.1\r\nHost: test\r\n\r\n"
#define GET_FILE(fields) "GET /file.bin HTTP/1.1\r\nHost: test\r\n" fields "\r\n"

enum { LITTLE_ROOM = 4096, PART = 8192 };

/* A client that has not read its part of a file, which the server's kernel has taken whole. */
static struct client *ask_without_reading(const char *request)
{
    struct client *c = dial_with_room(LITTLE_ROOM);
    say(c, request);
    wait_until(count_written(c) > PART, SOON_MS, "%lld bytes are written",
               (long long)count_written(c));
    return c;
}

static void check_part(const struct answer *answer)
{
    check(answer->status == 206 && answer->body_len == PART &&
              memcmp(answer->body, read_whole(PICTURE, NULL), PART) == 0,
          "status %d, %zu bytes", answer->status, answer->body_len);
}

EVERY_SERVER(a_next_request_destroys_no_response_that_was_the_last)
{
    start_server("--keep-alive", "0");
    struct client *c = ask_without_reading(GET_PART);
    wait_until(is_closed_by_server(c), SOON_MS, "it is kept");
    say(c, GET_PART);
    check_part(hear(c));
    check(!c->answer.kept, "promised to be kept");
}

/* The connection was promised to be kept. Only its response keeps the worker from another client.
 */
BLOCKING_SERVERS(a_connection_does_not_make_way_while_its_response_is_under_way)
{
    enum { TICKS_MS = 1000 }; /* in which an idle one would have made way */
    start_server("--workers", "1");
    struct client *c = ask_without_reading(GET_PART);
    struct client *patient = dial_and_say(GET_HOME);
    for (int64_t start = now_ms(); now_ms() - start < TICKS_MS && !is_closed_by_server(c);)
        poll(NULL, 0, 10); /* not for something to happen, but for nothing to */
    say(c, GET_HOME);
    check_part(hear(c));
    check(c->answer.kept, "not even promised");
    check_file(hear(c), "public/index.html");
    check_file(hear(patient), "public/index.html");
}

/* It reads for longer than an idle connection is kept, and than the server lingers at a time. */
EVERY_SERVER(a_slow_reader_gets_its_response_though_the_time_of_an_idle_connection_is_over)
{
    start_server("--keep-alive", "0.3", "--timeout", "5");
    struct client *c = ask_without_reading(GET_PART);
    wait_until(is_closed_by_server(c), SOON_MS, "it is kept");
    say(c, GET_HOME);
    uint64_t got = hear_slowly(c, 500, 40);
    check(got > PART, "%llu bytes", (unsigned long long)got);
}

/* Its response has a second, and one more for each 8 KiB, whether or not it has said all, and
 * however long it may idle. Otherwise the kernel would offer it for minutes, and nobody would count
 * its memory. Of the file the server's kernel has not even taken all. */
EVERY_SERVER(a_client_that_never_reads_leaves_the_kernel_nothing_to_send)
{
    enum { SIZE = 64 * 1024 * 1024 }; /* bytes: more than two sockets hold */
    static const struct {
        const char *keep_alive, *request;
        size_t size;
        bool says_no_more;
    } rows[] = {
        {"0.3", GET_FILE("Range: bytes=0-8191\r\n"), PART, false},
        {"0.3", GET_FILE("Range: bytes=0-8191\r\n"), PART, true},
        {"60", GET_FILE("Range: bytes=0-8191\r\n"), PART, false},
        {"5", GET_FILE(""), SIZE, false},
    };
    struct inet_diag_msg end;
    const char *root = make_root_with_file(SIZE);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        start_server("--timeout", "1", "--keep-alive", rows[i].keep_alive, "--root", root);
        int64_t start = now_ms();
        struct client *c = ask_without_reading(rows[i].request);
        if (rows[i].says_no_more)
            say_no_more(c);
        wait_until(!find_server_end(c, &end), 3 * SOON_MS, "the kernel still offers %u bytes",
                   end.idiag_wqueue);
        check(now_ms() - start >= 900, "it had no time");
        check(hear_rest(c) < rows[i].size, "it was not cut off");
        stop_server();
    }
}

/* A response is taken whole by a client that half-closes, however late it reads. */
EVERY_SERVER(rule_14_a_client_that_has_said_its_last_word_gets_a_response_that_is_under_way)
{
    start_server("--timeout", "5");
    struct client *c = ask_without_reading(GET_PART);
    say_no_more(c);
    poll(NULL, 0, 500); /* more than two ticks: in this time the connection must not end */
    check_part(hear(c));
}

/* Its worker learns nothing more of it but its acknowledgements, of which no call tells. */
BLOCKING_SERVERS(twenty_clients_that_have_said_all_are_answered_one_after_another_at_once)
{
    enum { CLIENTS = 20, MOST_MS = 1000 }; /* a fifth of a second each would be four times that */
    start_server("--workers", "1");
    int64_t start = now_ms();
    for (int i = 0; i < CLIENTS; i++) {
        struct client *c = dial_and_say("GET /tux.png HTTP/1.1\r\nHost: test\r\n\r\n");
        say_no_more(c);
        check_file(hear(c), PICTURE);
        hang_up(c);
    }
    check_took(start, 0, patience(MOST_MS));
}

/* Bytes of the file are still on their way when the icon's response begins. Both have the time for
 * what is in flight. */
EVERY_SERVER(a_response_behind_a_long_one_has_the_time_of_both)
{
    enum { SIZE = 240 * 1024 };
    start_server("--timeout", "2", "--root", make_root_with_file(SIZE));
    struct client *c = dial_with_room(LITTLE_ROOM);
    say(c, GET_FILE("") "GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    uint64_t got = hear_slowly(c, 600, 50); /* 12 KiB a second */
    check(got > SIZE, "%llu bytes", (unsigned long long)got);
}

EVERY_SERVER(a_server_that_has_ended_leaves_the_kernel_nothing_to_send)
{
    struct inet_diag_msg end;
    start_server("--keep-alive", "60");
    struct client *c = ask_without_reading(GET_PART);
    stop_server();
    check(!find_server_end(c, &end), "the kernel still offers %u bytes", end.idiag_wqueue);
}
