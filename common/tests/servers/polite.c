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
    for (int i = 0; i < MOST_KNOCKS && (i < KNOCKS || fewest > A_FEW || quickest > 500); i++) {
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
}
AGAINST_WORKERS(a_knock_on_a_hundred_idle_clients_costs_a_few)

/* A browser opens a second connection, in case it should need one. */
ONLY_SERVER(iterative, a_spare_connection_costs_the_next_client_a_fifth_of_a_second)
{
    int64_t quickest = INT64_MAX;
    start_server();
    for (int i = 0; i < MOST_KNOCKS && (i < KNOCKS || quickest > 300); i++) {
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
    /* 02's parent and 04's main thread look at the queue every 50 ms, and tell the others. Nothing
     * outside shows when they have done so. */
    if (server_is("forking") || server_is("threading"))
        poll(NULL, 0, 1000);
    return c;
}

/* Rule 13: whatever has come already. The next request is sent again, over another connection. */
BLOCKING_SERVERS(who_pipelines_makes_way_too)
{
    static const char requests[] = "OPTIONS * HTTP/1.1\r\nHost: test\r\n\r\n"
                                   "OPTIONS * HTTP/1.1\r\nHost: test\r\n\r\n";
    start_server("--workers", "1");
    struct client *patient, *greedy = begin_before_another(requests, &patient);
    say(greedy, requests + BEGUN);
    check(!hear(greedy)->kept, "somebody waits");
    check_file(hear(patient), "public/index.html"); /* while the other one has not left yet */
    hear_end(greedy);
}

/* ---- the cap ------------------------------------------------------------------------------- */

/* Four in the middle of a request, and a fifth, whose request is said whole. */
static void at_its_cap_the_next_client_waits_and_is_not_refused(void)
{
    enum { CAP = 4, LONG_MS = 700 }; /* three ticks, and a bit */
    struct client *inside[CAP];
    start_server("--workers", "4", "--timeout", "60");
    for (int i = 0; i < CAP; i++) {
        inside[i] = dial_and_be_read("GET / HTTP/1.1\r\n");
    }
    struct client *fifth = dial_and_say("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    struct pollfd something = {.fd = fifth->fd, .events = POLLIN};
    check(poll(&something, 1, LONG_MS) == 0, "it does not wait: there are more than the cap");
    check(!is_read(fifth), "it was taken in");

    say(inside[2], "Host: test\r\n\r\n");
    check_file(hear(inside[2]), "public/index.html"); /* kept or not, it makes way */
    check_file(hear(fifth), "public/index.html");
    hang_up(inside[2]);
    inside[2] = inside[0];
    for (int i = 1; i < CAP; i++) {
        say(inside[i], "Host: test\r\nConnection: close\r\n\r\n");
        check_file(hear(inside[i]), "public/index.html"); /* it has lost nothing by that */
    }
}
AGAINST_MAKERS(at_its_cap_the_next_client_waits_and_is_not_refused)
