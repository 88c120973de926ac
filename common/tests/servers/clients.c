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
    struct client *c =
        dial_and_say("GET /file.bin HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    wait_until(has_heard(c), SOON_MS, "no response");
    return c;
}

/* Twice as long as the time-out is, and never without progress for long. */
EVERY_SERVER(a_client_that_reads_slowly_gets_all_of_it)
{
    struct client *c = dial_and_stare("2");
    uint64_t got = hear_slowly(c, 1024 * 1024, 200);
    check(got > LARGE, "cut off after %llu bytes", (unsigned long long)got);
    hang_up(c);
    check(stop_server().peak_kib < patience(LARGE / 1024), "it was read into memory");
}

/* On a kept connection, asks for so many responses at once, and hears them. Waiting for a delayed
 * acknowledgement takes 40 ms nearly each time, except at the beginning, when the kernel delays
 * none. Some that are quicker are enough, because the machine has other things to do. */
static void check_quick(struct client *c, const char *request, int at_once)
{
    enum { TIMES = 40, BEGINNING = 4, SOME = 9, MOST_MS = 20 };
    int quick = 0;
    for (int i = 0; i < TIMES && quick < SOME; i++) {
        int64_t start = now_ms();
        for (int j = 0; j < at_once; j++)
            say(c, request);
        for (int j = 0; j < at_once; j++)
            check(hear(c)->status == 200 && c->answer.kept, "status %d", c->answer.status);
        quick += i > BEGINNING && now_ms() - start < MOST_MS;
    }
    check(quick == SOME, "%d of %d were quick", quick, TIMES);
}

EVERY_SERVER(no_answer_on_loopback_waits_for_a_delayed_acknowledgement)
{
    start_redis();
    fill_guestbook_with_quotes(); /* a page of 120 KB */
    start_server();
    struct client *c = dial();
    check_quick(c, "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n", 1);
    check_quick(c, "GET /tux.png HTTP/1.1\r\nHost: test\r\n\r\n", 10);
    check_quick(c, "GET /favicon.svg HTTP/1.1\r\nHost: test\r\n\r\n", 3); /* Nagle's algorithm */
}

/* Pages that are not read, also behind a long file that was, which has more room in the socket. */
EVERY_SERVER(a_page_behind_a_long_file_has_no_more_room_than_any)
{
    enum { PAGES = 6, LEAST = 40 * 1024, MOST = 128 * 1024, SETTLED_MS = 300 };
    struct inet_diag_msg end;
    start_redis();
    fill_guestbook_with_quotes();
    start_server("--root", make_root_with_file(1024 * 1024));
    for (int files = 0; files < 2; files++) {
        struct client *c = dial_with_room(32 * 1024);
        if (files) {
            say(c, "GET /file.bin HTTP/1.1\r\nHost: test\r\n\r\n");
            check(hear(c)->status == 200 && c->answer.kept, "status %d", c->answer.status);
        }
        for (int i = 0; i < PAGES; i++)
            say(c, "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
        wait_until(find_server_end(c, &end) && end.idiag_wqueue > LEAST, SOON_MS, "%u bytes",
                   end.idiag_wqueue);
        poll(NULL, 0, SETTLED_MS);
        check(find_server_end(c, &end) && end.idiag_wqueue < MOST, "%u bytes", end.idiag_wqueue);
        reset(c);
    }
}

/* The kernel gives a socket more and more room, as long as its program reads quickly. */
EVERY_SERVER(of_what_is_not_read_yet_the_kernel_keeps_little)
{
    enum { BODY = 64000, POSTS = 50, PIECES = 100, MOST = 256 * 1024 };
    static char bytes[BODY];
    struct inet_diag_msg end;
    start_redis();
    start_server("--timeout", "60");
    struct client *c = dial();
    for (int i = 0; i < POSTS; i++) {
        say(c, "OPTIONS * HTTP/1.1\r\nHost: test\r\nContent-Length: 64000\r\n\r\n");
        say_bytes(c, bytes, BODY);
        check(hear(c)->status == 204, "status %d", c->answer.status);
    }
    freeze_redis();
    say_and_be_read(c, "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
    for (int i = 0; i < PIECES; i++, poll(NULL, 0, 2))
        send(c->fd, bytes, BODY, MSG_DONTWAIT);
    check(find_server_end(c, &end) && end.idiag_rqueue < MOST, "%u bytes", end.idiag_rqueue);
    thaw_redis();
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
