/* Exercise 01/deadline: patience has an end.
 * The task is in 01_iterative/exercises/deadline.md.
 * Manual pages: recv(2), socket(7), clock_gettime(2)
 */
#include "classroom/exercises/plain.h"

enum { HEAD_MAX = 4096 };

struct visitor {
    int fd;
    int patience_ms;
    char head[HEAD_MAX];
    size_t len;
};

/* Takes the visitor's next bytes. 0: it has left. -1: none came in time, or none ever will. */
static ssize_t receive(struct visitor *visitor)
{
    int64_t deadline = clock_now_ms() + visitor->patience_ms;
    do {
        ssize_t n = recv(visitor->fd, visitor->head + visitor->len,
                         sizeof(visitor->head) - visitor->len, 0);
        if (n >= 0)
            return n;
        if (errno != EAGAIN) /* a tick, see net_listen() */
            return -1;
    } while (clock_now_ms() < deadline && !stop_requested());
    return -1;
}

/* Reads up to the empty line. Returns the status to answer with. NULL: the visitor has left. */
static const char *read_head(struct visitor *visitor)
{
    visitor->len = 0;
    while (!memmem(visitor->head, visitor->len, "\r\n\r\n", 4)) {
        if (visitor->len == sizeof(visitor->head))
            return "431 Request Header Fields Too Large";
        ssize_t n = receive(visitor);
        if (n == 0)
            return NULL;
        if (n < 0)
            return "408 Request Timeout";
        visitor->len += (size_t)n;
    }
    return "200 OK";
}

int main(int argc, char **argv)
{
    struct options options = {.name = "deadline"};
    options_parse(&options, argc, argv);
    int listener = net_listen(&options, true);
    stop_catch_signals(true);
    net_announce(&options, listener);

    struct visitor visitor = {.patience_ms = options.timeout_ms};
    while (!stop_requested()) {
        visitor.fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (visitor.fd < 0) {
            net_handle_accept_error();
            continue;
        }
        const char *status = read_head(&visitor);
        if (status)
            plain_send(visitor.fd, status, "");
        close(visitor.fd);
    }
    close(listener);
    return 0;
}
