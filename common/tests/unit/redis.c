/* Redis for those who may wait: its address, and the line before the pool. What it may do is tried
 * from outside, in servers/misbehaving_redis.c. */
#include "redis_pool.h"
#include "unit.h"

#include <arpa/inet.h>
#include <netdb.h>

static struct redis_server server; /* nobody connects to it */
static struct redis_pool pool;     /* of one */

static void end(void)
{
    redis_pool_close(&pool);
}

static void start(void)
{
    redis_pool_open(&pool, &server, 1);
}

TestSuite(redis, .timeout = 60, .init = start);

static struct redis *take(void)
{
    int why;
    return redis_pool_acquire(&pool, PATIENCE_MS, &why);
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

#define DIGITS_50  "01234567890123456789012345678901234567890123456789"
#define DIGITS_100 DIGITS_50 DIGITS_50

/* Or says what would be right. */
TestToEnd(redis, finds_redis_where_it_is_said_to_be)
{
    static const struct {
        const char *where, *address, *right;
    } rows[] = {
        {"unix:/run/:secret@redis", "unix:/run/:secret@redis", NULL},
        {"127.0.0.1:6379", "127.0.0.1:6379", NULL},
        {"[::1]:6379", "[::1]:6379", NULL},
        {"::1:6379", "[::1]:6379", NULL},
        {"unix:relative:6379", "unix:relative:6379", NULL},
        {"", NULL, "host:port, or unix:PATH"},
        {"localhost", NULL, "host:port, or unix:PATH"},
        {":6379", NULL, "host:port, or unix:PATH"},
        {"127.0.0.1:", NULL, "host:port, with a port from 1 to 65535"},
        {"127.0.0.1:0", NULL, "host:port, with a port from 1 to 65535"},
        {"127.0.0.1:65536", NULL, "host:port, with a port from 1 to 65535"},
        {"127.0.0.1:99999999999999999999", NULL, "host:port, with a port from 1 to 65535"},
        {"127.0.0.1:1x", NULL, "host:port, with a port from 1 to 65535"},
        {"[]:1", NULL, "a host that can be found"},
        {"[::1:1", NULL, "a host that can be found"},
        {"unix:", NULL, "a path of 1 to 107 bytes"},
        {"unix:" DIGITS_100 "1234567", "unix:" DIGITS_100 "1234567", NULL},
        {"unix:" DIGITS_100 "12345678", NULL, "a path of 1 to 107 bytes"},
        {DIGITS_100 DIGITS_100 DIGITS_50 "123456:1", NULL, "host:port, or unix:PATH"},
        {"redis://127.0.0.1:1", NULL, "a host that can be found"},
        {"ada:secret@127.0.0.1:1", NULL, "a host that can be found"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct redis_server found = {0};
        const char *right = redis_parse_address(&found, rows[i].where);
        expect_text(rows[i].where, right, rows[i].right);
        if (!right)
            expect_text(rows[i].where, address_of(&found), rows[i].address);
    }
}

/* Nobody listens there, but it is one of the ports from which the kernel chooses our own. Neither
 * an open connection nor one in TIME_WAIT may keep it from Redis. */
TestToEnd(redis, does_not_take_itself_for_redis)
{
    enum { ATTEMPTS = 60000 }; /* several for each of these ports */
    struct redis_server nobody = {.connect_ms = PATIENCE_MS, .command_ms = PATIENCE_MS};
    char where[32], both_ends[32], line[256];
    int fd = -1, port = 40000 + getpid() % 10000 * 2;
    unsigned here = htonl(INADDR_LOOPBACK);
    snprintf(where, sizeof(where), "127.0.0.1:%d", port);
    snprintf(both_ends, sizeof(both_ends), "%08X:%04X %08X:%04X", here, port, here, port);
    cr_assert(!redis_parse_address(&nobody, where));
    for (int i = 0; i < ATTEMPTS && fd < 0; i++)
        fd = redis_connect(&nobody, 0);
    expect_number("connected", fd, -1);
    FILE *table = fopen("/proc/net/tcp", "re");
    while (fgets(line, sizeof(line), table))
        cr_expect(!strstr(line, both_ends), "it keeps the port: %s", line);
    fclose(table);
}

/* ---- the pool ------------------------------------------------------------------------------ */

enum { LINE = 5 };
static _Atomic int asked_in_line, served[LINE], served_count;

static void *wait_for_a_turn(void *number)
{
    int why = 0;
    asked_in_line++;
    struct redis *redis = redis_pool_acquire(&pool, PATIENCE_MS, &why);
    cr_expect(redis && why == 0, "%d", why);
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

/* poll(2) does not set errno when the time is over. */
TestToEnd(redis, half_a_reply_is_late_though_a_call_was_interrupted_before)
{
    int why, ends[2];
    cr_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    struct redis half = {.fd = ends[0], .server = &server, .reader = redisReaderCreate()};
    say(ends[1], "$5\r\nha");
    errno = EINTR;
    cr_expect(!redis_ask(&half, &(struct redis_command){.words = {SPAN("PING")}}, &why));
    expect_number("why", why, REDIS_NO_REPLY);
}
