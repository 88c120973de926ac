/* Clients that are slow, silent, or many: who has to wait for them, and for how long. */
#include "tests/harness/harness.h"

EVERY_SERVER(a_kept_client_that_idles_keeps_nobody_from_being_served)
{
    start_server("--keep-alive", "60", POOL_OF("1"));
    struct client *idle = dial_and_say("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    check(hear(idle)->kept, "nobody else was there, and it was not kept");
    check_file(get("/"), "public/index.html"); /* which nobody waits a minute for */
}

enum { LARGE = 20 * 1024 * 1024 }; /* bytes: more than two sockets hold */

/* Asks for a large file, and does not read it. */
static struct client *dial_and_stare(const char *timeout)
{
    start_server("--timeout", timeout, "--root", make_root_with_file(LARGE));
    struct client *c = dial_and_say("GET /file.bin HTTP/1.1\r\nHost: test\r\n\r\n");
    wait_until(has_heard(c), SOON_MS, "no response");
    return c;
}

/* Twice as long as the time-out is, and never without progress for long. */
EVERY_SERVER(a_client_that_reads_slowly_gets_all_of_it)
{
    enum { PIECE = 1024 * 1024, EVERY_MS = 200 };
    char *bytes = malloc(PIECE);
    size_t got = 0;
    struct client *c = dial_and_stare("2");
    for (ssize_t n = 1; n > 0 && got<LARGE; got += n> 0 ? (size_t)n : 0) {
        struct pollfd fd = {.fd = c->fd, .events = POLLIN};
        poll(NULL, 0, EVERY_MS);
        check(poll(&fd, 1, (int)patience(SOON_MS)) > 0, "nothing comes any more");
        n = recv(c->fd, bytes, PIECE, 0);
    }
    check(got >= LARGE, "cut off after %zu bytes", got);
    hang_up(c);
    check(stop_server().peak_kib < patience(LARGE / 1024), "it was read into memory");
}

/* A reset means ECONNRESET, but after the client's half-close EPIPE, and with it SIGPIPE, which
 * sendfile(2) has no flag against. A client that is killed while it reads does just that. */
EVERY_SERVER(a_client_that_leaves_in_the_middle_of_a_file_harms_nobody)
{
    struct client *c = dial_and_stare("60");
    say_no_more(c);
    reset(c);
    check_file(get("/"), place("root/public/index.html"));
}
