/* Redis for those who must not wait. The test is the event loop, and plays Redis, too: in turns. */
#include "redis_async.h"
#include "clock.h"
#include "unit.h"

#include <signal.h>

static struct redis_server server;
static struct redis_async redis;
static int listener;
static int peer = -1; /* Redis' end of the connection */

/* ---- those who ask ------------------------------------------------------------------------- */

enum { ASKERS = 8 };

/* What each asker was told, in the order of telling. */
static struct {
    int asker;
    char text[20]; /* "" for NULL */
    int why;
} told[32];
static int told_count;
static int askers[ASKERS]; /* addresses for askers; the value: how often to ask again after NULL */

static const struct redis_command ping = {.count = 1, .words = {"PING"}, .lens = {4}};
#define PING "*1\r\n$4\r\nPING\r\n"

static void answered(void *asker, const redisReply *reply, int why)
{
    int who = (int)((int *)asker - askers);
    cr_assert(told_count < (int)COUNT(told));
    told[told_count].asker = who;
    told[told_count].why = why;
    if (reply && reply->type == REDIS_REPLY_INTEGER)
        snprintf(told[told_count].text, sizeof(told[0].text), "%lld", reply->integer);
    else if (reply)
        snprintf(told[told_count].text, sizeof(told[0].text), "%.*s", (int)reply->len, reply->str);
    told_count++;
    if (!reply && askers[who] > 0) {
        askers[who]--;
        int refused = redis_async_ask(&redis, &ping, asker);
        if (refused)
            answered(asker, NULL, refused);
    }
}

static void start(void)
{
    signal(SIGPIPE, SIG_IGN); /* as every server does */
    scratch_make();
    listener = stand_in_listen();
    server = (struct redis_server){.connect_ms = 1000, .command_ms = 2000};
    redis_parse_address(&server, stand_in_where());
    redis_async_start(&redis, &server, answered);
}

static void nobody_is_told(void *asker, const redisReply *reply, int why)
{
    (void)asker, (void)reply, (void)why;
}

static void finish(void)
{
    redis.answered = nobody_is_told;
    redis_async_close(&redis);
    scratch_remove();
}

TestSuite(redis_async, .timeout = 30, .init = start, .fini = finish);

static void ask(int who)
{
    expect_number("asked", redis_async_ask(&redis, &ping, &askers[who]), 0);
}

/* What was told since the last time. */
static int told_seen;

static void expect_told(int who, const char *text)
{
    cr_assert(told_count > told_seen, "nobody was told anything");
    expect_number("who", told[told_seen].asker, who);
    expect_text("what", told[told_seen].text, text);
    told_seen++;
}

static void expect_none(int who, int why)
{
    cr_assert(told_count > told_seen, "nobody was told anything");
    expect_number("who", told[told_seen].asker, who);
    expect_text("what", told[told_seen].text, "");
    expect_number("why", told[told_seen].why, why);
    told_seen++;
}

static void expect_silence(void)
{
    expect_number("told", told_count, told_seen);
}

/* ---- a loop's round ------------------------------------------------------------------------ */

/* One round: false if nothing happened within `ms`. */
static bool turn(int ms)
{
    int before = told_count;
    redis_async_flush(&redis);
    if (told_count > before)
        return true;
    struct pollfd fd = {.fd = redis.fd, .events = redis.events};
    if (redis.fd < 0 || poll(&fd, 1, ms) <= 0)
        return false;
    redis_async_ready(&redis, (unsigned)fd.revents);
    return true;
}

/* Rounds until somebody has been told something. */
static void turn_until_told(int count)
{
    while (told_count < told_seen + count)
        cr_assert(turn(PATIENCE_MS), "nothing happens");
}

static void accept_redis(void)
{
    cr_assert(comes(listener, POLLIN, PATIENCE_MS));
    if (peer >= 0)
        close(peer);
    peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    cr_assert(peer >= 0);
}

static void lose_redis(void)
{
    close(peer);
    peer = -1;
}

static void send_once_connected(void)
{
    while (!redis.connected)
        cr_assert(turn(PATIENCE_MS));
    redis_async_flush(&redis);
}

/* Connects, with `count` commands of the first askers sent. */
static void connect_and_ask(int count)
{
    for (int who = 0; who < count; who++)
        ask(who);
    accept_redis();
    send_once_connected();
    for (int who = 0; who < count; who++)
        cr_assert(hear(peer, PING));
}

static void expect_reply(int who, const char *bytes, const char *text)
{
    say(peer, bytes);
    turn_until_told(1);
    expect_told(who, text);
}

/* ---- asking -------------------------------------------------------------------------------- */

Test(redis_async, commands_leave_together)
{
    char bytes[200];
    connect_and_ask(1);
    expect_reply(0, "+OK\r\n", "OK");
    for (int who = 0; who < 5; who++)
        ask(who);
    cr_expect(!comes(peer, POLLIN, 0), "they only pile up");
    redis_async_flush(&redis);
    cr_assert(comes(peer, POLLIN, PATIENCE_MS));
    expect_number("all of them", recv(peer, bytes, sizeof(bytes), 0), 5 * strlen(PING));
    expect_number("nothing is left to write", redis.events, POLLIN);
    redis_async_close(&redis);
    for (int who = 0; who < 5; who++)
        expect_none(who, REDIS_NO_CONNECTION);
}

/* An array of strings of so many bytes. */
static const char *array_reply(int count, int len)
{
    char *reply = malloc((size_t)count * ((size_t)len + 20) + 20), *at = reply;
    cr_assert(reply);
    at += sprintf(at, "*%d\r\n", count);
    for (int i = 0; i < count; i++)
        at += sprintf(at, "$%d\r\n%0*d\r\n", len, len, 0);
    return reply;
}

Test(redis_async, a_large_reply_is_read_in_one_round)
{
    const char *large = array_reply(4, 15000);
    int turns = 0;
    connect_and_ask(1);
    send_all(peer, large, strlen(large));
    while (turn(0))
        turns++;
    expect_number("told", told_count, 1);
    expect_number("rounds", turns, 1);
}

Test(redis_async, the_longest_string_may_lack_its_last_byte)
{
    const char *longest = array_reply(1, REDIS_MAX_STRING);
    size_t len = strlen(longest);
    connect_and_ask(1);
    send_all(peer, longest, len - 1);
    while (turn(0))
        ;
    expect_silence();
    send_all(peer, longest + len - 1, 1);
    turn_until_told(1);
    expect_number("why", told[0].why, 0);
}

/* ---- a Redis that takes too long ----------------------------------------------------------- */

Test(redis_async, what_was_overdue_once_is_forgotten)
{
    connect_and_ask(1);
    redis.heard -= 5000;
    redis_async_expire(&redis);
    expect_none(0, REDIS_NO_REPLY);
    ask(1);
    accept_redis();
    lose_redis();
    turn_until_told(1);
    expect_none(1, REDIS_NO_CONNECTION);
}

/* ---- connecting ---------------------------------------------------------------------------- */

/* The loop may have been busy: then the connection has been made, and nobody has looked. */
Test(redis_async, a_connection_that_was_made_in_time_is_not_given_up)
{
    ask(0);
    redis.connect_deadline -= 5000;
    redis_async_expire(&redis);
    cr_expect(redis.connected);
    redis_async_close(&redis);
    expect_none(0, REDIS_NO_CONNECTION);
}

/* The loop may have been busy since it was asked, and has not sent the command yet. */
Test(redis_async, redis_is_not_silent_before_it_was_asked)
{
    connect_and_ask(1);
    expect_reply(0, "+zero\r\n", "zero");
    ask(1);
    redis.heard -= 5000;
    redis_async_expire(&redis);
    expect_silence();
    redis_async_flush(&redis);
    redis_async_expire(&redis);
    expect_silence();
    redis_async_close(&redis);
    expect_none(1, REDIS_NO_CONNECTION);
}

/* Redis is always thirty commands behind, and so there is always something left to be written. */
Test(redis_async, what_redis_has_taken_does_not_pile_up)
{
    enum { BEHIND = 30, COMMANDS = 500 };
    static char big[16 * 1024], taken[sizeof(big)];
    static const struct redis_command large = {
        .count = 2, .words = {"ECHO", big}, .lens = {4, sizeof(big)}};
    connect_and_ask(1);
    say(peer, "+OK\r\n");
    turn_until_told(1);
    redis.answered = nobody_is_told;
    for (int i = 0; i < COMMANDS; i++) {
        expect_number("asked", redis_async_ask(&redis, &large, &askers[0]), 0);
        redis_async_flush(&redis);
        for (size_t left = i < BEHIND ? 0 : sizeof(big); left > 0;) {
            cr_assert(comes(peer, POLLIN, PATIENCE_MS));
            left -= (size_t)recv(peer, taken, left, 0);
            redis_async_flush(&redis);
        }
    }
    cr_expect(redis.out.size < 4 * BEHIND * sizeof(big), "%zu bytes", redis.out.size);
}

Test(redis_async, the_time_out_does_not_end_before_the_deadline)
{
    int64_t now;
    int ms;
    ask(0);
    do { /* until both looks at the clock see the same time */
        now = clock_now_ms();
        ms = redis_async_timeout(&redis);
    } while (clock_now_ms() != now);
    expect_number("ms", ms, redis.connect_deadline - now + 1);
}

/* ---- asking from within the news ----------------------------------------------------------- */

Test(redis_async, whoever_hears_of_a_lost_connection_may_ask_again_at_once)
{
    askers[0] = askers[2] = 1;
    connect_and_ask(3);
    lose_redis();
    turn_until_told(3);
    expect_none(0, REDIS_NO_CONNECTION);
    expect_none(1, REDIS_NO_CONNECTION);
    expect_none(2, REDIS_NO_CONNECTION);
    cr_expect(redis.fd >= 0);
    expect_number("a new connection", redis.opened, 2);
    accept_redis();
    send_once_connected();
    say(peer, "+again 0\r\n+again 2\r\n");
    turn_until_told(2);
    expect_told(0, "again 0");
    expect_told(2, "again 2");
    redis_async_close(&redis);
    expect_silence();
}

/* A descriptor found readable and writable at once: the end is read, somebody asks again, and the
 * new connection must not be written to for the old one's sake. */
Test(redis_async, what_was_seen_of_the_old_connection_does_not_count_for_the_new_one)
{
    askers[0] = 1;
    connect_and_ask(1);
    lose_redis();
    cr_assert(comes(redis.fd, POLLIN, PATIENCE_MS));
    redis_async_ready(&redis, POLLIN | POLLOUT | POLLHUP);
    expect_none(0, REDIS_NO_CONNECTION);
    expect_number("a new connection", redis.opened, 2);
    cr_expect(!redis.connected, "which is not made yet");
    redis_async_close(&redis);
    expect_none(0, REDIS_NO_CONNECTION);
}

/* A client's event came first in a round, and found the connection lost: the old one's own event
 * is still to come. */
Test(redis_async, what_was_seen_of_the_old_connection_does_not_make_the_new_one)
{
    connect_and_ask(1);
    expect_reply(0, "+PONG\r\n", "PONG");
    lose_redis();
    cr_assert(comes(redis.fd, POLLIN, PATIENCE_MS));
    ask(1);
    expect_number("a new connection", redis.opened, 2);
    redis_async_ready(&redis, POLLIN | POLLHUP);
    cr_expect(!redis.connected, "which is not made yet");
    expect_silence();
    redis_async_close(&redis);
    expect_none(1, REDIS_NO_CONNECTION);
}

Test(redis_async, whoever_hears_of_a_vanished_redis_may_ask_again_at_once)
{
    askers[0] = 5;
    connect_and_ask(2);
    close(listener);
    unlink(stand_in_path());
    lose_redis();
    turn_until_told(7);
    for (int i = 0; i < 6; i++)
        expect_none(0, REDIS_NO_CONNECTION); /* five times without a connection, each told by
                                                redis_async_ask() */
    expect_none(1, REDIS_NO_CONNECTION);
    expect_number("nothing to watch", redis.fd, -1);
    expect_silence();
}

Test(redis_async, closing_answers_everybody_even_those_who_ask_again)
{
    int times[ASKERS] = {0};
    askers[0] = 1;
    connect_and_ask(2);
    redis_async_close(&redis);
    for (; told_seen < told_count; told_seen++) {
        expect_number("why", told[told_seen].why, REDIS_NO_CONNECTION);
        times[told[told_seen].asker]++;
    }
    expect_number("the one who asked again was told twice", times[0], 2);
    expect_number("the other one once", times[1], 1);
    expect_number("nothing to watch", redis.fd, -1);
}
