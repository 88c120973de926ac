/* Crowds: as many clients at once as an architecture is made for, and more than
 * one with a fixed number of workers has workers. Nobody may be turned away:
 * everybody gets a whole page, and each visit is counted.
 */
#include "around.h"
#include "tests/harness/harness.h"

enum {
    BURST = 3750,     /* connections made before we look whether they are accepted; a backlog */
                      /* holds 4096 at most, and a client it has no room for tries a second later */
    CROWD_MS = 60000, /* that it gets through at all; how fast is not asked here */
};

static struct client **crowd;
static int crowd_size;

/* Long enough for a connection to stay, and for all pages to go through one Redis. The server is
 * started before our own limit is raised: it has to raise its own. */
static void start_for(int size, const char *workers)
{
    crowd_size = size;
    crowd = calloc((size_t)size, sizeof(struct client *));
    start_redis();
    start_server("--keep-alive", "600", "--timeout", "600", workers ? "--workers" : NULL, workers);
    need_descriptors(size);
}

static void ask_for_page(int i)
{
    say(crowd[i], "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
}

static void hear_everybody(void)
{
    for (int i = 0; i < crowd_size; i++) {
        struct client *c = crowd[i];
        wait_until(has_heard(c), CROWD_MS, "client %d of %d has no answer", i, crowd_size);
        check(hear(c)->status == 200 && body_has(&c->answer, "You are visitor number "),
              "client %d: status %d", i, c->answer.status);
        free(c->in); /* with the room for more, which all of them have no room for */
        c->in = NULL;
        c->len = c->used = 0;
    }
    check(redis_number("GET guestbook:visitors") == crowd_size, "not one visit for each");
}

/* They leave rudely, which leaves nothing behind: thousands of ports that rest for a minute would
 * be in the way of the next crowd. */
static void break_up(void)
{
    for (int i = 0; i < crowd_size; i++)
        reset(crowd[i]);
    wait_until(count_clients() == 0, SOON_MS, "%d are still there", count_clients());
    struct statistics s = stop_server();
    check(s.requests == (unsigned)crowd_size && s.connections == (unsigned)crowd_size,
          "%llu requests on %llu connections", s.requests, s.connections);
}

/* ---- idle, and then all at once ------------------------------------------------------------ */

/* All of them connect, and say nothing. */
static void come_in(void)
{
    for (int i = 0; i < crowd_size; i++) {
        crowd[i] = dial();
        if ((i + 1) % BURST == 0 || i + 1 == crowd_size)
            wait_until(count_clients() == i + 1, CROWD_MS,
                       "%d accepted of %d; or is it pids.max, ulimit -u or vm.max_map_count?",
                       count_clients(), i + 1);
    }
}

/* What they cost the server is as its architecture says: a child or a thread each, or nothing but a
 * descriptor. */
static void serve_a_crowd(int size, const char *workers)
{
    start_for(size, workers);
    int before = count_descriptors(server_pid);
    come_in();
    if (server_is_loop())
        check(count_descriptors(server_pid) == before + size && count_workers() == 0,
              "%d descriptors, %d before", count_descriptors(server_pid), before);
    else
        wait_until(count_workers() == size, SOON_MS, "workers: %d", count_workers());
    for (int i = 0; i < size; i++)
        ask_for_page(i);
    hear_everybody();
    check(count_clients() == size, "kept are %d", count_clients());
    break_up();
}

static void two_thousand_idle_clients_are_kept_and_served(void)
{
    serve_a_crowd(as_many_as(2000, 200), "2100");
}
AGAINST(forking, two_thousand_idle_clients_are_kept_and_served)

static void fifteen_thousand_idle_clients_are_kept_and_served(void)
{
    serve_a_crowd(as_many_as(15000, 1500), NULL);
}
AGAINST(threading, fifteen_thousand_idle_clients_are_kept_and_served)
AGAINST_LOOPS(fifteen_thousand_idle_clients_are_kept_and_served)

/* ---- more than there are workers ----------------------------------------------------------- */

/* All connect and ask at once. The backlog has room for those who wait; each is served when its
 * turn has come, and kept by nobody for whom another waits. */
static void two_thousand_clients_get_a_page_from_fewer_workers(void)
{
    start_for(as_many_as(2000, 500), NULL);
    for (int i = 0; i < crowd_size; i++) {
        crowd[i] = dial();
        ask_for_page(i);
    }
    hear_everybody();
    break_up();
}
AGAINST(iterative, two_thousand_clients_get_a_page_from_fewer_workers)
AGAINST_POOLS(two_thousand_clients_get_a_page_from_fewer_workers)

/* ---- without a descriptor ------------------------------------------------------------------ */

/* Of the server and its children; the soft limit, which may be raised again. */
static void limit_descriptors(rlim_t most)
{
    enum { ROOM = 64 };
    pid_t all[ROOM + 1] = {server_pid};
    for (int i = list_children(server_pid, all + 1, ROOM, NULL); i >= 0; i--) {
        struct rlimit now;
        check(prlimit(all[i], RLIMIT_NOFILE, NULL, &now) == 0, "%s", strerror(errno));
        now.rlim_cur = most < now.rlim_max ? most : now.rlim_max;
        check(prlimit(all[i], RLIMIT_NOFILE, &now, NULL) == 0, "%s", strerror(errno));
    }
}

/* Those who come meanwhile stand in the listener's queue. This is all seven: chapter 2's parent has
 * each client's descriptor for a moment only, chapter 3's workers and chapter 1 one each, so that
 * no crowd can use theirs up; but whoever starts them can leave them too few. (servers/faults.c
 * injects the same error; but only so does it last, and is the use of the CPU what it would be.) */
EVERY_SERVER(without_a_descriptor_for_a_client_it_sleeps_and_then_serves_everybody)
{
    enum { CROWD = 60, RECOVERED_MS = 3000 };
    struct client *waiting[CROWD];
    int early = 0; /* whoever slept in accept4() already had a number for its client, once */
    start_server();
    if (server_is("preforking"))
        wait_until(count_children() == 8, SOON_MS, "not 8 workers");
    limit_descriptors((rlim_t)count_descriptors(server_pid));
    for (int i = 0; i < CROWD; i++) /* which needs no file */
        waiting[i] = dial_and_say("OPTIONS * HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    check_it_sleeps(1000, "out of descriptors");
    for (int i = 0; i < CROWD; i++)
        early += has_heard(waiting[i]);
    check(early <= 8, "%d were served", early);
    int64_t start = now_ms();
    limit_descriptors(RLIM_INFINITY);
    for (int i = 0; i < CROWD; i++) {
        check(hear(waiting[i])->status == 204, "status %d", waiting[i]->answer.status);
        hang_up(waiting[i]);
    }
    check_took(start, 0, patience(RECOVERED_MS));
    check_file(get("/"), "public/index.html");
}
