/* How chapters 1 to 5 serve one client: on a blocking descriptor that ticks, with Redis asked over
 * a pool. The test is the client; a thread serves. What a client sees of deadlines and
 * of Redis is tested from outside, in servers/. */
#include "serve.h"
#include "clock.h"
#include "unit.h"

#include <signal.h>
#include <stdatomic.h>

static struct options options;
static struct worker worker;
static struct redis_server server;
static struct redis_pool pool;
static int client = -1, served = -1;
static atomic_int crowd; /* so many wait */

static int claim_waiting_clients(const struct worker *unused)
{
    (void)unused;
    return crowd;
}

static void open_client(void)
{
    const struct timeval tick = {.tv_usec = TICK_MS * 1000L};
    tcp_pair(&served, &client);
    cr_assert(setsockopt(served, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof(tick)) == 0 &&
              setsockopt(served, SOL_SOCKET, SO_SNDTIMEO, &tick, sizeof(tick)) == 0);
}

static void start(void)
{
    signal(SIGPIPE, SIG_IGN);
    unit_start_worker(&worker, &options, claim_waiting_clients);
    server = (struct redis_server){.connect_ms = 200, .command_ms = 400};
    redis_parse_address(&server, stand_in_where());
    cr_assert(redis_pool_open(&pool, &server, 1));
    open_client();
}

static void finish(void)
{
    redis_pool_close(&pool);
    scratch_remove();
}

TestSuite(serve, .timeout = 60, .init = start, .fini = finish);

static pthread_t thread;

static void *serve(void *busy)
{
    if (busy)
        serve_unavailable(&worker, served);
    else
        serve_client(&worker, served, &pool);
    return NULL;
}

static void begin(void)
{
    cr_assert(pthread_create(&thread, NULL, serve, NULL) == 0);
}

static void begin_busy(void)
{
    cr_assert(pthread_create(&thread, NULL, serve, "busy") == 0);
}

/* Waits until the client has been served, and that it left nothing behind. */
static void end(void)
{
    pthread_join(thread, NULL);
    expect_number("closed", fcntl(served, F_GETFD), -1);
    for (int state = 0; state < BOARD_STATES; state++)
        expect_number("left on the board", worker.slot->connections_by_state[state], 0);
}

/* All that comes until the server closes. */
static const char *heard(void)
{
    static char text[100000];
    size_t len = 0;
    ssize_t n;
    while (len < sizeof(text) - 1 && (n = recv(client, text + len, sizeof(text) - 1 - len, 0)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    return text;
}

/* Waits for as much as ends so. */
static void hear_until(const char *end_of)
{
    char text[4000];
    size_t len = 0, end_len = strlen(end_of);
    while (len < end_len || memcmp(text + len - end_len, end_of, end_len) != 0) {
        cr_assert(len < sizeof(text) && comes(client, POLLIN, PATIENCE_MS), "no \"%s\" comes",
                  end_of);
        ssize_t n = recv(client, text + len, sizeof(text) - len, 0);
        cr_assert(n > 0);
        len += (size_t)n;
    }
}

#define GET(path)      "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define GET_LAST(path) "GET " path " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

/* ---- served -------------------------------------------------------------------------------- */

Test(serve, a_reader_that_pauses_gets_all_of_a_large_file_though_somebody_waits)
{
    static char large[3000000];
    int little = 32768; /* on the way: what is not read soon fills it */
    memset(large, 'L', sizeof(large));
    scratch_bytes("public/large", large, sizeof(large));
    cr_assert(setsockopt(served, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)) == 0);
    crowd = 1;
    begin();
    say(client, GET_LAST("/large"));
    size_t len = 0;
    for (;;) {
        ssize_t n = recv(client, large, sizeof(large), 0);
        if (n <= 0)
            break;
        if (len == 0)
            poll(NULL, 0, 5 * TICK_MS); /* ticks without progress, but not --timeout of them */
        len += (size_t)n;
    }
    end();
    cr_expect(len > sizeof(large) && len < sizeof(large) + 1000, "%zu bytes", len);
}

/* ---- politeness ---------------------------------------------------------------------------- */

Test(serve, a_fresh_client_out_of_a_crowd_may_be_silent_for_two_seconds)
{
    options.timeout_ms = 1000000;
    crowd = 101;
    int64_t begun = clock_now_ms();
    begin();
    expect_text("silently", heard(), "");
    int64_t ms = clock_now_ms() - begun;
    cr_expect(ms >= 2000 && ms < 2000 + PATIENCE_MS / 2, "after %lld ms", (long long)ms);
    end();
}

static int stays; /* how often it was said that the client stays */

static void note_that_it_stays(void)
{
    stays++;
}

Test(serve, that_a_client_is_waited_for_is_said_once)
{
    worker.before_waiting = note_that_it_stays;
    begin();
    say(client, "GET /a.txt HTTP/1.1\r\n");
    comes(client, POLLIN, TICK_MS);
    say(client, "Host: a\r\n\r\n");
    hear_until("0123456789");
    say(client, GET_LAST("/a.txt"));
    expect_part("the last", heard(), "0123456789");
    end();
    expect_number("waited", stays, 1);
}

Test(serve, that_a_client_is_waited_for_is_not_said_of_one_who_asks_and_leaves)
{
    worker.before_waiting = note_that_it_stays;
    say(client, GET_LAST("/a.txt"));
    begin();
    expect_part("served", heard(), "0123456789");
    end();
    expect_number("not waited", stays, 0);
}

/* A Unix socket, whose bytes leave the sender's buffer when they are read. */
static void open_slow_client(void)
{
    const struct timeval tick = {.tv_usec = TICK_MS * 1000L};
    int ends[2], least = 1;
    cr_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    served = ends[0];
    client = ends[1];
    cr_assert(setsockopt(served, SOL_SOCKET, SO_SNDTIMEO, &tick, sizeof(tick)) == 0 &&
              setsockopt(served, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)) == 0);
}

static void be_held_up(int unused)
{
    (void)unused;
    poll(NULL, 0, 3000);
}

/* It takes 16 KB a second, twice as much as it has to. */
Test(serve, a_reader_is_not_blamed_for_the_time_in_which_the_server_was_held_up)
{
    enum { SOME_BYTES = 4000, EVERY_MS = 250, BEFORE = 8000, ALL = 3 * 16000 };
    static const char page[ALL / 3]; /* it is sent from memory */
    char bytes[SOME_BYTES];
    size_t got = 0;
    ssize_t n = 0;
    bool held_up = false;
    options.timeout_ms = 1000;
    crowd = 1;
    signal(SIGUSR1, be_held_up);
    scratch_bytes("public/page", page, sizeof(page));
    open_slow_client();
    begin();
    say(client, GET("/page") GET("/page") GET("/page"));
    while (got < ALL && (n = recv(client, bytes, sizeof(bytes), 0)) > 0) {
        got += (size_t)n;
        if (got > BEFORE && !held_up)
            held_up = pthread_kill(thread, SIGUSR1) == 0;
        poll(NULL, 0, EVERY_MS);
    }
    cr_expect(got >= ALL, "after %zu bytes: %s", got, n < 0 ? strerror(errno) : "the end");
    close(client);
    end();
}

/* ---- nobody to serve ----------------------------------------------------------------------- */

Test(serve, a_busy_server_says_so_once_whatever_it_is_told)
{
    static char long_one[4000]; /* which takes more than one read */
    const char *const requests[] = {
        GET("/a.txt"),
        GET("/a.txt") GET("/a.txt"),
        "POST /guestbook HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
        long_one,
    };
    snprintf(long_one, sizeof(long_one), "GET / HTTP/1.1\r\nHost: a\r\nX: %03000d\r\n\r\n", 0);
    for (size_t i = 0; i < COUNT(requests); i++) {
        say(client, requests[i]);
        begin_busy();
        const char *text = heard();
        end();
        cr_expect(strncmp(text, "HTTP/1.1 503 ", 13) == 0, "%s", text);
        cr_expect(!strstr(text + 13, "HTTP/1.1 "), "%s", text);
        expect_part("503", text, "\r\nRetry-After: 1\r\n");
        expect_part("503", text, "\r\nConnection: close\r\n");
        close(client);
        open_client();
    }
}
