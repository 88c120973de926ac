#include "conn.h"

#include "net.h"
#include "process.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    READ_ROOM = 2048,           /* bytes; for the first read of a request */
    KEEP = 2048,                /* bytes; larger buffers are given back when a connection idles */
    FILE_PIECE = 60 * 1024,     /* bytes; see send_file() */
    FILE_TURN = 4 * FILE_PIECE, /* a longer one would make other clients of a loop wait */
    FILE_BUFFER = 128 * 1024,   /* bytes in the socket, of a longer file; see set_room() */
    LEAST_RATE = 8 * 1024,      /* bytes a second of a response that a client has to take */
};

/* ---- states -------------------------------------------------------------------------------- */

/* In how many ms is an idle connection looked at? Its last response may still be in flight, and has
 * a limit of its own. So if --keep-alive is longer than --timeout, it is divided into equal parts.
 */
static int idle_step_ms(const struct options *o)
{
    int steps = (o->keep_alive_ms + o->timeout_ms - 1) / o->timeout_ms;
    return (o->keep_alive_ms + steps - 1) / steps;
}

/* The only way into a state. Sets its deadline and tells the board. */
static void enter(struct conn *c, enum conn_state state)
{
    const struct options *o = c->worker->options;
    int64_t now = clock_now_ms();
    board_change_state(c->worker->slot, c->state, state, now);
    c->state = state;
    c->since = now;
    c->silent = false;
    switch (state) {
    case CONN_FRESH:
        c->deadline = now + o->timeout_ms / FRESH_PART;
        break;
    case CONN_IDLE:
        c->deadline = now + idle_step_ms(o);
        break;
    case CONN_READING: /* entered with the first byte only: the whole request counts, not a gap */
    case CONN_WRITING:
    case CONN_ASKING: /* the code that asks Redis has its own time limit */
        c->deadline = now + o->timeout_ms;
        break;
    case CONN_LINGERING: /* only a look: linger() knows when it is over */
        c->deadline = now + TICK_MS;
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
 * If they are in our buffer, more are likely to follow, and bytes that come after close() are
 * answered with a reset, too. */
static bool has_unread(const struct conn *c)
{
    return c->in.len > 0 || is_in_socket(c);
}

/* How many bytes of our responses has the client's kernel not acknowledged yet? A reset would
 * destroy them, and the kernel sends one if the client says another word after close(). RFC
 * 9112, 9.6. */
static int in_flight(const struct conn *c)
{
    int bytes = 0;
    ioctl(c->fd, SIOCOUTQ, &bytes); /* linux/sockios.h. If it fails, 0 stays */
    return bytes > 0 && c->state == CONN_LINGERING ? bytes - 1 : bytes; /* our FIN counts, too */
}

/* Makes close() throw away the bytes that the client has not taken. Otherwise the kernel would go
 * on offering them, and hold their memory, for as long as the client likes. */
static void reset(struct conn *c)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    enter(c, CONN_DONE);
}

void conn_drop(struct conn *c)
{
    if (in_flight(c) > 0)
        reset(c);
    else
        enter(c, CONN_DONE);
}

/* When does the client have to have taken the response, and what was in flight before it? A client
 * that takes a byte now and then makes progress. So the time for all of it is limited, too. It
 * counts from the time when the connection entered its state. */
static int64_t response_limit(const struct conn *c)
{
    uint64_t bytes = (uint64_t)in_flight(c) + c->head.len + c->app.content.len - c->sent;
    bytes += c->app.file.left;
    return c->since + c->worker->options->timeout_ms + (int64_t)(bytes / LEAST_RATE) * 1000;
}

/* No further request. If bytes of ours are in flight, or the client is still sending, the
 * connection lingers: RFC 9112, 9.6. */
static void finish(struct conn *c)
{
    bool client_sends = !c->ended && (c->refused || has_unread(c));
    if (!client_sends && in_flight(c) == 0) {
        enter(c, CONN_DONE);
        return;
    }
    int64_t rest_until = response_limit(c); /* of a long file it is short */
    if (c->response_until == 0 || rest_until < c->response_until)
        c->response_until = rest_until;
    shutdown(c->fd, SHUT_WR);
    buffer_clear(&c->in, 0);
    int linger_ms = client_sends ? c->worker->options->timeout_ms / LINGER_PART : 0;
    c->linger_until = clock_now_ms() + linger_ms;
    enter(c, CONN_LINGERING);
}

/* Drops what has come. The end is the client's FIN, or a moment without one; but not before all
 * bytes of ours are acknowledged. If they are not when the response's time is over, a reset takes
 * them back. */
static void linger(struct conn *c)
{
    char unwanted[16384];
    int error = 0; /* a reset behind the client's FIN, of which recv(2) does not tell */
    socklen_t size = sizeof(error);
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    ssize_t n = c->ended ? 0 : recv(c->fd, unwanted, sizeof(unwanted), 0);
    int64_t now = clock_now_ms();
    c->silent = n < 0 && errno == EAGAIN;
    c->ended = n == 0;
    c->deadline = now + TICK_MS;
    bool is_gone = error != 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    if (is_gone || ((c->ended || now >= c->linger_until) && in_flight(c) == 0))
        enter(c, CONN_DONE);
    else if (now >= c->response_until && now >= c->linger_until)
        reset(c);
}

/* ---- a response goes out ------------------------------------------------------------------ */

/* A client that is far away gets a long file three times as quickly with more room in the socket.
 * The bytes of a file are in the page cache anyway. Those of the next page are not. */
static void set_room(const struct conn *c, int bytes)
{
    if (c->app.file.fd >= 0 && c->app.file.size > FILE_PIECE)
        net_set_send_buffer(c->fd, bytes);
}

/* Decides whether the connection is kept, and makes the head. From here on the response only has to
 * be sent, and of the request nothing is needed any more. */
static void respond(struct conn *c)
{
    struct worker *worker = c->worker;
    struct http_response *response = &c->app.response;
    uint64_t length = c->app.file.fd >= 0 ? c->app.file.left : c->app.content.len;
    response->has_length = response->status != 204 && response->status != 304;
    response->length = length;
    response->keep_alive = !c->refused && c->request.keep_alive &&
                           worker->options->keep_alive_ms > 0 && worker->count_waiting(worker) == 0;
    http_format_head(response, &c->head);
    if (c->request.method == HTTP_HEAD)
        length = c->app.content.len = c->app.file.left = 0;
    if (worker->options->verbose)
        log_request(c->peer, c->request.line, response->status, length);

    c->sent = 0;
    c->answering = !c->head.failed;
    c->response_until = 0;
    buffer_drop(&c->in, c->used, KEEP);
    c->used = 0;
    c->parser = (struct http_parser){0};
    set_room(c, FILE_BUFFER);
    enter(c, c->answering ? CONN_WRITING : CONN_DONE);
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
 * 64 KiB with its headers. A longer piece leaves remainders, and for each of them the kernel wakes
 * the client: in pieces of 256 KiB, a GB took chapter 1 twice the time. Returns the bytes of the
 * whole turn, or -1 with errno: if there were none, or if the file has become shorter (EIO). */
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

/* The response was sent whole. If the next request has begun to come, the next turn parses it, when
 * there is room for a response. */
static void finish_response(struct conn *c)
{
    bool keep = c->app.response.keep_alive;
    board_end_request(c->worker->slot, c->app.response.status);
    set_room(c, NET_SEND_BUFFER);
    app_clear(&c->app, KEEP);
    buffer_clear(&c->head, KEEP);
    c->sent = 0;
    c->answering = false;
    if (!keep) {
        finish(c);
        return;
    }
    enter(c, c->in.len > 0 ? CONN_WRITING : CONN_IDLE);
}

/* Writes as much as the socket takes, one fair turn at most. */
static void send_some(struct conn *c)
{
    size_t in_memory = c->head.len + c->app.content.len;
    ssize_t n = 1, sent = 0;
    if (c->sent < in_memory)
        n = sent = send_memory(c);
    if (n > 0 && c->sent == in_memory && c->app.file.left > 0)
        n = send_file(c);

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        enter(c, CONN_DONE); /* the client is gone, or the file has become shorter */
    else if (c->sent == in_memory && c->app.file.left == 0)
        finish_response(c);
    else {
        if (c->response_until == 0) /* the first time that it does not fit into the socket */
            c->response_until = response_limit(c);
        if (clock_now_ms() >= c->response_until)
            reset(c);
        else if (n > 0 || sent > 0)
            enter(c, CONN_WRITING); /* progress: its deadline is set anew */
    }
}

/* ---- a request comes in ------------------------------------------------------------------- */

/* Shows on the board what is being answered: method and path, as they came, or all of a line that
 * was refused. */
static void show_request(const struct conn *c)
{
    struct span line = c->request.line, path = c->request.path;
    uintptr_t before_path = (uintptr_t)path.at - (uintptr_t)line.at; /* the path may be our "/" */
    if (before_path > 0 && before_path < line.len)
        line.len = before_path + path.len;
    board_begin_request(c->worker->slot, line.at, line.len);
}

/* The application says what comes next: a question to Redis, or a response. */
static void apply(struct conn *c, enum effect effect)
{
    if (effect == ASK_REDIS)
        enter(c, CONN_ASKING);
    else
        respond(c);
}

/* Refuses a request that is not understood, not served, or of which perhaps only a part has come.
 * Then the connection ends. */
static void refuse(struct conn *c, int status)
{
    /* perhaps there was no memory even for its first bytes */
    c->request = http_partial_request(&c->parser, c->in.bytes ? c->in.bytes : "");
    c->used = c->in.len;
    c->refused = true;
    show_request(c);
    app_refuse(&c->app, status);
    respond(c);
}

/* Parses the bytes in the buffer. A whole request goes to the application. */
static void parse_request(struct conn *c)
{
    int used = http_parse(&c->parser, c->in.bytes, &c->in.len, &c->request);
    if (c->unavailable && (used > 0 || c->parser.continue_due)) {
        refuse(c, 503);
        return;
    }
    if (c->parser.continue_due) {
        const ssize_t len = sizeof(HTTP_CONTINUE) - 1;
        c->parser.continue_due = false;
        if (send(c->fd, HTTP_CONTINUE, (size_t)len, MSG_NOSIGNAL) != len) {
            finish(c); /* it is gone, or leaves no room, because it reads no responses */
            return;
        }
    }
    if (used == 0) {
        if (c->state != CONN_READING)
            enter(c, CONN_READING);
        return;
    }
    if (used < 0) {
        refuse(c, -used);
        return;
    }
    c->used = (size_t)used;
    show_request(c);
    apply(c, app_request(&c->app, &c->request));
}

static void receive(struct conn *c)
{
    if (!buffer_reserve(&c->in, c->in.len == 0 ? READ_ROOM : 1)) {
        refuse(c, 503);
        return;
    }
    ssize_t n = recv(c->fd, c->in.bytes + c->in.len, c->in.size - c->in.len, 0);
    c->silent = n < 0 && errno == EAGAIN;
    c->ended = n == 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        enter(c, CONN_DONE);
        return;
    }
    if (n == 0) { /* a client that leaves in the middle of a request has asked for nothing */
        finish(c);
        return;
    }
    c->in.len += (size_t)n;
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
    enter(c, CONN_FRESH);
}

void conn_close(struct conn *c)
{
    board_change_state(c->worker->slot, c->state, CONN_NONE, clock_now_ms());
    board_end_request(c->worker->slot, 0);
    app_clear(&c->app, 0);
    buffer_clear(&c->in, 0);
    buffer_clear(&c->head, 0);
    close(c->fd);
    c->fd = -1;
}

enum conn_state conn_advance(struct conn *c)
{
    if (c->state == CONN_LINGERING)
        linger(c);
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
    apply(c, c->app.reply(&c->app, reply, why));
    return c->state;
}

enum conn_state conn_expire(struct conn *c)
{
    enum conn_state before = c->state;
    int64_t deadline = c->deadline;
    /* Bytes may have come in time, but not been read in time, because a loop was busy, or because
     * SIGCONT has interrupted the call that would have read them (signal(7)). And the kernel
     * reports room only when a third of a buffer is free, so a slow reader may have made progress
     * that was not reported. */
    if (before == CONN_WRITING || before == CONN_LINGERING || is_in_socket(c))
        conn_advance(c);
    if (c->state != before || c->deadline > deadline)
        return c->state;
    const struct options *o = c->worker->options;
    int64_t now = clock_now_ms();
    bool is_late = in_flight(c) > 0 && now >= c->response_until;
    if (before == CONN_IDLE && now < c->since + o->keep_alive_ms && !is_late)
        c->deadline += idle_step_ms(o); /* it was only looked at */
    else if (before == CONN_READING)
        refuse(c, 408);
    else if (before == CONN_WRITING)
        reset(c);
    else
        finish(c);
    return c->state;
}

/* ---- what others ask ---------------------------------------------------------------------- */

bool conn_owes_nothing(const struct conn *c)
{
    bool waits = c->state == CONN_FRESH || c->state == CONN_IDLE;
    return ((waits && !has_unread(c)) || c->state == CONN_LINGERING) && in_flight(c) == 0;
}
