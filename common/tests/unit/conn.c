/* One connection: fed through a socket whose other end the test holds. The site is the short one
 * of unit.h. Which response a request gets is a row of wire_cases.h. */
#include "conn.h"
#include "clock.h"
#include "memory.h"
#include "unit.h"

/* ---- a worker, a connection, and its client ------------------------------------------------ */

static struct options options;
static struct board *board;
static struct worker worker;
static struct conn conn = {.fd = -1};
static int client = -1; /* the other end */
static size_t others;   /* bytes of the budget, taken by others */
static bool over_tcp;   /* where bytes take a moment */
static bool crowd;      /* does somebody wait? */

static int claim_waiting_clients(const struct worker *unused)
{
    (void)unused;
    return crowd;
}

static char large[600000]; /* what is in public/large */

static void start(void)
{
    board = unit_start_worker(&worker, &options, claim_waiting_clients);
    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (char)('a' + i % 7 + i / 7 % 11);
    scratch_bytes("public/large", large, sizeof(large));
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
    for (int state = 0; state < BOARD_STATES; state++)
        expect_number("left on the board", worker.slot->connections_by_state[state], 0);
    expect_number("left of the budget", memory_in_use(), others);
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

/* A TCP connection, for what only TCP can do: lingering. */
static void open_tcp(void)
{
    int server;
    end();
    over_tcp = true;
    tcp_pair(&server, &client);
    set_blocking(server, false);
    conn_open(&conn, server, &worker);
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

static const char *body_of(const char *response)
{
    const char *end = strstr(response, "\r\n\r\n");
    return end ? end + 4 : "(no body)";
}

#define GET(path)      "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define HEAD(path)     "HEAD " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define GET_LAST(path) "GET " path " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
#define POST_HEAD(len, more)                                                                       \
    "POST /guestbook HTTP/1.1\r\nHost: a\r\n"                                                      \
    "Content-Type: application/x-www-form-urlencoded\r\n" more "Content-Length: " #len "\r\n\r\n"
#define ENTRY "guest-name=Ada&guest-remarks=x" /* 30 bytes */

static void expect_state(const char *about, enum conn_state state)
{
    expect_number(about, conn.state, state);
    for (int i = 0; i < BOARD_STATES; i++)
        expect_number(about, worker.slot->connections_by_state[i], i == (int)conn.state);
}

/* Is the state's deadline `ms` from now? The clock's hand is coarse. */
static void expect_deadline(const char *about, int ms)
{
    int64_t left = conn.deadline - clock_now_ms();
    cr_expect(left > ms - 1000 && left <= ms, "%s: %lld ms left of %d", about, (long long)left, ms);
}

/* ---- a request's life ---------------------------------------------------------------------- */

TestToEnd(conn, goes_through_its_states)
{
    options.timeout_ms = 100000;
    options.keep_alive_ms = 7000;
    open_pair();
    expect_state("opened", CONN_FRESH);
    expect_deadline("opened", 50000);
    expect_number("nothing came", conn_advance(&conn), CONN_FRESH);

    tell("GET /guestbook HTTP/1.1\r\nHo");
    expect_state("half a request", CONN_READING);
    expect_deadline("half a request", 100000);
    tell("st: a\r\n\r\n");
    expect_state("the rest", CONN_ASKING);
    expect_deadline("the rest", 100000);
    expect_text("the first question", conn.app.ask.words[0], "INCR");
    expect_number("nothing to be done", conn_advance(&conn), CONN_ASKING);
    reply_with(":7\r\n");
    expect_state("the first reply", CONN_ASKING);
    expect_text("the second question", conn.app.ask.words[0], "GET");
    reply_with("$1\r\n7\r\n");
    expect_state("the second reply", CONN_ASKING);
    reply_with("*0\r\n");
    expect_state("the last reply", CONN_WRITING);
    expect_deadline("the last reply", 100000);
    expect_text("not before it is told to", heard(), "");
    conn_advance(&conn);
    expect_state("written", CONN_IDLE);
    expect_deadline("written", 7000);
    const char *response = heard();
    cr_expect(strncmp(response, "HTTP/1.1 200 OK\r\n", 17) == 0, "%s", response);
    expect_text("written", body_of(response), "unit 7 nobody typed: , \n");
    expect_number("counted", board_requests(board), 1);
    expect_number("counted", board_connections(board), 1);

    shutdown(client, SHUT_WR);
    go();
    expect_state("the client has gone", CONN_DONE);
}

/* One byte is no error, whatever errno was before. */
TestToEnd(conn, rule_21_sends_one_byte_of_a_large_file)
{
    open_pair();
    say(client, "GET /large.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=7-7\r\n\r\n");
    cr_assert(comes(conn.fd, POLLIN, PATIENCE_MS));
    errno = EPIPE;
    conn_advance(&conn);
    expect_state("one byte", CONN_IDLE);
    expect_part("one byte", heard(), "\r\nContent-Range: bytes 7-7/20000\r\n");
}

/* ---- staying and closing ------------------------------------------------------------------- */

TestToEnd(conn, a_hundred_requests_at_most_are_answered_while_somebody_waits)
{
    static char requests[150 * sizeof(HEAD("/"))];
    for (int i = 0; i < 150; i++)
        strcat(requests, HEAD("/"));
    crowd = true;
    open_tcp();
    say(client, requests);
    cr_assert(comes(conn.fd, POLLIN, PATIENCE_MS));
    while (conn.state != CONN_LINGERING && conn.state != CONN_DONE)
        conn_advance(&conn);
    expect_number("answered", board_requests(board), 100);
}

TestToEnd(conn, one_response_a_turn)
{
    open_pair();
    say(client, GET("/a.txt") GET("/a.txt") GET("/a.txt"));
    for (int i = 1; i <= 3; i++) {
        expect_number("state", conn_advance(&conn), i < 3 ? CONN_WRITING : CONN_IDLE);
        expect_number("responses", board_requests(board), i);
    }
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

/* ---- clients that leave -------------------------------------------------------------------- */

/* ---- little room in the socket ------------------------------------------------------------- */

/* Reads all of a response whose server has little room, advancing whenever there is some. */
static size_t read_slowly(char *bytes, size_t size)
{
    size_t len = 0;
    ssize_t n;
    for (;;) {
        go();
        n = recv(client, bytes + len, size - len < 700 ? size - len : 700, MSG_DONTWAIT);
        if (n <= 0)
            return len;
        len += (size_t)n;
    }
}

static void open_narrow(void)
{
    int little = 1;
    open_pair();
    setsockopt(conn.fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little));
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
    expect_number("the last turn", conn_advance(&conn), CONN_DONE);
    shutdown(conn.fd, SHUT_RDWR);
    pthread_join(reader, NULL);
}

/* ---- 100-continue -------------------------------------------------------------------------- */

#define BAD_CHUNK                                                                                  \
    "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: "                    \
    "chunked\r\n\r\nx\r\n"

/* A response that was sent before may fill the socket to the brim: whatever its size, the 100
 * behind it has to wait for room like anything else. A refusal does not wait for the 100. */
TestToEnd(conn, rule_11_a_continue_behind_a_response_waits_for_room)
{
    static const struct {
        const char *request, *heard;
        enum conn_state state;
    } rows[] = {
        {POST_HEAD(30, "Expect: 100-continue\r\n"), "HTTP/1.1 100 Continue\r\n\r\n", CONN_READING},
        {BAD_CHUNK, "HTTP/1.1 400 ", CONN_LINGERING},
    };
    static char bytes[700000];
    int cut_off = 0, last = 0;
    for (int size = 100; size < 12000; size += 50) {
        int which = size / 50 % 2;
        char name[32], request[100];
        snprintf(name, sizeof(name), "public/%d", size); /* a new one, which is in no cache */
        scratch_bytes(name, large, (size_t)size);
        snprintf(request, sizeof(request), GET("/%d"), size);
        open_narrow();
        tell(request);
        tell(rows[which].request);
        size_t len = read_slowly(bytes, sizeof(bytes) - 1);
        bytes[len] = '\0';
        if (conn.state != rows[which].state || !strstr(bytes, rows[which].heard))
            cut_off++, last = size;
    }
    cr_expect(cut_off == 0, "cut off behind %d files, the last of %d bytes", cut_off, last);
}

TestToEnd(conn, rule_11_who_is_gone_before_the_continue_is_not_refused)
{
    open_pair();
    say(client, BAD_CHUNK);
    close(client);
    client = -1;
    expect_number("gone", conn_advance(&conn), CONN_DONE);
    expect_number("refused", conn.refused, false);
}

/* ---- refusing and lingering ---------------------------------------------------------------- */

TestToEnd(conn, rule_12_what_is_drained_costs_no_memory)
{
    open_tcp();
    tell("rubbish\r\n\r\n");
    expect_state("refused", CONN_LINGERING);
    size_t size = conn.in.size;
    tell("0123456789");
    tell("0123456789");
    expect_number("size", conn.in.size, size);
}

TestToEnd(conn, refuses_with_the_right_status_what_is_no_request)
{
    open_tcp();
    conn.refuse_with = 503;
    tell("rubbish\r\n\r\n");
    expect_part("400", heard(), "HTTP/1.1 400 ");
}

/* ---- deadlines ----------------------------------------------------------------------------- */

TestToEnd(conn, rule_15_a_HEAD_that_is_too_late_has_no_body_either)
{
    open_tcp();
    tell("HEAD / HTTP/1.1\r\nHo");
    conn_expire(&conn);
    conn_advance(&conn);
    const char *response = heard();
    expect_part("408", response, "HTTP/1.1 408 ");
    expect_text("body", body_of(response), "");
}

TestToEnd(conn, what_came_in_time_is_not_too_late_whoever_looks_late)
{
    open_pair();
    for (int i = 0; i < 2; i++) { /* fresh, then idle */
        say(client, GET("/a.txt"));
        expect_number("served", conn_expire(&conn), CONN_IDLE);
        expect_part("served", heard(), "HTTP/1.1 200 ");
    }
    tell("GET /a.txt HTTP/1.1\r\nHo");
    say(client, "st: a\r\n\r\n");
    expect_number("the rest has come", conn_expire(&conn), CONN_IDLE);
    expect_part("the rest has come", heard(), "HTTP/1.1 200 ");
    tell("GE");
    say(client, "T");
    expect_number("not all of the rest", conn_expire(&conn), CONN_WRITING);
    conn_advance(&conn);
    expect_part("not all of the rest", heard(), "HTTP/1.1 408 ");
}

TestToEnd(conn, a_response_has_one_more_chance_when_it_expires)
{
    static char bytes[700000];
    open_narrow();
    tell(GET("/large"));
    recv(client, bytes, sizeof(bytes), 0);
    conn.deadline = clock_now_ms() - 1; /* as a loop would find it */
    expect_number("there is room", conn_expire(&conn), CONN_WRITING);
    expect_deadline("there is room", 10000);
    open_pair();
    tell(GET("/guestbook"));
    conn_reply(&conn, NULL, REDIS_NO_REPLY);
    conn.deadline = clock_now_ms() - 1;
    expect_number("room for all of it", conn_expire(&conn), CONN_IDLE);
}

TestToEnd(conn, a_pipelined_request_has_its_turn_when_it_expires)
{
    open_pair();
    say(client, GET("/a.txt") GET("/guestbook"));
    conn_advance(&conn);
    expect_state("the second has come", CONN_WRITING);
    conn.deadline = clock_now_ms() - 1;
    expect_number("it is asked for", conn_expire(&conn), CONN_ASKING);
    conn_reply(&conn, NULL, REDIS_NO_CONNECTION);
}

/* ---- what the board shows ------------------------------------------------------------------ */

TestToEnd(conn, the_board_knows_since_when)
{
    open_pair();
    worker.slot->since = 1;
    tell("GET /guest");
    int64_t since = worker.slot->since;
    expect_number("it began to read", since, conn.deadline - 10000);
    conn.deadline = 5;
    tell("book HTTP/1.1\r\n");
    expect_number("and goes on", worker.slot->since, since);
    tell("Host: a\r\n\r\n");
    expect_number("it began to ask", worker.slot->since, conn.deadline - 10000);
    conn_reply(&conn, NULL, REDIS_NO_CONNECTION);
    worker.slot->since = 1;
    end();
    cr_expect(worker.slot->since > 1, "it is free, and not since it began to write");
}

/* ---- who can be given up ------------------------------------------------------------------- */

/* On a blocking descriptor with a tick of 20 ms. */
static void open_ticking(void)
{
    const struct timeval tick = {.tv_usec = 20000};
    int server;
    end();
    over_tcp = true;
    tcp_pair(&server, &client);
    setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof(tick));
    setsockopt(server, SOL_SOCKET, SO_SNDTIMEO, &tick, sizeof(tick));
    conn_open(&conn, server, &worker);
}

TestToEnd(conn, a_connection_that_owes_something_is_not_spare)
{
    open_ticking();
    say(client, "GET /guestbook HTTP/1.1\r\n");
    expect_number("half a request", conn_advance(&conn), CONN_READING);
    expect_number("a tick", conn_advance(&conn), CONN_READING);
    cr_expect(!conn_can_make_way(&conn), "reading");
    say(client, "Host: a\r\n\r\n");
    expect_number("the rest", conn_advance(&conn), CONN_ASKING);
    cr_expect(!conn_can_make_way(&conn), "asking");
    conn_reply(&conn, NULL, REDIS_NO_CONNECTION);
    cr_expect(!conn_can_make_way(&conn), "writing");
}

TestToEnd(conn, a_lingering_connection_is_spare_after_a_silent_tick)
{
    open_ticking();
    say(client, "rubbish\r\n\r\n");
    expect_number("refused", conn_advance(&conn), CONN_LINGERING);
    cr_expect(!conn_can_make_way(&conn), "it has just said something");
    expect_number("a tick", conn_advance(&conn), CONN_LINGERING);
    cr_expect(conn_can_make_way(&conn), "silent");
    say(client, "more");
    expect_number("more", conn_advance(&conn), CONN_LINGERING);
    cr_expect(!conn_can_make_way(&conn), "it has just said more");
}

/* The tick has ended, and in that moment the client speaks. */
TestToEnd(conn, the_last_look_before_giving_up_sees_who_has_just_spoken)
{
    open_ticking();
    expect_number("a tick", conn_advance(&conn), CONN_FRESH);
    cr_expect(!conn_has_input(&conn), "fresh and silent");
    say(client, GET("/a.txt"));
    cr_expect(conn_can_make_way(&conn) && conn_has_input(&conn), "spare, but for a request");
    expect_number("which is not lost by looking", conn_advance(&conn), CONN_IDLE);
    cr_expect(!conn_has_input(&conn), "idle and silent");
    say(client, "rubbish\r\n\r\n");
    cr_expect(conn_has_input(&conn), "idle no more");
    expect_number("refused", conn_advance(&conn), CONN_LINGERING);
    say(client, "more");
    cr_expect(!conn_has_input(&conn), "what a refused client says is no request");
}

/* The silence that made it expire was that of its reading: the client has not had a tick yet to
 * read the 408. */
TestToEnd(conn, a_connection_that_begins_to_linger_is_not_spare_yet)
{
    open_ticking();
    say(client, "GET");
    expect_number("half a request", conn_advance(&conn), CONN_READING);
    expect_number("a tick", conn_advance(&conn), CONN_READING);
    conn_expire(&conn);
    expect_number("408", conn_advance(&conn), CONN_LINGERING);
    cr_expect(!conn_can_make_way(&conn));
}

/* ---- the memory of responses --------------------------------------------------------------- */

TestToEnd(conn, a_large_response_is_taken_of_the_budget_until_it_is_acknowledged)
{
    memory_set_budget(1000000);
    open_pair();
    tell(GET("/a.txt"));
    expect_number("a small one is free", memory_in_use(), 0);
    heard();
    unit_in_flight = 50000;
    say(client, GET("/large"));
    for (const char *end = NULL; !end; end = conn.state == CONN_IDLE ? "" : NULL) {
        go();
        if (conn.state == CONN_WRITING)
            cr_expect(memory_in_use() >= 131072, "%d", (int)memory_in_use());
        heard();
    }
    expect_number("in the kernel", memory_in_use(), 50000);
    unit_in_flight = 0;
    conn_check_in_flight(&conn);
    expect_number("acknowledged", memory_in_use(), 0);
}

TestToEnd(conn, a_post_that_is_stored_is_not_called_refused_when_the_budget_is_full)
{
    scratch_bytes("public/large", large, 20000);
    memory_set_budget(100000);
    open_pair();
    unit_in_flight = 20000;
    tell(GET("/large"));
    expect_number("in the kernel", memory_in_use(), 20000);
    heard();
    cr_assert(memory_reserve(others = 80000));
    tell(POST_HEAD(30, "") ENTRY);
    expect_number("stored", reply_with(":1\r\n"), CONN_WRITING);
    expect_number("answered", go(), CONN_LINGERING);
    const char *response = heard();
    expect_part("303", response, "HTTP/1.1 303 ");
    expect_part("303", response, "Connection: close\r\n");
}

/* ---- what a connection costs --------------------------------------------------------------- */

static size_t cost(void)
{
    return sizeof(conn) + conn.in.size + conn.head.size + conn.app.buffer.size;
}

TestToEnd(conn, an_idle_connection_costs_10_kib_at_most)
{
    char request[8100];
    open_pair();
    tell(GET("/a.txt"));
    tell(GET("/none"));
    cr_expect(cost() <= 10240, "after small requests: %zu bytes", cost());
    static char body[60000];
    memset(body, '+', sizeof(body) - 1);
    tell(POST_HEAD(59999, ""));
    tell(body);
    expect_state("after a large form", CONN_IDLE);
    cr_expect(cost() <= 10240, "after a large form: %zu bytes", cost());
    snprintf(request, sizeof(request), "GET /folder?%07970d HTTP/1.1\r\nHost: a\r\n\r\n", 1);
    tell(request);
    snprintf(request, sizeof(request), "\r\nLocation: /folder/?%07970d\r\n", 1);
    expect_part("all of it", heard(), request);
    expect_state("after a long redirect", CONN_IDLE);
    cr_expect(cost() <= 10240, "after a long redirect: %zu bytes (head %zu, in %zu, page %zu)",
              cost(), conn.head.size, conn.in.size, conn.app.buffer.size);
}

TestToEnd(conn, a_request_costs_128_kib_at_most)
{
    static char request[HTTP_MAX_REQUEST + 100];
    size_t len = (size_t)snprintf(request, sizeof(request),
                                  "\r\n\r\nPOST /%07985d HTTP/1.1\r\nHost: a\r\nX: %0*d\r\n"
                                  "Content-Length: 65536\r\n\r\n",
                                  1, 16384 - 9 - 23 - 5, 1);
    memset(request + len, 'x', 65535);
    len += 65535;
    open_pair();
    for (size_t at = 0; at < len; at += 50) {
        send_all(client, request + at, len - at < 50 ? len - at : 50);
        cr_assert_eq(go(), CONN_READING);
    }
    cr_expect(conn.in.size <= 128 * 1024, "%zu bytes", conn.in.size);
    tell("x" GET("/a.txt"));
    expect_state("it is whole", CONN_IDLE);
    expect_number("answered", board_requests(board), 2);
}

/* ---- the budget of the process ------------------------------------------------------------- */

/* Otherwise a client that reads slowly would keep it for as long as it pleases. */
TestToEnd(conn, a_large_body_is_given_back_before_its_response_is_sent)
{
    static char body[60000];
    memset(body, '+', sizeof(body) - 1);
    memory_set_budget(180000); /* not for the body and the response at once */
    open_narrow();
    tell("GET /large HTTP/1.1\r\nHost: a\r\nContent-Length: 59999\r\n\r\n");
    cr_expect(memory_in_use() > 59999);
    for (size_t sent = 0; sent < sizeof(body) - 1 && conn.state == CONN_READING; sent += 4999) {
        char piece[5000];
        snprintf(piece, sizeof(piece), "%.4999s", body + sent);
        tell(piece);
    }
    while (conn.state == CONN_READING)
        tell("+");
    expect_state("being sent", CONN_WRITING);
    expect_number("of the response only", memory_in_use(), conn.charged_out);
    cr_expect(conn.in.size < 1000, "%zu bytes are kept", conn.in.size);
}

TestToEnd(conn, a_long_request_line_is_given_back_after_its_response)
{
    char request[7100];
    snprintf(request, sizeof(request), "GET /a.txt?%07000d HTTP/1.1\r\nHost: a\r\n\r\n", 0);
    open_pair();
    tell(request);
    heard();
    expect_state("answered", CONN_IDLE);
    expect_number("given back", memory_in_use(), 0);
}

/* A body in chunks says how long it is only at its end. */
TestToEnd(conn, a_body_in_chunks_is_taken_of_the_budget_as_it_comes)
{
    static const char head[] =
        "POST /guestbook HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n8000\r\n";
    static char chunk[2050];
    memset(chunk, 'x', sizeof(chunk) - 1);
    memory_set_budget(10000);
    open_tcp();
    tell(head);
    expect_number("at first", memory_in_use(), 0);
    for (int i = 0; i < 3; i++)
        tell(chunk);
    expect_state("it fits", CONN_READING);
    cr_expect(memory_in_use() > 6000, "%d", (int)memory_in_use());
    for (int i = 0; i < 3 && conn.state == CONN_READING; i++)
        tell(chunk);
    expect_state("it does not", CONN_LINGERING);
    expect_number("given back", memory_in_use(), 0);
    expect_part("refused", heard(), "HTTP/1.1 503 ");
    open_tcp(); /* in the middle of a body it leaves: see end() */
    tell(head);
    for (int i = 0; i < 3; i++)
        tell(chunk);
}

TestToEnd(conn, rule_12_what_the_budget_does_not_hold_is_a_503_at_once)
{
    static const char *const requests[] = {
        POST_HEAD(60000, ""),
        POST_HEAD(60000, "") "the beginning",
        POST_HEAD(60000, "Expect: 100-continue\r\n"),
    };
    memory_set_budget(50000);
    for (size_t i = 0; i < COUNT(requests); i++) {
        open_tcp();
        tell(requests[i]);
        expect_state(requests[i], CONN_LINGERING);
        expect_number("nothing is kept of it", conn.in.size, 0);
        const char *response = heard();
        cr_expect(strncmp(response, "HTTP/1.1 503 ", 13) == 0, "%s", response);
        expect_part(requests[i], response, "short of memory");
        expect_part(requests[i], response, "Retry-After: ");
        expect_part(requests[i], response, "Connection: close");
        expect_number("taken", memory_in_use(), 0);
    }
}

TestToEnd(conn, closes_politely_while_memory_is_short)
{
    memory_set_budget(1000);
    cr_assert(memory_reserve(others = 1000));
    open_pair();
    tell(GET("/a.txt"));
    expect_part("served", heard(), "Connection: close");
    expect_state("and closed", CONN_DONE);
}

/* ---- the log ------------------------------------------------------------------------------- */

static int logged, stdout_kept;

static void log_begin(void)
{
    int fds[2];
    options.verbose = true;
    cr_assert(pipe(fds) == 0);
    fflush(stdout);
    stdout_kept = dup(STDOUT_FILENO);
    dup2(fds[1], STDOUT_FILENO);
    close(fds[1]);
    logged = fds[0];
}

static const char *log_end(void)
{
    static char text[20000];
    dup2(stdout_kept, STDOUT_FILENO);
    read_to_end(logged, text, sizeof(text));
    return text;
}

/* One line's request and what follows it, without address and time. */
static void expect_line(const char *about, const char *line, const char *expected)
{
    const char *quote = strchr(line, '"');
    cr_assert(quote, "%s: %s", about, line);
    cr_expect(strncmp(quote, expected, strlen(expected)) == 0, "%s: %.*s instead of %s", about,
              (int)strcspn(quote, "\n"), quote, expected);
}

TestToEnd(conn, a_long_request_line_is_cut_in_the_log)
{
    char request[4000], expected[2500];
    snprintf(request, sizeof(request), "GET /%03000d HTTP/1.1\r\nHost: a\r\n\r\n", 0);
    snprintf(expected, sizeof(expected), "\"GET /%0507d\" 404 ", 0);
    log_begin();
    open_tcp();
    tell(request);
    memset(request, '\x01', 3000);
    request[0] = 'A';
    memcpy(request + 3000, "\r\n\r\n", 5);
    open_tcp();
    tell(request);
    const char *line = log_end();
    expect_line("long", line, expected);
    const char *second = strchr(strchr(line, '\n'), '"');
    cr_expect(strncmp(second + 1 + 1 + 511 * 4, "\" 400 ", 6) == 0, "%s", second);
}

TestToEnd(conn, a_request_that_did_not_come_in_full_is_logged_as_far_as_it_came)
{
    static const char *const rows[][2] = {{"GET / HTTP/1.1\r\nHo", "\"GET / HTTP/1.1\" 408 "},
                                          {"GET / HTTP/1.1", "\"\" 408 "}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        log_begin();
        open_tcp();
        tell(rows[i][0]);
        conn_expire(&conn);
        conn_advance(&conn);
        expect_line(rows[i][0], log_end(), rows[i][1]);
    }
}
