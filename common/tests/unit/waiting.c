/* Who waits in an event loop: queues in order, deadlines, stopping, freeing. */
#include "waiting.h"
#include "clock.h"
#include "memory.h"
#include "options.h"
#include "process.h"
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
    scratch_site();
    options = unit_options();
    process_start();
    app_start(&options);
    struct board *board = board_open(1);
    cr_assert(board);
    worker = (struct worker){
        .options = &options,
        .slot = board_claim(board, 1),
        .claim_waiting_clients = nobody_waits,
    };
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

/* As if so many ms had passed for this connection. */
static void age(struct conn *c, int ms)
{
    c->deadline -= ms;
    c->queued_until = c->deadline;
}

#define REQUEST "GET /guestbook HTTP/1.1\r\nHost: a\r\n\r\n"

Test(waiting, each_state_has_a_queue)
{
    struct conn *first = join(), *second = join(), *third = join();
    expect_number("fresh", length(CONN_FRESH), 3);
    cr_expect(waiting.queues[CONN_FRESH] == first && first->next == second && second->next == third,
              "in the order they came");
    tell(second, 1, "GET");
    expect_number("fresh", length(CONN_FRESH), 2);
    cr_expect(waiting.queues[CONN_READING] == second);
    tell(first, 0, REQUEST);
    cr_expect(waiting.queues[CONN_ASKING] == first);
    cr_expect(waiting.queues[CONN_FRESH] == third);
    expect_number("all", waiting.count, 3);
}

Test(waiting, an_update_without_a_change_keeps_the_place)
{
    struct conn *first = join();
    join();
    waiting_update(&waiting, first);
    cr_expect(waiting.queues[CONN_FRESH] == first);
    expect_number("all", waiting.count, 2);
}

Test(waiting, a_new_deadline_means_the_end_of_the_queue)
{
    struct conn *first = join(), *second = join();
    first->deadline += 1000;
    waiting_update(&waiting, first);
    cr_expect(waiting.queues[CONN_FRESH] == second && second->next == first);
    expect_number("all", waiting.count, 2);
}

Test(waiting, nobody_means_for_ever)
{
    expect_number("nobody", waiting_timeout(&waiting), -1);
}

Test(waiting, the_time_out_is_that_of_the_next_one_due)
{
    options.timeout_ms = 100000;
    join(); /* 50 s */
    int ms = waiting_timeout(&waiting);
    cr_expect(ms > 49000 && ms <= 50010, "%d", ms);
    struct conn *reads = join();
    tell(reads, 1, "GET"); /* 100 s */
    age(reads, 60000);
    ms = waiting_timeout(&waiting);
    cr_expect(ms > 39000 && ms <= 40010, "%d", ms);
    tell(reads, 1, " /guestbook HTTP/1.1\r\nHost: a\r\n\r\n");
    ms = waiting_timeout(&waiting);
    cr_expect(ms > 49000, "Redis' business: %d", ms);
    tell(join(), 2, "GET");
    age(waiting.queues[CONN_READING], 110000);
    expect_number("overdue", waiting_timeout(&waiting), 0);
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

Test(waiting, expires_those_whose_deadline_has_passed)
{
    struct conn *first = join(), *second = join(), *third = join(), *asks = join(), *reads = join();
    tell(asks, 3, REQUEST);
    tell(reads, 4, "GET");
    age(first, 20000);
    age(second, 20000);
    age(asks, 20000);
    age(reads, 20000);
    waiting_expire(&waiting, go_on);
    expect_number("first", first->state, CONN_DONE);
    expect_number("second", second->state, CONN_DONE);
    expect_number("not due", third->state, CONN_FRESH);
    expect_number("Redis' business", asks->state, CONN_ASKING);
    expect_number("408, and went on", reads->state, CONN_LINGERING);
    expect_number("the dead", length(CONN_DONE), 2);
    expect_number("all", waiting.count, 5);
    char head[20] = "";
    cr_expect(recv(clients[4], head, 12, 0) == 12 && strcmp(head, "HTTP/1.1 408") == 0, "%s", head);
}

Test(waiting, buries_the_dead_only)
{
    struct conn *dead = join(), *lives = join();
    int fd = dead->fd;
    shutdown(clients[0], SHUT_WR);
    go_on(dead);
    expect_number("still here", waiting.count, 2);
    waiting_free_done(&waiting);
    expect_number("gone", waiting.count, 1);
    expect_number("closed", fcntl(fd, F_GETFD), -1);
    cr_expect(waiting.queues[CONN_FRESH] == lives && !waiting.queues[CONN_DONE]);
    waiting_free_done(&waiting);
    expect_number("nobody else", waiting.count, 1);
}

Test(waiting, closes_everybody_at_the_end)
{
    struct conn *reads = join(), *lingers = join();
    join();
    int dead = opened;
    struct conn *last = join();
    tell(reads, 0, "GET");
    tell(lingers, 1, "rubbish\r\n\r\n");
    shutdown(clients[dead], SHUT_WR);
    go_on(last);
    waiting_close(&waiting);
    expect_number("nobody", waiting.count, 0);
    for (int i = 0; i < opened; i++) {
        char rest[1000];
        while (recv(clients[i], rest, sizeof(rest), 0) > 0)
            ;
        expect_number("closed", recv(clients[i], rest, 1, 0), 0);
    }
}

/* ---- stopping ------------------------------------------------------------------------------ */

Test(waiting, stops_when_nobody_is_left)
{
    cr_expect(!waiting_is_over(&waiting), "nobody asked for it");
    waiting_stop(&waiting);
    cr_expect(waiting_is_over(&waiting), "nobody is here");
}

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
    for (int i = 0; i < 3; i++)
        tell(idle[i], 1 + i, "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    first->deadline -= TICK_MS, spoke->deadline -= TICK_MS;
    say(clients[2], "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    waiting_expire(&waiting, go_on);
    expect_number("there is memory", length(CONN_DONE), 0);
    cr_expect(waiting_timeout(&waiting) > TICK_MS);

    memory_set_budget(1000);
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

Test(waiting, who_asks_redis_when_the_time_is_over_gets_its_reply)
{
    struct conn *asks = join();
    tell(asks, 0, REQUEST);
    waiting_stop(&waiting);
    waiting.stop_asked -= STOP_MS;
    cr_expect(!waiting_is_over(&waiting), "Redis has two seconds");
    waiting.stop_asked -= 2000;
    cr_expect(waiting_is_over(&waiting), "and they are over");
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
