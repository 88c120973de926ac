/* fuzz_conn: one connection, whatever its client, its Redis and the clock do.
 *
 *  - The input is what the client sends, a 255 (its last), and the script: a byte for
 *    each step, read from the input's end. Without a 255 there is no script.
 *  - States change only in the ways conn.h and this table allow, and the board
 *    always counts one connection, in its state.
 *  - What the client receives is a sequence of well-formed responses, one for
 *    each request and one for a refusal, in order: what the requests are is told by
 *    http_parse(), reading at once all that the client has sent. Nothing follows
 *    "Connection: close".
 *  - If nobody leaves or loses patience, every request has its response at the end.
 *  - No descriptor stays open; the leak sanitizer sees to memory.
 *  - What it does not reach: a write(2) that takes a part of a response. That needs TCP, and
 *    is the unit tests' business.
 *
 * Run it where public/ and templates/ are.
 */
#include "conn.h"
#include "answers.h"
#include "fuzz.h"
#include "options.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define X10   "<x>&\"'x\n\xc3\xa4"
#define X100  X10 X10 X10 X10 X10 X10 X10 X10 X10 X10
#define X1000 X100 X100 X100 X100 X100 X100 X100 X100 X100 X100
static const char *const replies[] = {
    ":7\r\n",
    "$1\r\n7\r\n",
    "*0\r\n",
    "*2\r\n$27\r\n2026-11-21T02:45:37Z\n<b>\nhi\r\n$1\r\nx\r\n",
    "-ERR no\r\n",
    "$-1\r\n",
    "+OK\r\n",
    "*2\r\n:1\r\n*-1\r\n",
    "*2\r\n$1000\r\n" X1000 "\r\n$1000\r\n" X1000 "\r\n", /* a large page */
    "$7\r\n1234567\r\n",
    "$21\r\n123456789012345678901\r\n",
};
enum { REPLIES = sizeof(replies) / sizeof(replies[0]) };

#define TO(state) (1u << CONN_##state)
static const unsigned may_follow[CONN_STATES] = {
    [CONN_FRESH] = ~0u,          [CONN_IDLE] = ~TO(FRESH),
    [CONN_READING] = ~TO(FRESH), [CONN_ASKING] = TO(ASKING) | TO(WRITING),
    [CONN_WRITING] = ~TO(FRESH), [CONN_LINGERING] = TO(LINGERING) | TO(DONE),
    [CONN_DONE] = TO(DONE),
};

static struct options options;
static struct worker worker;
static struct conn conn;
static int client;
static bool crowd, impatient; /* somebody waits; a response may be cut short, or missing */
enum { LONGEST = 8192 };      /* bytes: more requests than that for tux.png fill `heard` */
static char sent[LONGEST], heard[1 << 24];
static size_t sent_len, heard_len;
static size_t in_time; /* bytes of `sent` that the server had read when it answered 408 */

static int claim_waiting_clients(const struct worker *unused)
{
    (void)unused;
    return crowd;
}

/* To be called after every step, with the state before it. */
static void must_be_legal(enum conn_state before)
{
    must(conn.state < CONN_STATES && may_follow[before] & 1u << conn.state);
    for (unsigned state = 0; state < BOARD_STATES; state++)
        must(worker.slot->connections_by_state[state] == (state == conn.state));
    must(conn.used <= conn.in.len && conn.in.len <= conn.in.size);
    must(conn.in.size <= 128 * 1024);
    must(!conn.answering || conn.sent <= conn.head.len + conn.app.content.len);
    must(conn.state != CONN_WRITING || conn.answering || conn.in.len > 0);
}

static void hear(size_t most)
{
    ssize_t n;
    while (most > 0 && (n = recv(client, heard + heard_len, most, MSG_DONTWAIT)) > 0) {
        heard_len += (size_t)n;
        most -= (size_t)n;
    }
}

static void hear_all(void)
{
    hear(sizeof(heard) - heard_len);
    must(heard_len < sizeof(heard));
}

static void say(const uint8_t **at, const uint8_t *end, size_t most)
{
    size_t left = (size_t)(end - *at), len = most < left ? most : left;
    ssize_t n = send(client, *at, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n <= 0)
        return;
    memcpy(sent + sent_len, *at, (size_t)n);
    sent_len += (size_t)n;
    *at += n;
}

/* Reads a reply the way Redis would have sent it; NULL for the numbers behind the last. */
static void reply(unsigned number)
{
    void *made = NULL;
    redisReader *reader = redisReaderCreate();
    if (number < REPLIES) {
        redisReaderFeed(reader, replies[number], strlen(replies[number]));
        must(redisReaderGetReply(reader, &made) == REDIS_OK && made);
    }
    conn_reply(&conn, made, number % 2 ? 503 : 504);
    if (made)
        freeReplyObject(made);
    redisReaderFree(reader);
}

/* The deadline passes. If the answer is 408, notes what it answers: all that has been read. */
static void expire(void)
{
    int unread = 0;
    conn_expire(&conn);
    must(ioctl(conn.fd, FIONREAD, &unread) == 0);
    if (conn.state == CONN_WRITING && conn.answering && conn.app.response.status == 408)
        in_time = sent_len - (size_t)unread;
}

/* One step of the script. */
static void step(uint8_t what, const uint8_t **at, const uint8_t *end)
{
    enum conn_state before = conn.state;
    unsigned number = what & 31;
    if (conn.state == CONN_ASKING)
        reply(number % (REPLIES + 2));
    else if (what >= 128)
        say(at, end, number < 31 ? number + 1 : 8192);
    else if (what >= 96)
        hear(number * 999 + 1);
    else if (what >= 5)
        conn_advance(&conn);
    else if (what == 4)
        conn.refuse_with = conn.state == CONN_FRESH ? 503 : conn.refuse_with;
    else if (what == 3)
        crowd = !crowd;
    else if (what == 2)
        impatient = shutdown(client, SHUT_WR) == 0 || impatient;
    else if (conn.state != CONN_DONE) {
        impatient = true;
        if (what == 1)
            expire();
        else
            conn_drop(&conn);
    }
    must_be_legal(before);
}

/* Everything the client still has to say, and everything there is to hear: until the server waits
 * for more, or is done. */
static void finish(const uint8_t *at, const uint8_t *end)
{
    bool quiet = false;
    while (!quiet) {
        enum conn_state before = conn.state;
        hear_all();
        size_t said = sent_len;
        if (at < end && conn.state != CONN_DONE)
            say(&at, end, SIZE_MAX);
        if (conn.state == CONN_ASKING)
            reply(REPLIES);
        else
            conn_advance(&conn);
        must_be_legal(before);
        quiet =
            conn.state == CONN_DONE || (conn.silent && conn.state == before && said == sent_len);
    }
    hear_all();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct board *board;
    if (!board) {
        options = (struct options){
            .name = "fuzz", .root = ".", .keep_alive_ms = 5000, .timeout_ms = 10000};
        app_start(&options);
        must((board = board_open(1)));
        worker =
            (struct worker){.options = &options, .claim_waiting_clients = claim_waiting_clients};
        must((worker.slot = board_claim(board, 1)));
    }
    if (size > LONGEST)
        return 0;
    int ends[2], room = 1;
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)); /* as little as there is */
    int next = dup(0); /* the descriptor that is free now */
    close(next);
    client = ends[1];
    crowd = impatient = false;
    sent_len = heard_len = 0;
    in_time = SIZE_MAX;
    uint64_t before = board_requests(board);
    conn_open(&conn, ends[0], &worker);

    const uint8_t *cut = memrchr(data, 255, size), *end = cut ? cut : data + size, *at = data;
    for (const uint8_t *next_step = data + size; cut && --next_step > cut;)
        step(*next_step, &at, end);
    finish(at, end);
    struct answers answers = {{heard, heard_len}, impatient, conn.refuse_with != 0};
    must(board_requests(board) - before >=
         must_answer(&answers, sent, sent_len < in_time ? sent_len : in_time));
    conn_close(&conn);
    for (int state = 0; state < BOARD_STATES; state++)
        must(worker.slot->connections_by_state[state] == 0);
    must(dup(0) == ends[0] && dup(0) == next); /* free again, both */
    close(ends[0]);
    close(next);
    close(client);
    return 0;
}
