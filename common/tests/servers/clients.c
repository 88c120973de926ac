/* Clients that are slow, silent, or many: who has to wait for them, and for how long. */
#include "tests/harness/harness.h"

EVERY_SERVER(a_silent_client_keeps_nobody_from_being_served)
{
    start_server();
    dial();
    int64_t start = now_ms();
    check_file(get("/"), "public/index.html");
    check_took(start, 0, patience(2000));
}

EVERY_SERVER(a_kept_client_that_idles_keeps_nobody_from_being_served)
{
    start_server(POOL_OF("1"));
    struct client *idle = dial_and_say("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    check(hear(idle)->kept, "nobody else was there, and it was not kept");
    int64_t start = now_ms();
    check_file(get("/"), "public/index.html");
    check_took(start, 0, patience(2000));
}

CONCURRENT_SERVERS(thirty_clients_in_the_middle_of_a_request_hold_up_nobody)
{
    struct client *clients[30];
    start_redis();
    start_server("--workers", "40");
    for (int i = 0; i < 30; i++) {
        clients[i] = dial();
        say(clients[i], i % 2 ? "GET /guestbook HTTP/1.1\r\nHo" : "GET / HTTP/1.1\r\nHo");
    }
    for (int i = 0; i < 30; i++)
        wait_until(is_read(clients[i]), SOON_MS, "client %d was not read from", i);
    for (int i = 0; i < 10; i++)
        check(get(i % 2 ? "/guestbook" : "/")->status == 200, "request %d", i);
    for (int i = 0; i < 30; i++)
        say(clients[i], "st: test\r\nConnection: close\r\n\r\n");
    for (int i = 0; i < 30; i++) {
        check(hear(clients[i])->status == 200, "client %d: %d", i, clients[i]->answer.status);
        hang_up(clients[i]);
    }
}

/* Asks for a large file, and does not read it. */
static void stare(struct client *c)
{
    say(c, "GET /file.bin HTTP/1.1\r\nHost: test\r\n\r\n");
    wait_until(has_heard(c), SOON_MS, "no response");
}

static struct client *dial_and_stare(int64_t size)
{
    start_server("--timeout", "0.5", "--root", make_root_with_file(size));
    struct client *c = dial();
    stare(c);
    return c;
}

enum { LARGE = 20 * 1024 * 1024 }; /* bytes: more than two sockets hold */

CONCURRENT_SERVERS(a_client_that_never_reads_holds_up_nobody)
{
    struct client *c = dial_and_stare(LARGE);
    check_file(get("/"), place("root/public/index.html"));
    check_file(get("/"), place("root/public/index.html"));
    reset(c);
}

/* About twice as long as the time-out is, and never without progress. Returns how long it did not
 * read at most: who has no turn for long is no slow reader, but one who never reads. */
static int64_t read_slowly(struct client *c, uint64_t *got)
{
    enum { PIECE = 2 * 1024 * 1024 };
    static char bytes[PIECE];
    int64_t longest = 0, last = now_ms();
    ssize_t n = 1;
    for (*got = 0; n > 0 && *got<LARGE; *got += n> 0 ? (uint64_t)n : 0) {
        struct pollfd fd = {.fd = c->fd, .events = POLLIN};
        poll(NULL, 0, 100);
        longest = now_ms() - last > longest ? now_ms() - last : longest;
        check(poll(&fd, 1, (int)patience(SOON_MS)) > 0, "nothing comes any more");
        n = recv(c->fd, bytes, sizeof(bytes), 0);
        last = now_ms();
    }
    return longest;
}

EVERY_SERVER(a_client_that_reads_slowly_gets_all_of_it)
{
    enum { TRIES = 5, TOO_LONG_MS = 350 };
    int64_t longest = TOO_LONG_MS;
    uint64_t got = 0;
    struct client *c = dial_and_stare(LARGE);
    for (int i = 0; i < TRIES && got < LARGE && longest >= TOO_LONG_MS; i++) {
        if (i > 0) {
            hang_up(c);
            c = dial();
            stare(c);
        }
        longest = read_slowly(c, &got);
    }
    check(got >= LARGE, "cut off after %llu bytes, though read every %lld ms",
          (unsigned long long)got, (long long)longest);
}

/* A reset means ECONNRESET, but after the client's half-close EPIPE, and with it SIGPIPE, which
 * sendfile(2) has no flag against. A client that is killed while it reads does just that. */
EVERY_SERVER(a_client_that_leaves_in_the_middle_of_a_file_harms_nobody)
{
    struct client *c = dial_and_stare(LARGE);
    say_no_more(c);
    reset(c);
    check_file(get("/"), place("root/public/index.html"));
}
