/* Redis for those who may wait. A thread of the test plays a Redis that can be told what to do. */
#include "clock.h"
#include "options.h"
#include "redis_pool.h"
#include "unit.h"

#include <netdb.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { COMMAND_MS = 200 };

static struct redis_server server;
static int listener;

static struct redis_pool pool; /* of one, for most */

static void end(void)
{
    redis_pool_close(&pool);
    pool = (struct redis_pool){0};
    stand_in_end();
}

static void open_pool(int size)
{
    end();
    cr_assert(redis_pool_open(&pool, &server, size));
}

static void start(void)
{
    signal(SIGPIPE, SIG_IGN); /* as every server does */
    scratch_make();
    listener = stand_in_listen();
    server = (struct redis_server){.connect_ms = PATIENCE_MS, .command_ms = PATIENCE_MS};
    redis_parse_address(&server, stand_in_where());
    open_pool(1);
}

TestSuite(redis, .timeout = 60, .init = start, .fini = scratch_remove);

static const struct redis_command ping = {.count = 1, .words = {"PING"}, .lens = {4}};
#define PING "*1\r\n$4\r\nPING\r\n"

static struct redis *take(void)
{
    int why;
    return redis_pool_acquire(&pool, server.command_ms, &why);
}

/* Asks over a connection taken from the pool, and gives it back. */
static redisReply *ask(const struct redis_command *command, int *why)
{
    struct redis *redis = take();
    cr_assert(redis);
    redisReply *reply = redis_ask(redis, command, why);
    redis_pool_release(&pool, redis);
    return reply;
}

static void expect_string(const char *about, const char *text)
{
    int why = 0;
    redisReply *reply = ask(&ping, &why);
    cr_expect(reply, "%s: no reply: %d", about, why);
    if (reply)
        expect_span(about, ((struct span){reply->str, (size_t)reply->len}), text);
    freeReplyObject(reply);
}

static void expect_none(const char *about, int expected_why)
{
    int why = 0;
    redisReply *reply = ask(&ping, &why);
    cr_expect(!reply, "%s: a reply", about);
    expect_number(about, why, expected_why);
    freeReplyObject(reply);
}

/* ---- where Redis is ------------------------------------------------------------------------ */

static const char *address_of(const struct redis_server *found)
{
    static char text[128];
    char host[64], port[8];
    const struct sockaddr *address = (const struct sockaddr *)&found->address;
    if (address->sa_family == AF_UNIX) {
        snprintf(text, sizeof(text), "unix:%s", ((const struct sockaddr_un *)address)->sun_path);
        return text;
    }
    cr_assert(getnameinfo(address, found->address_size, host, sizeof(host), port, sizeof(port),
                          NI_NUMERICHOST | NI_NUMERICSERV) == 0);
    snprintf(text, sizeof(text), strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
    return text;
}

TestToEnd(redis, finds_redis_where_it_is_said_to_be)
{
    static const struct {
        const char *where, *address, *password, *user;
    } rows[] = {
        {"redis://ada:se%63ret@127.0.0.1:6379", "127.0.0.1:6379", "secret", "ada"},
        {"redis://a%3ab@127.0.0.1:6379", "127.0.0.1:6379", "", "a:b"},
        {"redis://127.0.0.1:6379", "127.0.0.1:6379", "", ""},
        {"redis://[::1]:1", "[::1]:1", "", ""},
        {"redis://:secret@127.0.0.1:6379", "127.0.0.1:6379", "secret", ""},
        {"redis://:s@e:c/r%20%25%C3%a4@[::1]:1", "[::1]:1", "s@e:c/r %\xc3\xa4", ""},
        {"unix:/run/:secret@redis", "unix:/run/:secret@redis", "", ""},
        {"127.0.0.1:6379", "127.0.0.1:6379", "", ""},
        {"127.0.0.1:1", "127.0.0.1:1", "", ""},
        {"127.0.0.1:65535", "127.0.0.1:65535", "", ""},
        {"[::1]:6379", "[::1]:6379", "", ""},
        {"::1:6379", "[::1]:6379", "", ""},
        {"unix:/run/redis.sock", "unix:/run/redis.sock", "", ""},
        {"unix:relative:6379", "unix:relative:6379", "", ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct redis_server found = {0};
        const char *right = redis_parse_address(&found, rows[i].where);
        cr_expect(!right, "%s: %s", rows[i].where, right);
        expect_text(rows[i].where, address_of(&found), rows[i].address);
        expect_text(rows[i].where, found.password, rows[i].password);
        expect_text(rows[i].where, found.user, rows[i].user);
    }
}

TestToEnd(redis, says_what_would_be_right)
{
    static const struct {
        const char *where, *right;
    } rows[] = {
        {"", "host:port, or unix:PATH"},
        {"6379", "host:port, or unix:PATH"},
        {"localhost", "host:port, or unix:PATH"},
        {":6379", "host:port, or unix:PATH"},
        {"127.0.0.1:", "host:port, with a port from 1 to 65535"},
        {"127.0.0.1:0", "host:port, with a port from 1 to 65535"},
        {"127.0.0.1:65536", "host:port, with a port from 1 to 65535"},
        {"127.0.0.1:-1", "host:port, with a port from 1 to 65535"},
        {"127.0.0.1:99999999999999999999", "host:port, with a port from 1 to 65535"},
        {"127.0.0.1:x", "host:port, with a port from 1 to 65535"},
        {"127.0.0.1:1x", "host:port, with a port from 1 to 65535"},
        {"[]:1", "a host that can be found"},
        {"[:1", "a host that can be found"},
        {"]:1", "a host that can be found"},
        {"[::1:1", "a host that can be found"},
        {"no such host:1", "a host that can be found"},
        {"unix:", "a path of 1 to 107 bytes"},
        {"redis://", "host:port, or unix:PATH"},
        {"redis://127.0.0.1", "host:port, or unix:PATH"},
        {"redis://127.0.0.1:6379/0", "host:port, with a port from 1 to 65535"},
        {"redis://:secret@", "host:port, or unix:PATH"},
        {"redis://@127.0.0.1:1", "redis://user:password@host:port"},
        {"redis://:@127.0.0.1:1", "redis://user:password@host:port"},
        {"redis://a%:b@127.0.0.1:1", "redis://user:password@host:port"},
        {"redis://user:@127.0.0.1:1", "redis://user:password@host:port"},
        {"redis://:a%@127.0.0.1:1", "redis://user:password@host:port"},
        {"redis://:a%4@127.0.0.1:1", "redis://user:password@host:port"},
        {"redis://:a%4x@127.0.0.1:1", "redis://user:password@host:port"},
        {"redis://:a%00@127.0.0.1:1", "redis://user:password@host:port"},
        {":secret@127.0.0.1:1", "a host that can be found"},
        {"zero:secret@127.0.0.1:1", "a host that can be found"}, /* sorts behind both schemes */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct redis_server found = {0};
        const char *right = redis_parse_address(&found, rows[i].where);
        cr_assert(right, "%s", rows[i].where);
        expect_text(rows[i].where, right, rows[i].right);
    }
}

TestToEnd(redis, a_path_has_at_most_107_bytes)
{
    struct redis_server found = {0};
    char where[200];
    snprintf(where, sizeof(where), "unix:%0107d", 0);
    cr_expect(!redis_parse_address(&found, where));
    snprintf(where, sizeof(where), "unix:%0108d", 0);
    expect_text("108", redis_parse_address(&found, where), "a path of 1 to 107 bytes");
}

TestToEnd(redis, a_host_has_at_most_255_bytes)
{
    struct redis_server found = {0};
    char where[400];
    snprintf(where, sizeof(where), "%0300d:1", 0);
    expect_text("300", redis_parse_address(&found, where), "host:port, or unix:PATH");
}

TestToEnd(redis, a_password_has_at_most_511_bytes)
{
    struct redis_server found = {0};
    char where[600];
    snprintf(where, sizeof(where), "redis://:%0511d@127.0.0.1:1", 0);
    cr_expect(!redis_parse_address(&found, where));
    expect_number("511", strlen(found.password), REDIS_MAX_PASSWORD);
    snprintf(where, sizeof(where), "redis://:%0512d@127.0.0.1:1", 0);
    expect_text("512", redis_parse_address(&found, where), "redis://user:password@host:port");
}

/* ---- a password ---------------------------------------------------------------------------- */

#define AUTH "*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n"

TestToEnd(redis, the_password_is_said_first_on_every_connection)
{
    strcpy(server.password, "secret");
    PLAY(listener, ACCEPTS, HEARS(AUTH), SAYS("+OK\r\n"), HEARS(PING), SAYS("+one\r\n"),
         HEARS(PING), SAYS("+two\r\n"), HANGS_UP, ACCEPTS, HEARS(AUTH), SAYS("+OK\r\n"),
         HEARS(PING), SAYS("+three\r\n"), SULKS);
    expect_string("first", "one");
    expect_string("the same connection", "two");
    cr_assert(comes(pool.all[0].fd, POLLIN, PATIENCE_MS));
    expect_string("a new one", "three");
}

/* Nothing is asked on a connection that was not let in. */
TestToEnd(redis, a_refused_password_ends_the_connection)
{
    static const struct {
        const char *says;
        int why;
    } rows[] = {
        {"-WRONGPASS no\r\n", REDIS_NOT_ADMITTED},
        {":1\r\n", REDIS_NOT_ADMITTED},
        {"-WRONGPASS no\r\n+OK\r\n", REDIS_NOT_ADMITTED},
        {"+OK\r\n+more\r\n", REDIS_NO_CONNECTION},
        {"rubbish\r\n", REDIS_NO_CONNECTION},
    };
    strcpy(server.password, "secret");
    for (size_t i = 0; i < COUNT(rows); i++) {
        open_pool(1);
        PLAY(listener, ACCEPTS, HEARS(AUTH), SAYS(rows[i].says), SULKS);
        expect_none(rows[i].says, rows[i].why);
        cr_expect(pool.all[0].fd < 0, "closed");
    }
}

/* ---- asking -------------------------------------------------------------------------------- */

TestToEnd(redis, nothing_is_opened_before_it_is_needed)
{
    open_pool(3);
    struct redis *redis = take();
    cr_expect(redis && redis->fd < 0);
    redis_pool_release(&pool, redis);
    cr_expect(!comes(listener, POLLIN, 0));
}

TestToEnd(redis, a_connection_is_opened_once_and_kept)
{
    PLAY(listener, ACCEPTS, HEARS(PING), SAYS("+one\r\n"), HEARS(PING), SAYS("+two\r\n"), SULKS);
    expect_string("first", "one");
    expect_string("second", "two");
}

TestToEnd(redis, words_may_hold_any_byte)
{
    static const struct redis_command echo = {
        .count = 3, .words = {"ECHO", "", "a\r\nbcd"}, .lens = {4, 0, 4}};
    int why;
    PLAY(listener, ACCEPTS, HEARS("*3\r\n$4\r\nECHO\r\n$0\r\n\r\n$4\r\na\r\nb\r\n"), SAYS(":1\r\n"),
         SULKS);
    redisReply *reply = ask(&echo, &why);
    cr_assert(reply && reply->type == REDIS_REPLY_INTEGER && reply->integer == 1);
    freeReplyObject(reply);
}

TestToEnd(redis, an_error_of_redis_is_a_reply)
{
    PLAY(listener, ACCEPTS, HEARS(PING), SAYS("-ERR unknown\r\n"), HEARS(PING), SAYS("+two\r\n"),
         SULKS);
    expect_string("an error", "ERR unknown");
    expect_string("the connection stays", "two");
}

TestToEnd(redis, a_reply_may_come_in_drops)
{
    PLAY(listener, ACCEPTS, HEARS(PING), DRIPS("+1\r\n"), HEARS(PING), SAYS("$5\r"), DRIPS("\nhe"),
         SAYS("llo\r\n"), SULKS);
    expect_string("four drops", "1");
    expect_string("pieces", "hello");
}

TestToEnd(redis, the_largest_reply_comes_whole)
{
    int why;
    PLAY(listener, ACCEPTS, HEARS(PING), SAYS(array_reply(REDIS_MAX_ELEMENTS, REDIS_MAX_STRING)),
         SULKS);
    redisReply *reply = ask(&ping, &why);
    cr_assert(reply);
    expect_number("elements", reply->elements, REDIS_MAX_ELEMENTS);
    for (size_t i = 0; i < reply->elements; i++)
        expect_number("length", reply->element[i]->len, REDIS_MAX_STRING);
    freeReplyObject(reply);
}

/* None of these is whole, but for the last two: what they claim is enough. */
TestToEnd(redis, a_reply_larger_than_a_page_can_be_is_a_503_at_once)
{
    const char *const replies[] = {
        "*22\r\n",
        "*2147483647\r\n",
        "*4294967296\r\n",
        "*2\r\n*0\r\n",
        "*2\r\n*1\r\n",
        "%1\r\n",
        array_reply(1, 17000) + strlen("*1\r\n"),
        array_reply(2, REDIS_MAX_STRING + 1),
    };
    for (size_t i = 0; i < COUNT(replies); i++) {
        open_pool(1);
        PLAY(listener, ACCEPTS, HEARS(PING), SAYS(replies[i]), SULKS);
        expect_none(replies[i], REDIS_NO_CONNECTION);
        cr_expect(pool.all[0].fd < 0, "closed");
    }
}

/* It is refused when more has come than a string may have, not when all has come. */
TestToEnd(redis, an_endless_reply_is_a_503_at_once)
{
    static const char *const begins[] = {"$1000000\r\n", "+", "*1\r\n$1000000\r\n", "*"};
    static char endless[20000];
    for (size_t i = 0; i < COUNT(begins); i++) {
        memset(endless, 'x', sizeof(endless) - 1);
        memcpy(endless, begins[i], strlen(begins[i]));
        open_pool(1);
        PLAY(listener, ACCEPTS, HEARS(PING), SAYS(endless), SULKS);
        expect_none(begins[i], REDIS_NO_CONNECTION);
    }
}

/* ---- a lost connection --------------------------------------------------------------------- */

TestToEnd(redis, a_connection_closed_meanwhile_costs_no_command)
{
    PLAY(listener, ACCEPTS, HEARS(PING), SAYS("+one\r\n"), HANGS_UP, ACCEPTS, HEARS(PING),
         SAYS("+two\r\n"), SULKS);
    expect_string("first", "one");
    cr_assert(comes(pool.all[0].fd, POLLIN, PATIENCE_MS)); /* its end has come */
    errno = EAGAIN;                                        /* left over from something else */
    expect_string("on a new connection", "two");
}

/* An unasked reply must not be taken for the next command's. */
TestToEnd(redis, a_connection_on_which_somebody_spoke_unasked_is_not_used)
{
    PLAY(listener, ACCEPTS, HEARS(PING), SAYS("+one\r\n"), AWAITS, SAYS("+late\r\n"), SULKS,
         ACCEPTS, HEARS(PING), SAYS("+two\r\n"), SULKS);
    expect_string("first", "one");
    stand_in_go_on();
    cr_assert(comes(pool.all[0].fd, POLLIN, PATIENCE_MS));
    expect_string("on a new connection", "two");
}

TestToEnd(redis, what_stands_behind_a_reply_is_nobodys)
{
    PLAY(listener, ACCEPTS, HEARS(PING), SAYS("+one\r\n+more\r\n"), SULKS, ACCEPTS, HEARS(PING),
         SAYS("+two\r\n"), SULKS);
    expect_string("first", "one");
    expect_string("on a new connection", "two");
}

TestToEnd(redis, a_command_whose_reply_was_lost_is_not_sent_again)
{
    static const struct redis_command echo = {.count = 1, .words = {"ECHO"}, .lens = {4}};
    int why;
    PLAY(listener, ACCEPTS, HEARS(PING), HANGS_UP, /* without a reply */ ACCEPTS,
         HEARS("*1\r\n$4\r\nECHO\r\n"), SAYS("+other\r\n"), SULKS);
    expect_none("lost", REDIS_NO_CONNECTION);
    redisReply *reply = ask(&echo, &why);
    cr_expect(reply, "the next command is the next one asked");
    freeReplyObject(reply);
}

TestToEnd(redis, half_a_reply_and_then_the_end_is_a_503)
{
    static const char *const halves[] = {"+", "$5\r\nhel", "*2\r\n:1\r\n", "$5\r\nhello\r"};
    for (size_t i = 0; i < COUNT(halves); i++) {
        open_pool(1);
        PLAY(listener, ACCEPTS, HEARS(PING), SAYS(halves[i]), HANGS_UP);
        expect_none(halves[i], REDIS_NO_CONNECTION);
        cr_expect(pool.all[0].fd < 0, "closed");
    }
}

TestToEnd(redis, rubbish_is_a_503_and_ends_the_connection)
{
    static const char *const rubbish[] = {"HTTP/1.1 400 Bad Request\r\n\r\n", "?\r\n", "\r\n",
                                          "*-2\r\n", "$x\r\n"};
    for (size_t i = 0; i < COUNT(rubbish); i++) {
        open_pool(1);
        PLAY(listener, ACCEPTS, HEARS(PING), SAYS(rubbish[i]), SULKS);
        expect_none(rubbish[i], REDIS_NO_CONNECTION);
    }
}

TestToEnd(redis, without_redis_it_is_a_503_until_there_is_one)
{
    close(listener);
    expect_none("refused", REDIS_NO_CONNECTION);
    unlink(stand_in_path());
    expect_none("no socket", REDIS_NO_CONNECTION);
    expect_none("still none", REDIS_NO_CONNECTION);
    listener = stand_in_listen();
    PLAY(listener, ACCEPTS, HEARS(PING), SAYS("+one\r\n"), SULKS);
    expect_string("there it is", "one");
}

TestToEnd(redis, a_tcp_port_where_nobody_listens_is_a_503)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* bound, but not listening */
    cr_assert(bind(taken, (struct sockaddr *)&address, size) == 0 &&
              getsockname(taken, (struct sockaddr *)&address, &size) == 0);
    server = (struct redis_server){.address_size = size, .connect_ms = 200, .command_ms = 200};
    memcpy(&server.address, &address, size);
    expect_none("refused", REDIS_NO_CONNECTION);
    close(taken);
}

/* A Unix socket whose queue is full says EAGAIN at once: it is tried again for as long as
 * connecting may take. */
TestToEnd(redis, a_full_queue_is_waited_for)
{
    int full[64], count = 0;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", stand_in_path());
    listen(listener, 0);
    for (; count < 64; count++) {
        full[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (connect(full[count], (struct sockaddr *)&address, sizeof(address)) < 0)
            break;
    }
    cr_assert(count < 64 && errno == EAGAIN);
    int64_t begun = clock_now_ms();
    server.connect_ms = 200;
    expect_none("full", REDIS_NO_CONNECTION);
    int64_t ms = clock_now_ms() - begun;
    cr_expect(ms >= 190 && ms < PATIENCE_MS / 2, "given up after %lld ms", (long long)ms);

    /* Those who were there before are accepted first. */
    static struct scene scenes[70];
    for (int i = 0; i < count; i++)
        scenes[i].act = ACCEPT;
    scenes[count] = (struct scene){ACCEPT, NULL};
    scenes[count + 1] = (struct scene){HEAR, PING};
    scenes[count + 2] = (struct scene){SAY, "+one\r\n"};
    scenes[count + 3] = (struct scene){SULK, NULL};
    server.connect_ms = PATIENCE_MS;
    stand_in_start(listener, scenes);
    expect_string("there is room", "one");
}

/* ---- a Redis that takes too long ----------------------------------------------------------- */

static void expect_late(const char *about)
{
    int64_t begun = clock_now_ms();
    server.command_ms = COMMAND_MS;
    expect_none(about, REDIS_NO_REPLY);
    server.command_ms = PATIENCE_MS;
    int64_t ms = clock_now_ms() - begun;
    cr_expect(ms >= COMMAND_MS - 10 && ms < 5 * COMMAND_MS, "%s: %lld ms", about, (long long)ms);
    cr_expect(pool.all[0].fd < 0, "a late reply must not be taken for the next command's");
}

TestToEnd(redis, silence_is_a_504)
{
    PLAY(listener, ACCEPTS, HEARS(PING), SULKS, ACCEPTS, HEARS(PING), SAYS("+two\r\n"), SULKS);
    expect_late("silence");
    expect_string("the next one is asked on a new connection", "two");
}

TestToEnd(redis, half_a_reply_and_then_silence_is_a_504)
{
    PLAY(listener, ACCEPTS, HEARS(PING), SAYS("$5\r\nhel"), SULKS);
    expect_late("half a reply");
}

/* Each drop comes in time, all of them together do not. */
TestToEnd(redis, a_dripping_reply_is_a_504_when_its_whole_time_is_over)
{
    static char drops[1000];
    sprintf(drops, "$900\r\n%0900d\r\n", 0);
    PLAY(listener, ACCEPTS, HEARS(PING), DRIPS(drops));
    expect_late("drops");
}

TestToEnd(redis, a_redis_that_accepts_nobody_is_a_504)
{
    expect_late("nobody accepts");
}

/* ---- the pool ------------------------------------------------------------------------------ */

TestToEnd(redis, the_connection_used_last_is_taken_first)
{
    open_pool(3);
    struct redis *a = take(), *b = take(), *c = take();
    cr_expect(a && b && c && a != b && b != c && a != c);
    redis_pool_release(&pool, b);
    redis_pool_release(&pool, a);
    redis_pool_release(&pool, c);
    cr_expect(take() == c);
    cr_expect(take() == a);
    cr_expect(take() == b);
}

TestToEnd(redis, whoever_waits_too_long_for_a_connection_gets_none)
{
    int why = 0;
    struct redis *only = take();
    int64_t begun = clock_now_ms();
    cr_expect(!redis_pool_acquire(&pool, COMMAND_MS, &why));
    int64_t ms = clock_now_ms() - begun;
    expect_number("why", why, REDIS_NO_CONNECTION);
    cr_expect(ms >= COMMAND_MS - 10 && ms < 5 * COMMAND_MS, "%lld ms", (long long)ms);
    redis_pool_release(&pool, only);
    cr_expect(take() == only);
}

static _Atomic int takers_done, most_at_once, at_once;

static void *take_and_give(void *unused)
{
    (void)unused;
    for (int i = 0; i < 200; i++) {
        struct redis *redis = take();
        if (!redis)
            return NULL;
        int now = ++at_once, most = most_at_once;
        while (now > most && !atomic_compare_exchange_weak(&most_at_once, &most, now))
            ;
        sched_yield();
        at_once--;
        redis_pool_release(&pool, redis);
    }
    takers_done++;
    return NULL;
}

TestToEnd(redis, threads_share_a_pool)
{
    pthread_t threads[8];
    open_pool(3);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_create(&threads[i], NULL, take_and_give, NULL);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    expect_number("all had their turns", takers_done, 8);
    cr_expect(most_at_once <= 3, "%d at once", most_at_once);
}

static void *give_back(void *redis)
{
    redis_pool_release(&pool, redis);
    return NULL;
}

TestToEnd(redis, a_connection_given_back_wakes_whoever_waits)
{
    pthread_t thread;
    int why;
    struct redis *only = take();
    pthread_create(&thread, NULL, give_back, only);
    cr_expect(redis_pool_acquire(&pool, PATIENCE_MS, &why) == only);
    pthread_join(thread, NULL);
}

enum { LINE = 5 };
static _Atomic int asked_in_line, served[LINE], served_count;

static void *wait_for_a_turn(void *number)
{
    int why = 0;
    asked_in_line++;
    struct redis *redis = redis_pool_acquire(&pool, PATIENCE_MS, &why);
    cr_expect(redis, "%d", why);
    served[served_count++] = (int)(intptr_t)number;
    poll(NULL, 0, 20); /* long enough for a newcomer to try */
    if (redis)
        redis_pool_release(&pool, redis);
    return NULL;
}

/* The one who gave it back asks again at once, and is the last in line. */
TestToEnd(redis, whoever_came_first_is_served_first)
{
    pthread_t threads[LINE];
    int why = 0;
    struct redis *only = take();
    for (intptr_t i = 0; i < LINE; i++) {
        pthread_create(&threads[i], NULL, wait_for_a_turn, (void *)i);
        while (asked_in_line <= i)
            sched_yield();
        poll(NULL, 0, 20); /* it has asked; now it is in line */
    }
    redis_pool_release(&pool, only);
    cr_expect(redis_pool_acquire(&pool, PATIENCE_MS, &why) == only);
    expect_number("served before", served_count, LINE);
    for (int i = 0; i < LINE; i++) {
        expect_number("in order", served[i], i);
        pthread_join(threads[i], NULL);
    }
}

/* Whoever gave up is not handed a connection any more. */
TestToEnd(redis, whoever_leaves_the_line_is_forgotten)
{
    pthread_t thread;
    int why = 0;
    struct redis *only = take();
    cr_expect(!redis_pool_acquire(&pool, 20, &why));
    pthread_create(&thread, NULL, wait_for_a_turn, (void *)(intptr_t)7);
    while (asked_in_line < 1)
        sched_yield();
    cr_expect(!redis_pool_acquire(&pool, 50, &why));
    redis_pool_release(&pool, only);
    pthread_join(thread, NULL);
    expect_number("served", served[0], 7);
    cr_expect(take() == only);
}

static _Atomic int refused_in_line;

static void *wait_in_vain(void *unused)
{
    int why = 0;
    (void)unused;
    cr_expect(!redis_pool_acquire(&pool, PATIENCE_MS, &why));
    expect_number("why", why, REDIS_NO_REPLY);
    refused_in_line++;
    return NULL;
}

/* Else each of them would wait for as long as the first, one after the other. */
TestToEnd(redis, whoever_is_in_line_shares_the_fate_of_the_one_before)
{
    pthread_t threads[4];
    int why = 0;
    server.command_ms = 1000; /* by then all are in line */
    PLAY(listener, ACCEPTS, HEARS(PING), SULKS);
    struct redis *only = take();
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_create(&threads[i], NULL, wait_in_vain, NULL);
    cr_expect(!redis_ask(only, &ping, &why));
    redis_pool_release(&pool, only);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    expect_number("told", refused_in_line, COUNT(threads));
    cr_expect(take() == only, "who comes later may try");
}

static void *wait_for_a_reply(void *unused)
{
    int why = 0;
    (void)unused;
    asked_in_line++;
    redisReply *reply = ask(&ping, &why);
    cr_expect(reply, "%d", why);
    freeReplyObject(reply);
    return NULL;
}

/* That one connection has ended says nothing about Redis. */
TestToEnd(redis, a_lost_reply_is_the_fate_of_nobody_else_in_line)
{
    pthread_t threads[3];
    int why = 0;
    PLAY(listener, ACCEPTS, HEARS(PING), AWAITS, HANGS_UP, ACCEPTS, HEARS(PING), SAYS("+1\r\n"),
         HEARS(PING), SAYS("+2\r\n"), HEARS(PING), SAYS("+3\r\n"), SULKS);
    struct redis *only = take();
    for (int i = 0; i < (int)COUNT(threads); i++)
        pthread_create(&threads[i], NULL, wait_for_a_reply, NULL);
    while (asked_in_line < (int)COUNT(threads))
        sched_yield();
    poll(NULL, 0, 20);
    stand_in_go_on();
    cr_expect(!redis_ask(only, &ping, &why));
    expect_number("why", why, REDIS_NO_CONNECTION);
    redis_pool_release(&pool, only);
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
}

/* ---- what it says -------------------------------------------------------------------------- */

static void tell(const struct redis_server *found, const char *error)
{
    redis_log(found, "says", error, strlen(error));
}

/* In a parent and its child, who remember together. */
static void tell_errors(const void *where)
{
    struct options o = unit_options();
    struct redis_server found;
    char error[1000];
    o.redis = where;
    redis_find(&found, &o);
    tell(&found, "OOM no");
    if (fork() == 0) {
        tell(&found, "OOM no");
        tell(&found, "READONLY no");
        tell(&found, "");
        _exit(0);
    }
    wait(NULL);
    tell(&found, "READONLY no");
    tell(&found, "\033[2J\r\n\\ \x7f\xff");
    memset(error, 'x', sizeof(error) - 1);
    error[sizeof(error) - 1] = '\0';
    tell(&found, error);
    error[200] = 'y'; /* the same, as far as it is told */
    tell(&found, error);
    for (int i = 0; i < 100; i++) {
        snprintf(error, sizeof(error), "%d", i);
        tell(&found, error);
    }
    _exit(0);
}

TestToEnd(redis, what_redis_refuses_is_told_once_each)
{
    char where[80], expected[2000];
    int at;
    snprintf(where, sizeof(where), "%s", stand_in_where());
    struct ending ending = run_apart(tell_errors, where);
    at = sprintf(expected,
                 "unit: Redis says: OOM no\nunit: Redis says: READONLY no\nunit: Redis says: \n"
                 "unit: Redis says: \\x1b[2J\\x0d\\x0a\\x5c \\x7f\\xff\nunit: Redis says: ");
    memset(expected + at, 'x', 200);
    expected[at += 200] = '\n';
    at++;
    for (int i = 0; i < 11; i++) /* sixteen in all */
        at += sprintf(expected + at, "unit: Redis says: %d\n", i);
    expect_text("said", ending.err, expected);
}

/* ---- at start ------------------------------------------------------------------------------ */

static void start_with(const void *where)
{
    struct options o = unit_options();
    struct redis_server found;
    o.redis = where;
    o.timeout_ms = 2000;
    redis_find(&found, &o);
    _exit(found.command_ms == 400 && found.connect_ms == 200 ? 0 : 1);
}

TestToEnd(redis, starting_says_nothing_if_redis_is_there)
{
    char where[80];
    snprintf(where, sizeof(where), "%s", stand_in_where());
    struct ending ending = run_apart(start_with, where);
    expect_number("status", ending.status, 0);
    expect_text("said", ending.err, "");
}

TestToEnd(redis, starting_says_once_that_nobody_is_there)
{
    char where[80], expected[300];
    unlink(stand_in_path());
    snprintf(where, sizeof(where), "%s", stand_in_where());
    struct ending ending = run_apart(start_with, where);
    snprintf(expected, sizeof(expected),
             "unit: no Redis at %s (No such file or directory): files are served, the guestbook "
             "answers 503 until there is one\n",
             where);
    expect_number("it starts all the same", ending.status, 0);
    expect_text("said", ending.err, expected);
}

static void start_and_show_password(const void *where)
{
    struct options o = unit_options();
    struct redis_server found;
    o.redis = where;
    redis_find(&found, &o);
    fprintf(stderr, "%s", found.password);
    _exit(0);
}

TestToEnd(redis, the_environment_may_hold_the_password)
{
    char where[80], url[100], long_one[600] = "";
    snprintf(where, sizeof(where), "%s", stand_in_where());
    setenv("REDISCLI_AUTH", "", 1);
    expect_text("empty: none", run_apart(start_and_show_password, where).err, "");
    setenv("REDISCLI_AUTH", "a%20b", 1);
    expect_text("as it is", run_apart(start_and_show_password, where).err, "a%20b");
    int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    cr_assert(bind(taken, (struct sockaddr *)&address, size) == 0 && listen(taken, 5) == 0 &&
              getsockname(taken, (struct sockaddr *)&address, &size) == 0);
    snprintf(url, sizeof(url), "redis://:other@127.0.0.1:%d", ntohs(address.sin_port));
    expect_text("the option first", run_apart(start_and_show_password, url).err, "other");
    memset(long_one, 'x', sizeof(long_one) - 1);
    setenv("REDISCLI_AUTH", long_one, 1);
    struct ending ending = run_apart(start_and_show_password, where);
    expect_number("status", ending.status, 1);
    expect_text("said", ending.err, "unit: REDISCLI_AUTH: a password of at most 511 bytes\n");
}

TestToEnd(redis, a_password_is_never_repeated)
{
    struct ending ending = run_apart(start_with, "redis://:secret@nowhere");
    expect_number("status", ending.status, 2);
    expect_text("said", ending.err, "unit: --redis 'nowhere': host:port, or unix:PATH\n");
}

#ifndef __SANITIZE_ADDRESS__ /* which needs memory itself */
static void start_without_memory(const void *where)
{
    const struct rlimit none = {0};
    setrlimit(RLIMIT_AS, &none);
    start_with(where);
}

TestToEnd(redis, starting_ends_where_there_is_no_memory)
{
    struct ending ending = run_apart(start_without_memory, "unix:/nowhere");
    expect_number("status", ending.status, 1);
    expect_text("line", ending.err, "unit: Cannot allocate memory\n");
}
#endif

TestToEnd(redis, starting_ends_with_a_place_that_is_none)
{
    struct ending ending = run_apart(start_with, "nowhere");
    expect_number("status", ending.status, 2);
    expect_text("said", ending.err, "unit: --redis 'nowhere': host:port, or unix:PATH\n");
}
