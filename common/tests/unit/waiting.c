/* Who waits in an event loop: queues in order, deadlines, stopping, freeing. */
#include "waiting.h"
#include "clock.h"
#include "memory.h"
#include "stop.h"
#include "unit.h"

static struct options options;
static struct worker worker;
static struct waiting waiting;
static int clients[64]; /* the other ends, in order of opening */
static int opened;

static int nobody_waits(const struct worker *unused)
{
    (void)unused;
    return false;
}

static void start(void)
{
    unit_start_worker(&worker, &options, nobody_waits);
}

TestSuite(waiting, .timeout = 30, .init = start, .fini = scratch_remove);

/* A new connection, fresh, in its queue. */
static struct conn *join(void)
{
    int fds[2];
    struct conn *c = malloc(sizeof(*c));
    cr_assert(c && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    set_blocking(fds[0], false);
    conn_open(c, fds[0], &worker);
    clients[opened++] = fds[1];
    waiting_add(&waiting, c);
    return c;
}

/* Says something to the connection opened as number `which`, and lets it go on. */
static void tell(struct conn *c, int which, const char *bytes)
{
    say(clients[which], bytes);
    conn_advance(c);
    waiting_update(&waiting, c);
}

static int length(enum conn_state state)
{
    int n = 0;
    for (struct conn *c = waiting.queues[state]; c; c = c->next)
        n++;
    return n;
}

static void go_on(struct conn *c)
{
    conn_advance(c);
    waiting_update(&waiting, c);
}

/* A loop that woke just before a deadline, by the coarse clock, would turn idly until it is there.
 */
Test(waiting, the_time_out_does_not_end_before_the_deadline)
{
    options.timeout_ms = 20;
    for (int i = 0; i < 50; i++) {
        struct conn *c = join();
        poll(NULL, 0, waiting_timeout(&waiting));
        cr_expect(c->deadline <= clock_now_ms(), "%lld ms too early",
                  (long long)(c->deadline - clock_now_ms()));
        waiting_expire(&waiting, go_on);
        expect_number("gone", length(CONN_FRESH), 0);
        waiting_free_done(&waiting);
    }
}

/* ---- stopping ------------------------------------------------------------------------------ */

Test(waiting, those_who_owe_nothing_are_given_up_after_a_tick)
{
    struct conn *fresh = join(), *idle = join(), *lingers = join(), *reads = join();
    tell(idle, 1, "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    tell(lingers, 2, "rubbish\r\n\r\n");
    tell(reads, 3, "GET");
    expect_number("idle", idle->state, CONN_IDLE);
    expect_number("lingers", lingers->state, CONN_LINGERING);
    waiting_stop(&waiting);
    waiting_expire(&waiting, go_on);
    expect_number("not before a tick", length(CONN_DONE), 0);
    int ms = waiting_timeout(&waiting);
    cr_expect(ms >= 0 && ms <= TICK_MS, "%d", ms);

    waiting.stop_asked -= TICK_MS; /* a tick later */
    waiting_expire(&waiting, go_on);
    expect_number("fresh", fresh->state, CONN_DONE);
    expect_number("idle", idle->state, CONN_DONE);
    expect_number("lingers", lingers->state, CONN_DONE);
    expect_number("in flight", reads->state, CONN_READING);
    waiting_free_done(&waiting);
    cr_expect(!waiting_is_over(&waiting), "one is left");

    waiting.stop_asked -= STOP_MS;
    cr_expect(waiting_is_over(&waiting), "it has had its time");
}

Test(waiting, the_idle_are_given_up_after_a_tick_while_memory_is_short)
{
    struct conn *fresh = join(), *first = join(), *spoke = join(), *last = join();
    struct conn *idle[] = {first, spoke, last};
    memory_set_budget(1000);
    cr_assert(memory_reserve(1000));
    cr_expect(waiting_timeout(&waiting) > TICK_MS, "nobody is idle yet");
    memory_release(1000);
    for (int i = 0; i < 3; i++)
        tell(idle[i], 1 + i, "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    first->deadline -= TICK_MS, spoke->deadline -= TICK_MS;
    say(clients[2], "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    waiting_expire(&waiting, go_on);
    expect_number("there is memory", length(CONN_DONE), 0);
    cr_expect(waiting_timeout(&waiting) > TICK_MS);

    cr_assert(memory_reserve(1000));
    int ms = waiting_timeout(&waiting);
    cr_expect(ms >= 0 && ms <= TICK_MS, "%d", ms);
    waiting_expire(&waiting, go_on);
    expect_number("first", first->state, CONN_DONE);
    expect_number("has just spoken", spoke->state, CONN_IDLE);
    expect_number("idle for less than a tick", last->state, CONN_IDLE);
    expect_number("fresh", fresh->state, CONN_FRESH);
    memory_release(1000);
}

/* What it said has come after the round's events were fetched: the next round will hear it. */
Test(waiting, who_has_just_spoken_is_not_given_up_when_stopping)
{
    struct conn *fresh = join(), *idle = join(), *silent = join();
    tell(idle, 1, "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    waiting_stop(&waiting);
    waiting.stop_asked -= TICK_MS;
    say(clients[0], "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    say(clients[1], "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    waiting_expire(&waiting, go_on);
    expect_number("silent", silent->state, CONN_DONE);
    expect_number("fresh", fresh->state, CONN_FRESH);
    expect_number("idle", idle->state, CONN_IDLE);
    go_on(fresh);
    expect_number("answered", fresh->state, CONN_IDLE);
    waiting_expire(&waiting, go_on);
    expect_number("and given up", fresh->state, CONN_DONE);
    expect_number("not yet heard", idle->state, CONN_IDLE);
    waiting_close(&waiting);
    expect_number("at the very end nobody stays", waiting.count, 0);
}
