/* Exercise 07/uring: the eighth way, io_uring.
 *
 * The model: the program makes hardly any system calls. It writes what is to be
 * done into a queue that the kernel reads, and the kernel writes what it has done
 * into a second queue. Not "tell me when I could accept", but "accept, and tell me
 * when you have".
 *
 * So far it is the slowest server of all. It starts one operation at a time and
 * waits for it, serves one client after the other, and answers everybody with the
 * same page.
 *
 * Here: make it a server like the other seven, with one process, one thread, and
 * one place where it sleeps. The operations of all clients are under way at the
 * same time, and a number in each (its user data) says whose completion it is.
 *
 * One thing does not fit: conn.c reads and writes by itself, so it only needs to
 * hear "you could". The ring can do that, too: IORING_OP_POLL_ADD gives one
 * completion for one question. With it, conn.h, waiting.h and redis_async.h serve
 * as in chapters 6 and 7. (To read and write through the ring would be the whole
 * way. It would take another conn.c.)
 *
 * io_uring(7), io_uring_prep_accept(3), io_uring_prep_poll_add(3)
 */
#include "net.h"
#include "options.h"
#include "process.h"

#include <liburing.h>
#include <string.h>
#include <unistd.h>

enum { ENTRIES = 256, ROOM = 4096 };

static const char page[] = "HTTP/1.1 200 OK\r\n"
                           "Connection: close\r\n"
                           "Content-Length: 13\r\n"
                           "\r\n"
                           "Hello, uring\n";

static struct io_uring ring;

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
        io_uring_prep_send(io_uring_get_sqe(&ring), client, page, strlen(page), MSG_NOSIGNAL);
        done();
    }
    close(client);
}

int main(int argc, char **argv)
{
    struct options options;
    options_parse(&options, argc, argv, "uring", 0);
    int error = io_uring_queue_init(ENTRIES, &ring, 0);
    if (error < 0)
        process_die(options.name, "io_uring: %s", strerror(-error));
    int listener = net_listen(&options, false);
    net_announce(&options, listener);
    for (;;) {
        int client = accept_client(listener);
        if (client >= 0)
            serve_client(client);
    }
}
