/* As chapter 6, but the kernel keeps the list of clients. epoll(7), epoll_ctl(2), epoll_wait(2) */
#define _GNU_SOURCE 1 /* for accept4() */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const char answer[] = "HTTP/1.1 200 OK\r\n"
                             "Content-Type: text/plain\r\nContent-Length: 15\r\n"
                             "Connection: close\r\n\r\nHello, network\n";
struct client {
    int fd;
    const char *rest; /* of its answer: what it was not sent yet. NULL: it has not asked */
};
static int epoll; /* the kernel's list */

static void check(int result, const char *what)
{
    if (result < 0)
        err(1, "%s", what); /* says why, and exits */
}

/* Goes on with a client until it would have to wait. Returns false when the two are done. */
static bool advance(struct client *client)
{
    char request[4096];
    ssize_t n = client->rest ? 0 : recv(client->fd, request, sizeof(request), 0);
    if (n > 0)
        client->rest = answer;
    if (client->rest)
        n = send(client->fd, client->rest, strlen(client->rest), MSG_NOSIGNAL);
    if (n <= 0) /* EAGAIN: not yet. Anything else: the end */
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    client->rest += n;
    return *client->rest != '\0';
}

static bool watch(int operation, struct client *client, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = client};
    return epoll_ctl(epoll, operation, client->fd, &event) == 0;
}

int main(int argc, char **argv)
{
    in_port_t port = argc > 1 ? (in_port_t)strtol(argv[1], NULL, 10) : 8000;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK); /* no other machine can reach us */
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    check(listener, "socket");
    check(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)), "setsockopt");
    check(bind(listener, (struct sockaddr *)&here, sizeof(here)), "bind");
    check(listen(listener, 10), "listen");
    check(epoll = epoll_create1(0), "epoll_create1");
    check(watch(EPOLL_CTL_ADD, &(struct client){.fd = listener}, EPOLLIN) ? 0 : -1, "epoll_ctl");
    for (struct epoll_event event;;) {
        if (epoll_wait(epoll, &event, 1, -1) < 1) /* sleeps until one of them is ready */
            continue;
        struct client *client = event.data.ptr;
        if (client->fd != listener) {
            if (advance(client) && watch(EPOLL_CTL_MOD, client, client->rest ? EPOLLOUT : EPOLLIN))
                continue;
        } else if ((client = malloc(sizeof(*client)))) {
            *client = (struct client){.fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)};
            if (client->fd >= 0 && watch(EPOLL_CTL_ADD, client, EPOLLIN))
                continue;
        }
        if (client && client->fd >= 0)
            close(client->fd); /* the kernel takes it off its list, too */
        else
            poll(NULL, 0, 100); /* no descriptor or no memory is left: all wait for a moment */
        free(client);
    }
}
