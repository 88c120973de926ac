/* Politeness: who gives way to those who wait, how soon, and how few of them.
 *
 * The bounds, where all workers have a client: one that idles gives way after a tick (200 ms) of
 * silence; chapter 2 needs another tick to notice who waits. One in the middle of a request gives
 * way to nobody. */
#include "tests/harness/harness.h"

/* ---- idle clients -------------------------------------------------------------------------- */

enum { IDLE = 100, KNOCKS = 3, MOST_KNOCKS = 12, A_FEW = 5 };

/* A client that is kept, and idles from now on. */
static struct client *keep(void)
{
    struct client *c = dial_and_say("GET /not-there HTTP/1.1\r\nHost: test\r\n\r\n");
    check(hear(c)->kept, "not kept, though nobody waited");
    return c;
}

/* Replaces those who have been given up, and returns how many these were. */
static int count_given_up(struct client **idle)
{
    int count = 0;
    for (int i = 0; i < IDLE; i++)
        if (has_heard(idle[i])) {
            hear_end(idle[i]);
            hang_up(idle[i]);
            idle[i] = keep();
            count++;
        }
    return count;
}

/* One more than there may be. The best of a few tells what the server does; the others, what else
 * the machine has to do. */
static void a_knock_on_a_hundred_idle_clients_costs_a_few(void)
{
    struct client *idle[IDLE];
    int64_t quickest = INT64_MAX;
    int fewest = IDLE;
    start_server("--workers", "100");
    for (int i = 0; i < IDLE; i++)
        idle[i] = keep();
    for (int i = 0; i < KNOCKS || (i < MOST_KNOCKS && fewest > A_FEW); i++) {
        int64_t start = now_ms();
        check_file(get("/"), "public/index.html");
        int64_t took = now_ms() - start;
        quickest = took < quickest ? took : quickest;
        int gone = count_given_up(idle);
        check(gone >= 1, "knock %d: nobody was given up", i);
        fewest = gone < fewest ? gone : fewest;
    }
    check(fewest <= A_FEW, "%d given up at best", fewest);
    check(quickest < patience(500), "%lld ms at best", (long long)quickest);
    for (int i = 0; i < IDLE; i++)
        hang_up(idle[i]);
}
AGAINST(forking, a_knock_on_a_hundred_idle_clients_costs_a_few)
AGAINST(preforking, a_knock_on_a_hundred_idle_clients_costs_a_few)
AGAINST(threading, a_knock_on_a_hundred_idle_clients_costs_a_few)
AGAINST(prethreading, a_knock_on_a_hundred_idle_clients_costs_a_few)

/* A browser opens a second connection, in case it should need one. */
ONLY_SERVER(iterative, a_spare_connection_costs_the_next_client_a_fifth_of_a_second)
{
    int64_t quickest = INT64_MAX;
    start_server();
    for (int i = 0; i < KNOCKS; i++) {
        int64_t start = now_ms();
        struct client *spare = dial();
        check_file(get("/"), "public/index.html");
        int64_t took = now_ms() - start;
        check(took >= 100, "%lld ms: was it given up though it had just come?", (long long)took);
        quickest = took < quickest ? took : quickest;
        hear_end(spare);
        hang_up(spare);
    }
    check(quickest <= patience(300), "%lld ms at best", (long long)quickest);
}

/* Whoever connects so many times at once comes to speak for each of them only after a while. */
BLOCKING_SERVERS(a_crowd_may_be_slow_to_speak)
{
    enum { MANY = 150, LONG_MS = 700 }; /* three ticks, and a bit */
    struct client *crowd[MANY];
    start_server("--workers", "4");
    for (int i = 0; i < MANY; i++)
        crowd[i] = dial();
    poll(NULL, 0, LONG_MS);
    for (int i = 0; i < MANY; i++)
        say(crowd[i], "GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    for (int i = 0; i < MANY; i++) {
        check_file(hear(crowd[i]), "public/index.html");
        hang_up(crowd[i]);
    }
}

enum { BEGUN = 10 }; /* bytes */

/* A client that has begun to speak, and a patient one that waits behind it. */
static struct client *begin_before_another(const char *bytes, struct client **patient)
{
    struct client *c = dial();
    say_bytes(c, bytes, BEGUN);
    wait_until(is_read(c), SOON_MS, "it was not read");
    *patient = dial_and_say("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    /* 02's parent looks at the queue every 50 ms, and tells the children. Nothing outside shows
     * when it has done so. */
    if (server_is("forking"))
        poll(NULL, 0, 200);
    return c;
}

/* Who has asked for more before the last answer has come may go on, while another waits; but not
 * for ever. The other is there before the first of many requests is whole. */
BLOCKING_SERVERS(who_pipelines_makes_way_too)
{
    enum { MANY = 400, MOST = 150 };
    static const char request[] = "OPTIONS * HTTP/1.1\r\nHost: test\r\n\r\n";
    static char requests[MANY * (sizeof(request) - 1) + 1];
    int heard = 1;
    for (int i = 0; i < MANY; i++)
        memcpy(requests + (size_t)i * (sizeof(request) - 1), request, sizeof(request));
    start_server("--workers", "1");
    struct client *patient, *greedy = begin_before_another(requests, &patient);
    say(greedy, requests + BEGUN);
    while (hear(greedy)->kept)
        check(++heard <= MOST, "%d requests, and somebody waits", MOST);
    hang_up(greedy);
    check_file(hear(patient), "public/index.html");
}

/* A read that fills the server's buffer may end in the middle of the next request. The rest of that
 * request may be in the socket, or it may come much later. The first request and the beginning of
 * the next one are 2, 4, 8 and 16 KiB together: buffers have such sizes. */
BLOCKING_SERVERS(who_fills_a_buffer_with_a_begun_request_makes_way)
{
    enum { LONGEST = 16384 };
    static const char head[] = "OPTIONS * HTTP/1.1\r\nHost: test\r\nX: ";
    static char bytes[LONGEST];
    start_server("--workers", "1");
    for (size_t size = 2048; size <= LONGEST; size *= 2) {
        memset(bytes, 'x', size);
        memcpy(bytes, head, strlen(head));
        memcpy(bytes + size / 2 - 4, "\r\n\r\n", 4);
        memcpy(bytes + size / 2, head, strlen(head));
        struct client *patient, *greedy = begin_before_another(bytes, &patient);
        say_bytes(greedy, bytes + BEGUN, size - BEGUN);
        check(!hear(greedy)->kept, "%zu bytes: somebody waits, and the next request is not there",
              size);
        hang_up(greedy);
        check_file(hear(patient), "public/index.html");
        hang_up(patient);
    }
}

/* The next request comes in one piece with the end of the first one. Of 4,096 bytes it counts as
 * one that has come, and of one more it does not. */
BLOCKING_SERVERS(who_has_sent_the_next_request_of_4096_bytes_is_kept)
{
    enum { MOST = 4096 };
    static const char first[] = "OPTIONS * HTTP/1.1\r\nHost: test\r\n\r\n", /* 36 bytes */
        head[] = "OPTIONS * HTTP/1.1\r\nHost: test\r\nX: ";
    static char bytes[sizeof(first) + MOST];
    start_server("--workers", "1");
    for (size_t size = MOST; size <= MOST + 1; size++) {
        memset(bytes, 'x', sizeof(bytes));
        memcpy(bytes, first, strlen(first));
        memcpy(bytes + strlen(first), head, strlen(head));
        memcpy(bytes + strlen(first) + size - 4, "\r\n\r\n", 4);
        struct client *patient, *quick = begin_before_another(bytes, &patient);
        say_bytes(quick, bytes + BEGUN, strlen(first) + size - BEGUN);
        check(hear(quick)->kept == (size == MOST), "%zu bytes", size);
        if (size == MOST)
            check(hear(quick)->status == 204, "status %d", quick->answer.status);
        hang_up(quick);
        check_file(hear(patient), "public/index.html");
        hang_up(patient);
    }
}

/* ---- the cap ------------------------------------------------------------------------------- */

/* Four in the middle of a request, and a fifth, whose request is said whole. */
static void at_its_cap_the_next_client_waits_and_is_not_refused(void)
{
    enum { CAP = 4, LONG_MS = 700 }; /* three ticks, and a bit */
    struct client *inside[CAP];
    start_server("--workers", "4");
    for (int i = 0; i < CAP; i++) {
        inside[i] = dial_and_be_read("GET / HTTP/1.1\r\n");
    }
    struct client *fifth = dial_and_say("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    struct pollfd something = {.fd = fifth->fd, .events = POLLIN};
    check(poll(&something, 1, LONG_MS) == 0, "it does not wait: there are more than the cap");
    check(!is_read(fifth), "it was taken in");

    int64_t start = now_ms();
    say(inside[2], "Host: test\r\n\r\n");
    check_file(hear(inside[2]), "public/index.html"); /* kept or not, it makes way */
    check_file(hear(fifth), "public/index.html");
    check_took(start, 0, patience(2000));
    for (int i = 0; i < CAP; i++) {
        if (i != 2) {
            say(inside[i], "Host: test\r\nConnection: close\r\n\r\n");
            check_file(hear(inside[i]), "public/index.html"); /* it has lost nothing by that */
        }
        hang_up(inside[i]);
    }
    hang_up(fifth);
}
AGAINST(forking, at_its_cap_the_next_client_waits_and_is_not_refused)
AGAINST(threading, at_its_cap_the_next_client_waits_and_is_not_refused)
