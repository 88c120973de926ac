/* fuzz: whatever a client says, and whatever Redis answers. libFuzzer makes up inputs, and keeps
 * those that reach code no other has reached. What must hold for every one of them is checked here;
 * the sanitizers see to memory. In which order things happen is tried by states/.
 *
 *  - An input is what a client says, a 255 (its last), and what Redis says. Its last three bytes
 * choose pieces, too.
 *  - Fed to the parser whole and fed in pieces it gives the same verdict, at the same byte, with
 * the same request.
 *  - What is accepted keeps the promises of http.h: spans within the buffer, lines and fields
 * without control characters, nothing above a limit.
 *  - A connection that has heard it all, and the client's end, comes to an end. It has sent
 * well-formed responses, and nothing follows "Connection: close". No descriptor stays open.
 *
 * Run it where public/ and templates/ are.
 */
#include "conn.h"
#include "process.h"
#include "redis.h"
#include "status.h"
#include "tests/fed.h"
#include "tests/wire_cases.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define must(hold)                                                                                 \
    do {                                                                                           \
        if (!(hold)) {                                                                             \
            fprintf(stderr, "%s:%d: this does not hold: %s\n", __FILE__, __LINE__, #hold);         \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

enum { PIECES = 3, LONGEST = 20000, HEARD = 1 << 25 }; /* bytes */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the parser ---------------------------------------------------------------------------- */

static bool is_clean(struct span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (((unsigned char)text.at[i] < ' ' && text.at[i] != '\t') || text.at[i] == 127)
            return false;
    return true;
}

static void must_keep_promises(const struct outcome *o, size_t size)
{
    const struct http_request *r = &o->request;
    const struct span *spans[] = {&r->line, &r->query, &r->fields, &r->body};
    for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
        must(!spans[i]->at ||
             (spans[i]->at >= o->buffer && spans[i]->at + spans[i]->len <= o->buffer + size));
    must(r->line.len <= HTTP_MAX_REQUEST_LINE && is_clean(r->line));
    must(r->fields.len <= HTTP_MAX_FIELD_BYTES && r->body.len <= HTTP_MAX_BODY);
    must(r->path.at[0] == '/' || (span_is(r->path, "*") && r->method == HTTP_OPTIONS));
    must(is_clean(r->path) && is_clean(r->query) && is_clean(r->host));
    must(r->host.len > 0 || r->minor == 0);

    struct span rest = r->fields, value;
    int hosts = 0;
    while (http_next_field(&rest, "host", &value))
        hosts++;
    must(hosts == 1 || (hosts == 0 && r->minor == 0));
    for (rest = r->fields; http_next_field(&rest, "x", &value);)
        must(is_clean(value));
}

static void parse(struct span text, const uint8_t pieces[PIECES])
{
    size_t least = 1 + text.len / 512; /* each piece is a copy of all before it */
    struct outcome whole = feed(text, text.len, 1, 1);
    struct outcome cut = feed(text, pieces[0] % 255u * least + 1, pieces[1] % 255u * least + 1,
                              pieces[2] % 255u * least + 1);
    must(same_outcome(&whole, &cut));
    if (whole.used > 0)
        must_keep_promises(&whole, text.len);
    free(whole.buffer);
    free(cut.buffer);
}

/* ---- a connection -------------------------------------------------------------------------- */

static struct worker worker;

static int count_waiting(const struct worker *unused)
{
    (void)unused;
    return 0;
}

static void start(void)
{
    static struct options options = {
        .name = "fuzz", .root = ".", .keep_alive_ms = 5000, .timeout_ms = 10000};
    process_start();
    app_load(&options);
    struct board *board = board_open(1);
    status_start(&options, board, "made-up input");
    worker = (struct worker){.options = &options, .count_waiting = count_waiting};
    worker.slot = board_claim(board, getpid());
}

/* A response to HEAD has no content: then the next one follows, or the end. */
static void must_be_responses(struct span all)
{
    for (bool close = false; all.len > 0;) {
        struct span value;
        const char *end = memmem(all.at, all.len, "\r\n\r\n", 4);
        must(!close && all.len > 15 && memcmp(all.at, "HTTP/1.1 ", 9) == 0 && end);
        int status = atoi(all.at + 9);
        struct span fields = {all.at, (size_t)(end + 2 - all.at)}, rest = fields;
        all = span_skip(all, fields.len + 2);
        must(http_next_field(&rest, "Connection", &value) == (status != 100));
        close = status != 100 && span_is(value, "close");
        must(http_next_field(&fields, "Content-Length", &value) ==
             (status != 100 && status != 204 && status != 304));
        if (value.at && all.len > 0 && (all.len < 9 || memcmp(all.at, "HTTP/1.1 ", 9) != 0)) {
            size_t len = strtoul(value.at, NULL, 10);
            must(len <= all.len);
            all = span_skip(all, len);
        }
    }
}

static void serve(struct span said, struct span redis_says)
{
    static char heard[HEARD];
    static struct redis_server nameless;
    struct conn conn;
    redisReader *reader = redis_open_reader();
    int ends[2];
    size_t len = 0;
    ssize_t n;
    redisReaderFeed(reader, redis_says.at, redis_says.len);
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    must(send(ends[0], said.at, said.len, 0) == (ssize_t)said.len &&
         shutdown(ends[0], SHUT_WR) == 0);
    conn_open(&conn, ends[1], &worker);
    for (int turns = 0; conn.state != CONN_DONE; turns++) {
        redisReply *reply = NULL;
        must(turns < 100 * 1000);
        if (conn.state != CONN_ASKING) {
            conn_advance(&conn);
        } else {
            bool makes_sense = redis_next_reply(&nameless, reader, &reply);
            conn_reply(&conn, reply, makes_sense ? REDIS_NO_REPLY : REDIS_NO_CONNECTION);
            freeReplyObject(reply);
        }
        while ((n = recv(ends[0], heard + len, HEARD - len, 0)) > 0)
            len += (size_t)n;
    }
    conn_close(&conn);
    close(ends[0]);
    redisReaderFree(reader);
    must_be_responses((struct span){heard, len});
}

/* Writes down what libFuzzer starts from: the cases of wire_cases.h, and what Redis says. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    for (size_t i = 0; i < WIRE_CASES; i++) {
        char name[64];
        snprintf(name, sizeof(name), "build/fuzz/seeds/%03zu", i);
        FILE *file = fopen(name, "w");
        must(file);
        wire_write(file, &wire_cases[i], 0, "{ETAG}");
        fputs("\xff:7\r\n$1\r\n7\r\n*1\r\n$27\r\n2026-11-21T02:45:37Z\n<b>\nhi\r\n:9\r\n:7\r\n",
              file);
        fclose(file);
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < PIECES || size > LONGEST)
        return 0;
    if (!worker.slot)
        start();
    const char *text = (const char *)data, *end = text + size, *cut = memrchr(text, 255, size);
    int next = dup(0); /* the descriptor that is free now */
    close(next);
    parse((struct span){text, (size_t)((cut ? cut : end) - text)}, data + size - PIECES);
    serve((struct span){text, (size_t)((cut ? cut : end) - text)},
          (struct span){cut ? cut + 1 : end, cut ? (size_t)(end - cut) - 1 : 0});
    must(dup(0) == next); /* no file stays open */
    close(next);
    return 0;
}
