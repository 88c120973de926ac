/* One connection: fed through a socket whose other end the test holds. The site is that of
 * unit.h. Which response a request gets is a row of wire_cases.h. */
#include "conn.h"
#include "process.h"
#include "unit.h"

/* ---- a worker, a connection, and its client ------------------------------------------------ */

static struct options options;
static struct board *board;
static struct worker worker;
static struct conn conn = {.fd = -1};
static int client = -1;      /* the other end */
static struct buffer others; /* what others have of the budget */
static bool over_tcp;        /* where bytes take a moment */
static bool crowd;           /* does somebody wait? */

static int count_waiting(const struct worker *unused)
{
    (void)unused;
    return crowd;
}

static char large[600000]; /* what is in public/large */

static void start(void)
{
    board = unit_start_worker(&worker, &options, count_waiting);
    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (char)('a' + i % 7 + i / 7 % 11);
    scratch_bytes("public/large", large, sizeof(large));
    scratch_bytes("public/page", large, 10000);
}

TestSuite(conn, .timeout = 60, .init = start, .fini = scratch_remove);

/* Closes both ends, if there are any. */
static void end(void)
{
    if (conn.fd < 0)
        return;
    if (client >= 0)
        close(client);
    client = -1;
    conn_close(&conn);
    for (int state = 0; state < CONN_STATES; state++)
        expect_number("left on the board", worker.slot->connections_by_state[state], 0);
    expect_number("left of the budget", buffer_charged(), others.size);
}

/* A pair of Unix sockets: what one end sends is at the other at once. */
static void open_pair(void)
{
    int fds[2];
    end();
    over_tcp = false;
    cr_assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    set_blocking(fds[0], false);
    conn_open(&conn, fds[0], &worker);
    client = fds[1];
}

/* What a loop does: advance while the descriptor has what the state waits for, within `ms`. */
static enum conn_state go_within(int ms)
{
    while (conn.state != CONN_ASKING && conn.state != CONN_DONE &&
           comes(conn.fd, conn.state == CONN_WRITING ? POLLOUT : POLLIN, ms))
        conn_advance(&conn);
    return conn.state;
}

static enum conn_state go(void)
{
    return go_within(0);
}

/* Says something, and lets the connection go as far as it can. */
static enum conn_state tell(const char *bytes)
{
    say(client, bytes);
    cr_assert(comes(conn.fd, POLLIN, PATIENCE_MS));
    return go();
}

static enum conn_state reply_with(const char *bytes)
{
    redisReply *reply = reply_of(bytes, strlen(bytes));
    conn_reply(&conn, reply, 0);
    freeReplyObject(reply);
    return conn.state;
}

/* Sees a guestbook's questions answered. */
static enum conn_state reply_to_all(void)
{
    reply_with(":7\r\n");
    reply_with("$1\r\n7\r\n");
    return reply_with("*0\r\n");
}

/* All that has come for the client. It stays until the next call. */
static const char *heard(void)
{
    static char text[1 << 20];
    size_t len = 0;
    ssize_t n;
    if (over_tcp)
        cr_assert(comes(client, POLLIN, PATIENCE_MS));
    while (len < sizeof(text) - 1 &&
           (n = recv(client, text + len, sizeof(text) - 1 - len, MSG_DONTWAIT)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    return text;
}

#define GET(path)      "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define GET_LAST(path) "GET " path " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

/* ---- a request's life ---------------------------------------------------------------------- */

/* From outside, a busy machine might be taken for a long deadline. The clock's hand is coarse. */
static void expect_deadline(enum conn_state state, int ms)
{
    int64_t left = conn.deadline - clock_now_ms();
    expect_number("state", conn.state, state);
    cr_expect(left > ms - 1000 && left <= ms, "%d: %lld ms left of %d", state, (long long)left, ms);
}

TestToEnd(conn, every_state_has_its_time)
{
    options.timeout_ms = 100000;
    options.keep_alive_ms = 7000;
    open_pair();
    expect_deadline(CONN_FRESH, 50000);
    tell("GET /guestbook HTTP/1.1\r\nHo");
    expect_deadline(CONN_READING, 100000);
    tell("st: a\r\n\r\n");
    expect_deadline(CONN_ASKING, 100000);
    reply_to_all();
    expect_deadline(CONN_WRITING, 100000);
    conn_advance(&conn);
    expect_deadline(CONN_IDLE, 7000);
}

TestToEnd(conn, does_not_read_on_while_a_whole_request_is_there)
{
    char byte;
    open_pair();
    say(client, GET("/guestbook") GET("/a.txt"));
    conn_advance(&conn);
    say(client, "more");
    reply_to_all();
    conn_advance(&conn); /* the first response */
    conn_advance(&conn); /* the second */
    expect_number("both", board_requests(board), 2);
    cr_expect(recv(conn.fd, &byte, 1, MSG_PEEK) == 1 && byte == 'm', "it is still in the socket");
}

/* The rest of a long file is short: it does not have the time of the whole. */
TestToEnd(conn, what_is_in_flight_at_the_end_has_the_time_of_its_own_length)
{
    open_pair();
    tell(GET("/a.txt"));
    conn.response_until = clock_now_ms() + 3600000;
    shutdown(client, SHUT_WR); /* it has not read the response */
    conn_advance(&conn);
    expect_number("its FIN is no end", conn.state, CONN_LINGERING);
    int64_t left = conn.response_until - clock_now_ms();
    cr_expect(left > 9000 && left <= 12000, "%lld ms", (long long)left);
}

static void *read_all(void *unused)
{
    static char piece[65536];
    (void)unused;
    while (recv(client, piece, sizeof(piece), 0) > 0)
        ;
    return NULL;
}

TestToEnd(conn, a_turn_is_240_kib_of_a_file)
{
    pthread_t reader;
    open_pair();
    set_blocking(conn.fd, true);
    pthread_create(&reader, NULL, read_all, NULL);
    say(client, GET_LAST("/large"));
    size_t left = sizeof(large);
    while (left > 245760) {
        expect_number("a turn", conn_advance(&conn), CONN_WRITING);
        left -= 245760;
        expect_number("left", conn.app.file.left, left);
    }
    conn_advance(&conn);
    expect_number("the last turn", board_requests(board), 1);
    shutdown(conn.fd, SHUT_RDWR);
    pthread_join(reader, NULL);
}

TestToEnd(conn, what_came_in_time_is_not_too_late_whoever_looks_late)
{
    open_pair();
    for (int i = 0; i < 2; i++) { /* fresh, then idle */
        say(client, GET("/a.txt"));
        conn.deadline = clock_now_ms() - 1;
        expect_number("served", conn_expire(&conn), CONN_IDLE);
        expect_part("served", heard(), "HTTP/1.1 200 ");
    }
    tell("GET /a.txt HTTP/1.1\r\nHo");
    say(client, "st: a\r\n\r\n");
    conn.deadline = clock_now_ms() - 1;
    expect_number("the rest has come", conn_expire(&conn), CONN_IDLE);
    expect_part("the rest has come", heard(), "HTTP/1.1 200 ");
    tell("GE");
    say(client, "T");
    expect_number("not all of the rest", conn_expire(&conn), CONN_WRITING);
    conn_advance(&conn);
    expect_part("not all of the rest", heard(), "HTTP/1.1 408 ");
}

/* ---- who can be given up ------------------------------------------------------------------- */

/* The tick has ended, and in that moment the client speaks. */
TestToEnd(conn, the_last_look_before_giving_up_sees_who_has_just_spoken)
{
    int server;
    over_tcp = true;
    tcp_pair(&server, &client, 20);
    conn_open(&conn, server, &worker);
    expect_number("a tick", conn_advance(&conn), CONN_FRESH);
    cr_expect(conn.silent && conn_owes_nothing(&conn), "fresh and silent");
    say(client, GET("/a.txt"));
    cr_expect(conn.silent && !conn_owes_nothing(&conn), "silent, but for a request");
    expect_number("which is not lost by looking", conn_advance(&conn), CONN_IDLE);
    heard();
    cr_expect(conn_owes_nothing(&conn), "idle and silent");
    say(client, "rubbish\r\n\r\n");
    cr_expect(!conn_owes_nothing(&conn), "idle no more");
    expect_number("refused", conn_advance(&conn), CONN_LINGERING);
    heard();
    say(client, "more");
    cr_expect(conn_owes_nothing(&conn), "what a refused client says is no request");
}

/* ---- the budget of the process ------------------------------------------------------------- */

/* The rest of the budget, but for `left` bytes, is somebody else's. */
static void leave_of_the_budget(size_t left)
{
    enum { OTHERS = 65536 };
    cr_assert(buffer_reserve(&others, OTHERS));
    buffer_set_budget(buffer_charged() + left);
}

TestToEnd(conn, a_post_that_is_stored_is_not_called_refused_when_the_budget_is_full)
{
    leave_of_the_budget(0);
    open_pair();
    tell("POST /guestbook HTTP/1.1\r\nHost: a\r\n"
         "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 30\r\n\r\n"
         "guest-name=Ada&guest-remarks=x");
    expect_number("stored", reply_with(":1\r\n"), CONN_WRITING);
    go();
    expect_part("303", heard(), "HTTP/1.1 303 ");
}
