#include "conn.h"

#include "clock.h"
#include "log.h"
#include "memory.h"
#include "options.h"
#include "polite.h"
#include "status.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
    READ_ROOM = 2048,       /* bytes; at least so many can be received at once */
    FREE_ROOM = 4096,       /* bytes; smaller requests (most are) are not counted, */
    FREE_OUT = 16384,       /* nor are smaller responses */
    KEEP_SMALL = 2048,      /* bytes; larger buffers for requests and heads, */
    KEEP_PAGE = 4096,       /* and for pages, are given back when a connection idles */
    IN_SOCKET = 131072,     /* bytes of a response that the kernel takes before a client reads */
    CHECK_EVERY = 16384,    /* bytes sent; then the kernel is asked how many of them it still has */
    FILE_PIECE = 60 * 1024, /* bytes; see send_file() */
    FILE_TURN = 4 * FILE_PIECE, /* a longer one would make other clients of a loop wait */
    NEXT_ROOM = 4096, /* bytes; a longer next request is not counted as one that has come */
    NEW_MS = 2000,
    CLIENT_GONE = 499, /* only in the log: the status of a response that was not sent whole */
};

_Static_assert((int)CONN_STATES <= (int)BOARD_STATES, "the board counts every state");
_Static_assert((int)CONN_FRESH == STATUS_FRESH && (int)CONN_IDLE == STATUS_IDLE &&
                   (int)CONN_READING == STATUS_READING && (int)CONN_ASKING == STATUS_ASKING &&
                   (int)CONN_WRITING == STATUS_WRITING && (int)CONN_LINGERING == STATUS_LINGERING,
               "the status tells them apart by their number");

/* ---- memory and states -------------------------------------------------------------------- */

/* Drops the received bytes, and releases their part of the budget. */
static void drop_request(struct conn *c, size_t keep)
{
    buffer_clear(&c->in, keep);
    c->used = 0;
    if (c->charged > 0)
        memory_release(c->charged);
    c->charged = 0;
}

/* Changes what is reserved for responses. Returns false, and changes nothing, if there is less. */
static bool charge_out(struct conn *c, size_t bytes)
{
    size_t needed = bytes > FREE_OUT ? bytes : 0;
    if (needed > c->charged_out && !memory_reserve(needed - c->charged_out))
        return false;
    if (needed < c->charged_out)
        memory_release(c->charged_out - needed);
    c->charged_out = needed;
    return true;
}

/* The only way into a state. Sets its deadline and tells the board. */
static void enter(struct conn *c, enum conn_state state)
{
    const struct options *o = c->worker->options;
    int64_t now = clock_now_ms();
    board_change_state(c->worker->slot, (int)c->state, (int)state, now);
    c->state = state;
    c->silent = false;
    switch (state) {
    case CONN_FRESH:
        c->deadline = now + options_fresh_ms(o);
        break;
    case CONN_IDLE:
        c->deadline = now + o->keep_alive_ms;
        break;
    case CONN_READING: /* entered with the first byte only: the whole request counts, not a gap */
    case CONN_WRITING:
    case CONN_ASKING: /* the code that asks Redis has its own time limit */
        c->deadline = now + o->timeout_ms;
        break;
    case CONN_LINGERING:
        c->deadline = now + options_linger_ms(o);
        break;
    default:
        c->deadline = now;
    }
}

/* ---- how a connection ends ---------------------------------------------------------------- */

static bool is_in_socket(const struct conn *c)
{
    char byte;
    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Are there bytes that were not parsed? If some are in the socket, close() sends a reset at once
 * (RFC 1122, 4.2.2.13), and the part of the response that the client has not acknowledged is lost.
 * (The part that has arrived may be kept by the client's kernel, as Linux does, or thrown away:
 * RFC 9112, 9.6.) If they are in our buffer, the kernel takes them for read and sends no reset. But
 * more are likely to follow, and bytes that come after close() are answered with a reset, too. */
static bool has_unread(const struct conn *c)
{
    return c->in.len > c->used || is_in_socket(c);
}

int conn_in_flight(const struct conn *c)
{
    int bytes = 0;
    ioctl(c->fd, SIOCOUTQ, &bytes); /* tcp(7). If it fails, 0 stays */
    return bytes > 0 && c->state == CONN_LINGERING ? bytes - 1 : bytes; /* our FIN counts, too */
}

void conn_check_in_flight(struct conn *c)
{
    c->checked_at = c->taken;
    c->in_kernel = (size_t)conn_in_flight(c);
    charge_out(c, c->in_kernel);
}

/* Makes close() throw away the bytes that the client has not taken. Otherwise the kernel would go
 * on offering them, and hold their memory, for as long as the client likes. */
void conn_reset(struct conn *c)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    enter(c, CONN_DONE);
}

void conn_drop(struct conn *c)
{
    if (conn_in_flight(c) > 0)
        conn_reset(c);
    else
        enter(c, CONN_DONE);
}

/* No further request: close now, or after the client has fallen silent (RFC 9112, 9.6). */
static void finish(struct conn *c)
{
    bool unread = has_unread(c);
    c->in_flight = conn_in_flight(c);
    if (!c->refused && !unread && c->in_flight == 0) {
        enter(c, CONN_DONE);
        return;
    }
    c->stuck_since = clock_now_ms();
    shutdown(c->fd, SHUT_WR);
    drop_request(c, 0);
    enter(c, CONN_LINGERING);
}

/* The time for lingering is over. If the client has still not acknowledged a response, it may be a
 * slow reader. It has --timeout to acknowledge another byte. */
static void linger_on(struct conn *c)
{
    int left = conn_in_flight(c);
    int64_t now = clock_now_ms();
    if (left != c->in_flight)
        c->stuck_since = now;
    c->in_flight = left;
    if (left == 0)
        enter(c, CONN_DONE);
    else if (now - c->stuck_since < c->worker->options->timeout_ms)
        enter(c, CONN_LINGERING);
    else
        conn_reset(c);
}

static void drain(struct conn *c)
{
    char unwanted[16384];
    ssize_t n = recv(c->fd, unwanted, sizeof(unwanted), 0);
    c->silent = n < 0 && errno == EAGAIN;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        enter(c, CONN_DONE);
}

/* ---- a response goes out ------------------------------------------------------------------ */

/* Once there is a response, only the request line is still needed, for the log, and the bytes
 * behind the request. Otherwise a client that reads slowly could hold the memory of a large body
 * for as long as it likes. */
static void drop_body(struct conn *c)
{
    size_t line = c->request.line.len, rest = c->in.len - c->used;
    if (c->charged == 0)
        return;
    if (line > 0)
        memmove(c->in.bytes, c->request.line.at, line);
    memmove(c->in.bytes + line, c->in.bytes + c->used, rest);
    c->used = line;
    c->in.len = line + rest;
    buffer_shrink(&c->in, c->in.len + 1);
    c->request.line.at = c->in.bytes;

    size_t charge = c->in.len > FREE_ROOM ? c->in.len : 0;
    if (charge < c->charged) {
        memory_release(c->charged - charge);
        c->charged = charge;
    }
}

/* Has the next request come whole? Its beginning does not count: a client could send the first byte
 * of one behind each request, and the rest when it likes. If the last read filled the buffer, that
 * read may have cut the request, and the rest is looked for in the socket. The parser gets a copy,
 * because it squeezes chunks in place. (A request that it refuses ends at once, and counts.) */
static bool has_next_request(const struct conn *c)
{
    char bytes[NEXT_ROOM];
    struct http_parser parser = {0};
    struct http_request request;
    size_t len = c->in.len - c->used;
    len = len < sizeof(bytes) ? len : sizeof(bytes);
    memcpy(bytes, c->in.bytes + c->used, len);
    if (len == 0 || http_parse(&parser, bytes, &len, &request) != 0)
        return len > 0;
    ssize_t more =
        c->read_full ? recv(c->fd, bytes + len, sizeof(bytes) - len, MSG_PEEK | MSG_DONTWAIT) : 0;
    len += more > 0 ? (size_t)more : 0;
    return more > 0 && http_parse(&parser, bytes, &len, &request) != 0;
}

/* Decides whether the connection is kept. Returns false if there is no memory. */
static bool make_head(struct conn *c)
{
    struct worker *worker = c->worker;
    struct http_response *response = &c->app.response;
    c->length = c->app.file.fd >= 0 ? c->app.file.left : c->app.content.len;
    response->has_length = response->status != 204 && response->status != 304;
    response->length = c->length;
    response->keep_alive = !c->refused && c->request.keep_alive &&
                           worker->options->keep_alive_ms > 0 &&
                           polite_may_keep(worker, has_next_request(c), &c->pipelined);

    time_t now = time(NULL);
    if (now != worker->date_of)
        http_format_date(now, worker->date);
    worker->date_of = now;

    size_t room = HTTP_MAX_HEAD + (response->location ? strlen(response->location) : 0) +
                  (response->fields ? strlen(response->fields) : 0);
    if (!buffer_reserve(&c->head, room))
        return false;
    c->head.len = http_format_head(response, worker->date, app_server(), c->head.bytes, room);
    if (c->request.method == HTTP_HEAD)
        c->length = c->app.content.len = c->app.file.left = 0;
    return true;
}

/* From here on the response only has to be sent. Its memory is reserved first: a page is in ours,
 * and soon in the kernel's too; a file is only in the kernel's. */
static void respond(struct conn *c)
{
    drop_body(c);
    uint64_t length = c->app.file.fd >= 0 ? c->app.file.left : c->app.content.len;
    size_t in_socket = length < IN_SOCKET ? (size_t)length : IN_SOCKET;
    if (!charge_out(c, c->in_kernel + c->app.buffer.size + in_socket)) {
        c->refused = true;
        if (c->app.response.status != 303) { /* or a stored entry would be called refused */
            app_clear(&c->app, 0);
            app_refuse_for_memory(&c->app);
        }
    }
    c->sent = 0;
    c->answering = make_head(c);
    enter(c, c->answering ? CONN_WRITING : CONN_DONE);
}

/* Refuses a request that is not understood, or not served. Then the connection ends. */
static void refuse(struct conn *c, int status)
{
    c->refused = true;
    app_refuse(&c->app, status);
    respond(c);
}

/* Returns the result of sendmsg(2). */
static ssize_t send_memory(struct conn *c)
{
    size_t of_head = c->sent < c->head.len ? c->sent : c->head.len;
    size_t of_content = c->sent - of_head;
    struct iovec parts[] = {
        {c->head.bytes + of_head, c->head.len - of_head},
        {(char *)c->app.content.at + of_content, c->app.content.len - of_content},
    };
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    /* MSG_MORE: a file follows, let its first bytes share the head's packet */
    ssize_t n = sendmsg(c->fd, &message, MSG_NOSIGNAL | (c->app.file.left > 0 ? MSG_MORE : 0));
    if (n > 0)
        c->sent += (size_t)n;
    return n;
}

/* A piece of a file fits into one segment as the kernel builds them for the network card to cut up:
 * 64 KiB with its headers. (On loopback nothing cuts them.) A longer piece leaves remainders, and
 * for each of them the kernel wakes the client. In pieces of 256 KiB, a GB took chapter 1 twice the
 * time, most of it for 10,000 wake-ups. Returns the bytes of the whole turn, or -1 if there were
 * none. */
static ssize_t send_file(struct conn *c)
{
    struct file *file = &c->app.file;
    ssize_t turn = 0, n;
    size_t piece;
    do {
        piece = file->left < FILE_PIECE ? (size_t)file->left : FILE_PIECE;
        n = sendfile(c->fd, file->fd, &file->at, piece);
        if (n == 0) { /* the file is shorter now: the promised length cannot be kept */
            errno = EIO;
            return -1;
        }
        if (n > 0) {
            file->left -= (uint64_t)n;
            turn += n;
        }
    } while (n == (ssize_t)piece && file->left > 0 && turn < FILE_TURN);
    return turn > 0 ? turn : -1;
}

/* How much of the response's content the socket has taken. */
static uint64_t content_sent(const struct conn *c)
{
    if (c->app.file.fd >= 0)
        return c->length - c->app.file.left;
    return c->sent > c->head.len ? c->sent - c->head.len : 0;
}

/* The response was sent whole. The bytes behind its request move to the front. The next turn parses
 * them, when there is room for a response. */
static void finish_response(struct conn *c)
{
    bool keep = c->app.response.keep_alive;
    board_count_response(c->worker->slot, c->app.response.status);
    board_end_request(c->worker->slot);
    if (c->worker->options->verbose)
        log_request(c->peer, c->request.line, c->app.response.status, c->length);
    app_clear(&c->app, KEEP_PAGE);
    buffer_clear(&c->head, KEEP_SMALL);
    c->answering = false;
    if (c->taken - c->checked_at >= CHECK_EVERY)
        conn_check_in_flight(c);
    else
        charge_out(c, c->in_kernel);
    if (!keep) {
        finish(c);
        return;
    }
    http_parser_reset(&c->parser);
    c->in.len -= c->used;
    memmove(c->in.bytes, c->in.bytes + c->used, c->in.len);
    c->used = c->sent = 0;
    if (c->in.len == 0)
        drop_request(c, KEEP_SMALL);
    enter(c, c->in.len > 0 ? CONN_WRITING : CONN_IDLE);
}

/* Writes as much as the socket takes, one fair turn at most. */
static void send_some(struct conn *c)
{
    size_t in_memory = c->head.len + c->app.content.len, sent = c->sent;
    uint64_t left = c->app.file.left;
    ssize_t n = 1;
    if (c->sent < in_memory)
        n = send_memory(c);
    if (n > 0 && c->sent == in_memory && c->app.file.left > 0)
        n = send_file(c);

    c->taken += c->sent - sent + (left - c->app.file.left);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        enter(c, CONN_DONE); /* the client is gone */
    else if (c->sent == in_memory && c->app.file.left == 0)
        finish_response(c);
    else if (c->sent > sent || c->app.file.left < left)
        enter(c, CONN_WRITING); /* progress: its deadline is set anew */
}

/* ---- a request comes in ------------------------------------------------------------------- */

/* How many bytes to receive at once: the rest of the request, if its length is known. */
static size_t room_to_read(const struct conn *c)
{
    size_t missing = http_missing(&c->parser, c->in.len);
    return missing > 0 ? missing : READ_ROOM;
}

/* Reserves memory of the budget for the rest of a request. For a body of known length that is all
 * of it at once, so that no request is accepted and then refused halfway. */
static bool charge(struct conn *c)
{
    size_t needed = c->in.len + room_to_read(c);
    if (needed <= FREE_ROOM || needed <= c->charged)
        return true;
    if (!memory_reserve(needed - c->charged))
        return false;
    c->charged = needed;
    return true;
}

/* Sends 100 Continue to a client that waits for it before it sends its body. Returns false if the
 * socket has no room for that, or if the client is gone. */
static bool send_continue(struct conn *c)
{
    size_t left = strlen(HTTP_CONTINUE) - c->sent;
    ssize_t n = send(c->fd, &HTTP_CONTINUE[c->sent], left, MSG_NOSIGNAL);
    if (n > 0)
        c->sent += (size_t)n;
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        enter(c, CONN_DONE);
    else if (n == (ssize_t)left)
        c->parser.continue_due = false;
    else if (n > 0 || c->state != CONN_WRITING)
        enter(c, CONN_WRITING);
    return !c->parser.continue_due;
}

/* Shows on the board what is being answered: the method and the path, as they came. */
static void show_request(const struct conn *c)
{
    struct span line = c->request.line, path = c->request.path;
    uintptr_t before_path = (uintptr_t)path.at - (uintptr_t)line.at; /* the path may be our "/" */
    if (before_path > 0 && before_path < line.len)
        line.len = before_path + path.len;
    board_begin_request(c->worker->slot, line.at, line.len);
}

/* The same with 503, in the middle of a request. */
static void refuse_for_memory(struct conn *c)
{
    c->request = http_partial_request(&c->parser, c->in.bytes);
    c->used = c->in.len;
    c->refused = true;
    show_request(c);
    app_refuse_for_memory(&c->app);
    respond(c);
}

/* The application says what comes next: a question to Redis, or a response. */
static void apply(struct conn *c, enum effect effect)
{
    if (effect == ASK_REDIS)
        enter(c, CONN_ASKING);
    else
        respond(c);
}

/* Parses the bytes in the buffer. A whole request goes to the application. */
static void parse_request(struct conn *c)
{
    int used = http_parse(&c->parser, c->in.bytes, &c->in.len, &c->request);
    if (used == 0 && !charge(c)) {
        refuse_for_memory(c);
        return;
    }
    bool waits = c->parser.continue_due; /* for 100 Continue */
    if (waits && c->refuse_with == 0 && !send_continue(c)) {
        if (used < 0 && c->sent > 0)
            enter(c, CONN_DONE); /* after a part of 100 Continue, a refusal would be no response */
        if (used >= 0 || c->state == CONN_DONE)
            return; /* when there is room, parsing will give the same result */
    }
    c->used = used > 0 ? (size_t)used : c->in.len;
    if (used != 0)
        show_request(c);
    else if (waits) /* a refusal looks at the method */
        c->request = http_partial_request(&c->parser, c->in.bytes);
    if (used < 0 || (c->refuse_with != 0 && (used > 0 || waits)))
        refuse(c, used < 0 ? -used : c->refuse_with);
    else if (used > 0)
        apply(c, app_request(&c->app, &c->request));
    else if (c->state != CONN_READING)
        enter(c, CONN_READING);
}

static void receive(struct conn *c)
{
    if (!buffer_reserve(&c->in, room_to_read(c))) {
        enter(c, CONN_DONE);
        return;
    }
    ssize_t n = recv(c->fd, c->in.bytes + c->in.len, c->in.size - c->in.len,
                     c->dont_wait ? MSG_DONTWAIT : 0);
    c->silent = n < 0 && errno == EAGAIN;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) { /* a client that leaves in the middle of a request has asked for nothing */
        enter(c, CONN_DONE);
        return;
    }
    c->in.len += (size_t)n;
    c->read_full = c->in.len == c->in.size;
    if (c->state != CONN_READING)
        enter(c, CONN_READING);
    parse_request(c);
}

/* ---- a connection's life ------------------------------------------------------------------ */

void conn_open(struct conn *c, int fd, struct worker *worker)
{
    *c = (struct conn){.fd = fd, .worker = worker, .state = CONN_NONE};
    c->app = (struct app){.client = fd, .file.fd = -1};
    app_clear(&c->app, 0);
    if (worker->options->verbose)
        log_peer(fd, c->peer);
    board_count_connection(worker->slot);
    enter(c, CONN_FRESH);
}

void conn_close(struct conn *c)
{
    if (c->answering && c->worker->options->verbose)
        log_request(c->peer, c->request.line, CLIENT_GONE, content_sent(c));
    if (c->state != CONN_DONE)
        enter(c, CONN_DONE);
    board_leave(c->worker->slot, CONN_DONE);
    app_clear(&c->app, 0);
    drop_request(c, 0);
    charge_out(c, 0);
    buffer_free(&c->head);
    close(c->fd);
    c->fd = -1;
}

enum conn_state conn_advance(struct conn *c)
{
    if (c->state == CONN_LINGERING)
        drain(c);
    if (c->state == CONN_FRESH || c->state == CONN_IDLE || c->state == CONN_READING)
        receive(c);
    else if (c->state == CONN_WRITING && !c->answering)
        parse_request(c); /* a request that came together with the last one */
    if (c->state == CONN_WRITING && c->answering)
        send_some(c);
    return c->state;
}

enum conn_state conn_reply(struct conn *c, const redisReply *reply, int why)
{
    apply(c, app_reply(&c->app, reply, why));
    return c->state;
}

/* ---- deadlines ---------------------------------------------------------------------------- */

/* Checks once more for the client's next bytes. They may have come in time, but not been read in
 * time, because a loop was busy, or because SIGCONT has interrupted the call that would have read
 * them (signal(7)). */
static bool has_come_in_time(struct conn *c)
{
    enum conn_state before = c->state;
    if ((before != CONN_FRESH && before != CONN_IDLE && before != CONN_READING) || !is_in_socket(c))
        return false;
    conn_advance(c);
    return before != CONN_READING || c->state != CONN_READING;
}

enum conn_state conn_expire(struct conn *c)
{
    if (has_come_in_time(c))
        return c->state;
    if (c->state == CONN_READING) {
        c->request = http_partial_request(&c->parser, c->in.bytes);
        refuse(c, 408);
        return c->state;
    }
    /* The kernel reports room only when a third of a large buffer is free. So a slow reader may
     * have made progress that was not reported. */
    if (c->state == CONN_WRITING) {
        int64_t deadline = c->deadline;
        conn_advance(c);
        if (c->state == CONN_WRITING && c->deadline <= deadline)
            conn_reset(c);
        return c->state;
    }
    if (c->state == CONN_LINGERING)
        linger_on(c);
    else
        finish(c);
    return c->state;
}

/* ---- what others ask ---------------------------------------------------------------------- */

bool conn_can_make_way(const struct conn *c)
{
    return c->silent &&
           (c->state == CONN_FRESH || c->state == CONN_IDLE || c->state == CONN_LINGERING) &&
           conn_in_flight(c) == 0;
}

bool conn_is_new(const struct conn *c)
{
    int64_t accepted = c->deadline - options_fresh_ms(c->worker->options);
    return c->state == CONN_FRESH && clock_now_ms() - accepted < NEW_MS;
}

bool conn_has_input(const struct conn *c)
{
    return c->state != CONN_LINGERING && has_unread(c);
}

int64_t conn_taken_by_client(const struct conn *c)
{
    bool sends = (c->state == CONN_WRITING && c->answering) || c->state == CONN_LINGERING;
    if (!sends)
        return -1;
    int64_t taken = (int64_t)c->taken - conn_in_flight(c);
    return taken > 0 ? taken : 0;
}
