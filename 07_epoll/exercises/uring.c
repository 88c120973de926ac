/* Exercise 07/uring: the eighth way, io_uring.
 * The task is in 07_epoll/exercises/uring.md.
 * Manual pages: io_uring(7), io_uring_prep_recv(3), io_uring_sqe_set_data(3)
 */
#include "net.h"
#include "options.h"
#include "process.h"

#include <liburing.h>
#include <string.h>
#include <unistd.h>

enum { ENTRIES = 256, ROOM = 4096, PAGE_SIZE = 1 << 20 };

static const char head[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
static char page[PAGE_SIZE]; /* the whole response, more than a socket's buffer takes */
static struct io_uring ring;

static void write_page(void)
{
    memset(page, '.', sizeof(page));
    memcpy(page, head, strlen(head));
}

/* Hands over the one operation that has been prepared, and waits for it. Returns what the system
 * call of that name would return; an error is -errno. */
static int done(void)
{
    struct io_uring_cqe *completion;
    int error = io_uring_submit_and_wait(&ring, 1);
    if (error >= 0)
        error = io_uring_wait_cqe(&ring, &completion);
    if (error < 0)
        return error;
    int result = completion->res;
    io_uring_cqe_seen(&ring, completion);
    return result;
}

static int accept_client(int listener)
{
    io_uring_prep_accept(io_uring_get_sqe(&ring), listener, NULL, NULL, SOCK_CLOEXEC);
    return done();
}

static void serve_client(int client)
{
    char request[ROOM];
    io_uring_prep_recv(io_uring_get_sqe(&ring), client, request, sizeof(request), 0);
    if (done() > 0) {
        io_uring_prep_send(io_uring_get_sqe(&ring), client, page, PAGE_SIZE, MSG_NOSIGNAL);
        done();
    }
    close(client);
}

int main(int argc, char **argv)
{
    struct options options = {.name = "uring"};
    options_parse(&options, argc, argv);
    int error = io_uring_queue_init(ENTRIES, &ring, 0);
    if (error < 0)
        process_die(options.name, "io_uring: %s", strerror(-error));
    write_page();
    int listener = net_listen(&options, true);
    net_announce(&options, listener);
    for (;;) {
        int client = accept_client(listener);
        if (client >= 0)
            serve_client(client);
    }
}
