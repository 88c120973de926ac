/* A response is under way until the client's kernel has acknowledged all of it. If the server
 * closes before that and the client says another word, the kernel answers with a reset, which
 * destroys the rest (RFC 9112, 9.6). The clients here have little room, so the server's kernel
 * holds most of the response while they do not read.
 */
#include "tests/harness/harness.h"

#define PICTURE     "public/tux.png"
#define GET_PICTURE "GET /tux.png HTTP/1.1\r\nHost: test\r\n\r\n"
#define GET_HOME    "GET / HTTP/1.1\r\nHost: test\r\n\r\n"

enum { LITTLE_ROOM = 4096 };

/* A client that has not read so many pictures, which the server's kernel has taken whole. */
static struct client *ask_without_reading(int pictures)
{
    size_t size = 0;
    read_whole(PICTURE, &size);
    struct client *c = dial_with_room(LITTLE_ROOM);
    for (int i = 0; i < pictures; i++)
        say(c, GET_PICTURE);
    wait_until(count_written(c) > pictures * (int64_t)size, SOON_MS, "%lld bytes are written",
               (long long)count_written(c));
    return c;
}

EVERY_SERVER(a_next_request_destroys_no_response_that_was_the_last)
{
    start_server("--keep-alive", "0");
    struct client *c = ask_without_reading(1);
    wait_until(is_closed_by_server(c), SOON_MS, "it is kept");
    say(c, GET_PICTURE);
    check_file(hear(c), PICTURE);
}

/* The connection was promised to be kept. Only its response keeps the worker from another client.
 */
BLOCKING_SERVERS(a_connection_does_not_make_way_while_its_response_is_under_way)
{
    enum { TICKS_MS = 1000 }; /* in which an idle one would have made way */
    start_server("--workers", "1");
    struct client *c = ask_without_reading(1);
    struct client *patient = dial_and_say(GET_HOME);
    for (int64_t start = now_ms(); now_ms() - start < TICKS_MS && !is_closed_by_server(c);)
        poll(NULL, 0, 10); /* not for something to happen, but for nothing to */
    say(c, GET_HOME);
    check_file(hear(c), PICTURE);
    check(c->answer.kept, "not even promised");
    check_file(hear(c), "public/index.html");
    check_file(hear(patient), "public/index.html");
}

/* It reads for longer than an idle connection is kept, and than the server lingers at a time. */
EVERY_SERVER(a_slow_reader_gets_its_response_though_the_time_of_an_idle_connection_is_over)
{
    enum { PIECE = 2000, EVERY_MS = 40 };
    char bytes[PIECE];
    size_t got = 0, size = 0;
    bool spoke = false;
    read_whole(PICTURE, &size);
    start_server("--keep-alive", "0.3", "--timeout", "2");
    struct client *c = ask_without_reading(1);
    for (ssize_t n = 1; n > 0; got += (size_t)n) {
        if (!spoke && is_closed_by_server(c)) {
            say(c, GET_HOME);
            spoke = true;
        }
        check(wait_for(c, POLLIN, now_ms() + patience(SOON_MS)), "nothing after %zu bytes", got);
        n = recv(c->fd, bytes, sizeof(bytes), 0);
        check(n >= 0, "after %zu bytes of more than %zu: %s", got, size, strerror(errno));
        poll(NULL, 0, EVERY_MS); /* that is how slow it is */
    }
    check(spoke && got > size, "%zu bytes of more than %zu", got, size);
}

EVERY_SERVER(a_client_that_never_reads_leaves_the_kernel_nothing_to_send)
{
    struct inet_diag_msg end;
    start_server("--keep-alive", "0.3", "--timeout", "0.5");
    struct client *c = ask_without_reading(2);
    wait_until(!find_server_end(c, &end), 3000, "the kernel still offers %u bytes",
               end.idiag_wqueue);
}

EVERY_SERVER(a_server_that_has_ended_leaves_the_kernel_nothing_to_send)
{
    struct inet_diag_msg end;
    start_server("--keep-alive", "60");
    struct client *c = ask_without_reading(2);
    stop_server();
    check(!find_server_end(c, &end), "the kernel still offers %u bytes", end.idiag_wqueue);
}
