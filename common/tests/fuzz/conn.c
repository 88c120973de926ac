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
 *
 * Run it where public/ and templates/ are.
 */
#include "conn.h"
#include "answers.h"
#include "fuzz.h"
#include "options.h"
#include "process.h"
#include "socket.h"

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
static bool crowd, impatient;   /* somebody waits; a response may be cut short, or missing */
enum { LONGEST = 8192 };        /* bytes; more requests for /tux.png than fit would fill `heard` */
static const char *said, *last; /* ends of what the client has said, and of all that it will say */
static const char *answered;    /* end of what the server had read when it answered 408 */

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
        must(worker.slot->connections_by_state[state] == (state == (unsigned)conn.state));
    must(conn.used <= conn.in.len && conn.in.len <= conn.in.size);
    must(conn.in.size <= 128 * 1024);
    must(!conn.answering || conn.sent <= conn.head.len + conn.app.content.len);
    must(conn.state != CONN_WRITING || conn.answering || conn.in.len > 0);
}

static void say(size_t most)
{
    size_t left = wire.has_ended ? 0 : (size_t)(last - said), len = most < left ? most : left;
    said += len;
    wire.unread_len += len;
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
    conn_reply(&conn, made, number % 2 ? REDIS_NO_CONNECTION : REDIS_NO_REPLY);
    if (made)
        freeReplyObject(made);
    redisReaderFree(reader);
}

/* The deadline passes. If the answer is 408, notes what it answers: all that has been read. */
static void expire(void)
{
    conn_expire(&conn);
    if (conn.state == CONN_WRITING && conn.answering && conn.app.response.status == 408)
        answered = wire.unread;
}

/* One step of the script. */
static void step(uint8_t what)
{
    enum conn_state before = conn.state;
    unsigned number = what & 31;
    if (conn.state == CONN_ASKING)
        reply(number % (REPLIES + 2));
    else if (what >= 128)
        say(number < 31 ? number + 1 : LONGEST);
    else if (what >= 96) {
        wire.room += number < 16 ? number + 1 : number * 999;
        wire.in_flight = (int)number / 2;
    } else if (what >= 6)
        conn_advance(&conn);
    else if (what == 5)
        impatient = wire.is_gone = true;
    else if (what == 4)
        conn.refuse_with = conn.state == CONN_FRESH ? 503 : conn.refuse_with;
    else if (what == 3)
        crowd = !crowd;
    else if (what == 2)
        impatient = wire.has_ended = true;
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
static void finish(void)
{
    bool quiet = false;
    say(LONGEST);
    wire.room = HEARD;
    while (!quiet) {
        enum conn_state before = conn.state;
        if (conn.state == CONN_ASKING)
            reply(REPLIES);
        else
            conn_advance(&conn);
        must_be_legal(before);
        quiet = conn.state == CONN_DONE || (conn.silent && conn.state == before);
    }
}

static struct board *board;

static void start(void)
{
    if (board)
        return;
    options =
        (struct options){.name = "fuzz", .root = ".", .keep_alive_ms = 5000, .timeout_ms = 10000};
    process_start();
    app_start(&options);
    must((board = board_open(1)));
    worker = (struct worker){.options = &options, .claim_waiting_clients = claim_waiting_clients};
    must((worker.slot = board_claim(board, 1)));
}

/* Plays the input. */
static void play(const char *data, size_t size)
{
    const char *cut = memrchr(data, 255, size);
    wire = (struct wire){.is_open = true, .unread = data, .room = 1};
    said = data;
    last = answered = cut ? cut : data + size;
    crowd = impatient = false;
    conn_open(&conn, THE_SOCKET, &worker);
    for (const char *at = data + size; cut && --at > cut;)
        step((uint8_t)*at);
    finish();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char sent[LONGEST]; /* the parser changes it */
    start();
    if (size > LONGEST)
        return 0;
    int next = dup(0); /* the descriptor that is free now */
    close(next);
    uint64_t before = board_requests(board);
    play((const char *)data, size);

    const char *end = answered < said ? answered : said;
    memcpy(sent, data, (size_t)(end - (const char *)data));
    struct answers answers = {{heard, wire.heard_len}, impatient, conn.refuse_with != 0};
    must(board_requests(board) - before >=
         must_answer(&answers, sent, (size_t)(end - (const char *)data)));
    conn_close(&conn);
    for (int state = 0; state < BOARD_STATES; state++)
        must(worker.slot->connections_by_state[state] == 0);
    must(!wire.is_open && dup(0) == next); /* no file stays open */
    close(next);
    return 0;
}
