#include "conn_response.h"

#include "memory.h"

#include <errno.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

enum {
    MAX_AHEAD = 100,
    AHEAD_ROOM = 4096,          /* bytes; a longer request is not counted as one that has come */
    FILE_PIECE = 60 * 1024,     /* bytes; see conn_send_file() */
    FILE_TURN = 4 * FILE_PIECE, /* a longer one would make other clients of a loop wait */
};

/* Has the next request come whole? Its beginning does not count: a client could send the first byte
 * of one behind each request, and the rest when it likes. If the last read filled the buffer, that
 * read may have cut the request, and the rest is looked for in the socket. The parser gets a copy,
 * because it squeezes chunks in place. (A request that it refuses ends at once, and counts.) */
static bool has_next_request(const struct conn *c)
{
    char bytes[AHEAD_ROOM];
    struct http_parser parser = {0};
    struct http_request request;
    size_t len = c->in.len - c->used;
    len = len < sizeof(bytes) ? len : sizeof(bytes);
    memcpy(bytes, c->in.bytes + c->used, len);
    if (len == 0 || http_parse(&parser, bytes, &len, &request) != 0)
        return len > 0;
    ssize_t more =
        c->cut ? recv(c->fd, bytes + len, sizeof(bytes) - len, MSG_PEEK | MSG_DONTWAIT) : 0;
    len += more > 0 ? (size_t)more : 0;
    return more > 0 && http_parse(&parser, bytes, &len, &request) != 0;
}

/* Politeness: while other clients wait, or memory is short, a connection is kept only for requests
 * that have come whole already, and for a hundred of them in a row at most. So no request is cut
 * off on a connection that was announced as kept. The waiting clients are not counted any earlier,
 * because that would change nothing. */
static bool should_keep(struct conn *c)
{
    if (c->refused || !c->request.keep_alive || c->worker->options->keep_alive_ms == 0)
        return false;
    if (has_next_request(c) && ++c->ahead < MAX_AHEAD)
        return true;
    c->ahead = 0;
    return !memory_is_short() && c->worker->claim_waiting_clients(c->worker) == 0;
}

static const char *date(struct worker *worker)
{
    time_t now = time(NULL);
    if (now != worker->date_of) {
        http_format_date(now, worker->date);
        worker->date_of = now;
    }
    return worker->date;
}

bool conn_make_head(struct conn *c)
{
    struct http_response *response = &c->app.response;
    c->length = c->app.file.fd >= 0 ? c->app.file.left : c->app.content.len;
    response->has_length = response->status != 204 && response->status != 304;
    response->length = c->length;
    response->keep_alive = should_keep(c);

    size_t room = HTTP_MAX_HEAD + (response->location ? strlen(response->location) : 0) +
                  (response->fields ? strlen(response->fields) : 0);
    if (!buffer_reserve(&c->head, room))
        return false;
    c->head.len = http_format_head(response, date(c->worker), app_server(), c->head.bytes, room);
    if (c->request.method == HTTP_HEAD)
        c->length = c->app.content.len = c->app.file.left = 0;
    return true;
}

/* ---- sending ------------------------------------------------------------------------------- */

ssize_t conn_send_memory(struct conn *c)
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
ssize_t conn_send_file(struct conn *c)
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
