/* Redis for those who must not wait. The test is the event loop, and plays Redis, too: in turns.
 * What may happen to a connection, in which order, is tried in states/. */
#include "redis_async.h"
#include "process.h"
#include "unit.h"

#include <signal.h>

static struct redis_server server;
static struct redis_async redis;
static int listener;
static int peer = -1; /* Redis' end of the connection */

static int told[3];     /* how often each asker was told something, */
static int told_why[3]; /* and why there was no reply the last time */
static bool asks_again; /* the first one, after NULL */

static const struct redis_command ping = {.words = {SPAN("PING")}};
#define PING "*1\r\n$4\r\nPING\r\n"

static void answered(void *asker, const redisReply *reply, int why)
{
    int who = (int)((int *)asker - told);
    told[who]++;
    told_why[who] = why;
    if (!reply && who == 0 && asks_again) {
        asks_again = false;
        int refused = redis_async_ask(&redis, &ping, asker);
        if (refused)
            answered(asker, NULL, refused);
    }
}

static void start(void)
{
    static char where[sizeof("unix:/redis") + sizeof(scratch)];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    signal(SIGPIPE, SIG_IGN); /* as every server does */
    scratch_make();
    snprintf(where, sizeof(where), "unix:%s/redis", scratch);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/redis", scratch);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
              listen(listener, 1) == 0);
    server = (struct redis_server){.connect_ms = 1000, .command_ms = 2000};
    redis_parse_address(&server, where);
    redis_async_start(&redis, &server, answered);
}

static void finish(void)
{
    redis_async_close(&redis);
    scratch_remove();
}

TestSuite(redis_async, .timeout = 60, .init = start, .fini = finish);

static void ask(int who)
{
    expect_number("asked", redis_async_ask(&redis, &ping, &told[who]), 0);
}

static void turn(void)
{
    struct pollfd fd = {.fd = redis.fd, .events = redis.events};
    redis_async_flush(&redis);
    cr_assert(poll(&fd, 1, PATIENCE_MS) == 1, "nothing happens");
    redis_async_ready(&redis, (unsigned)fd.revents);
}

/* Connects, asks once, and is answered. */
static void connect_and_ask(void)
{
    ask(0);
    turn();
    cr_assert(redis.connected);
    redis_async_flush(&redis);
    peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    cr_assert(hear(peer, PING));
    say(peer, "+PONG\r\n");
    turn();
    expect_number("told", told[0], 1);
}

Test(redis_async, commands_leave_together)
{
    char bytes[200];
    connect_and_ask();
    for (int who = 0; who < 3; who++)
        ask(who);
    cr_expect(!comes(peer, POLLIN, 0), "they only pile up");
    redis_async_flush(&redis);
    cr_assert(comes(peer, POLLIN, PATIENCE_MS));
    expect_number("all of them", recv(peer, bytes, sizeof(bytes), 0), 3 * strlen(PING));
    expect_number("nothing is left to write", redis.events, POLLIN);
}

/* The loop may have been busy since it was asked, and has not sent the command yet. */
Test(redis_async, redis_is_not_silent_before_it_was_asked)
{
    connect_and_ask();
    ask(1);
    redis.deadline -= 5000;
    redis_async_expire(&redis);
    redis_async_flush(&redis);
    redis_async_expire(&redis);
    expect_number("told", told[1], 0);
    redis.deadline -= 5000;
    redis_async_expire(&redis);
    expect_number("told", told[1], 1);
    expect_number("why", told_why[1], REDIS_NO_REPLY);
}

/* The clock is read before the loop looks at Redis. */
Test(redis_async, a_reply_that_has_come_is_not_late)
{
    connect_and_ask();
    ask(1);
    redis_async_flush(&redis);
    say(peer, "+PONG\r\n");
    redis.deadline -= 5000;
    redis_async_expire(&redis);
    expect_number("told", told[1], 1);
    expect_number("why", told_why[1], 0);
}

/* Nor is a connection, however long the loop was busy meanwhile. */
Test(redis_async, a_connection_that_is_made_is_not_late)
{
    ask(0);
    redis.deadline -= 5000;
    redis_async_expire(&redis);
    expect_number("told", told[0], 0);
    cr_expect(redis.connected);
}

/* Redis is always thirty commands behind, and so there is always something left to be written. */
Test(redis_async, what_redis_has_taken_does_not_pile_up)
{
    enum { BEHIND = 30, COMMANDS = 500 };
    static char big[16 * 1024], taken[sizeof(big)];
    static const struct redis_command large = {.words = {SPAN("ECHO"), {big, sizeof(big)}}};
    connect_and_ask();
    for (int i = 0; i < COMMANDS; i++) {
        expect_number("asked", redis_async_ask(&redis, &large, &told[0]), 0);
        redis_async_flush(&redis);
        for (size_t left = i < BEHIND ? 0 : sizeof(big); left > 0;) {
            cr_assert(comes(peer, POLLIN, PATIENCE_MS));
            left -= (size_t)recv(peer, taken, left, 0);
            redis_async_flush(&redis);
        }
    }
    cr_expect(redis.out.buffer.size < 4 * BEHIND * sizeof(big), "%zu bytes", redis.out.buffer.size);
}

Test(redis_async, closing_answers_everybody_even_those_who_ask_again)
{
    connect_and_ask();
    ask(0);
    ask(1);
    asks_again = true;
    redis_async_close(&redis);
    expect_number("the one who asked again was told twice", told[0], 3);
    expect_number("the other one once", told[1], 1);
    expect_number("why", told_why[1], REDIS_NO_CONNECTION);
    expect_number("nothing to watch", redis.fd, -1);
}
