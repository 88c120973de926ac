/* Exercise 07/edge: an edge-triggered loop that forgets some requests.
 * The task is in 07_epoll/exercises/edge.md. Manual pages: epoll(7), recv(2), send(2)
 */
#include "net.h"
#include "options.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define PAGE "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\nHello, network\n"

enum { EVENTS_A_ROUND = 256, ROOM = 4096, PAGE_LEN = sizeof(PAGE) - 1 };

struct client {
    int fd;      /* owned */
    bool over;   /* it sends no more requests, and is closed when nothing is owed */
    size_t len;  /* bytes in `in`: received, but not answered yet */
    size_t owed; /* bytes of pages that are still to be sent */
    char in[ROOM];
};

static int epoll, listener;

/* Adds a page to what is owed for every whole request in the buffer. */
static void understand(struct client *client)
{
    const char *end;
    while ((end = memmem(client->in, client->len, "\r\n\r\n", 4))) {
        client->len -= (size_t)(end + 4 - client->in);
        memmove(client->in, end + 4, client->len);
        client->owed += PAGE_LEN;
    }
    if (client->len == ROOM)
        client->over = true; /* a request that is larger than the buffer */
}

static void receive(struct client *client)
{
    ssize_t n = recv(client->fd, client->in + client->len, ROOM - client->len, 0);
    if (n > 0) {
        client->len += (size_t)n;
        understand(client);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        client->over = true;
    }
}

/* Sends what is owed, page by page, until nothing is left or the socket is full. */
static void transmit(struct client *client)
{
    while (client->owed > 0) {
        size_t begin = (PAGE_LEN - client->owed % PAGE_LEN) % PAGE_LEN;
        ssize_t n = send(client->fd, &PAGE[begin], PAGE_LEN - begin, MSG_NOSIGNAL);
        if (n >= 0) {
            client->owed -= (size_t)n;
        } else if (errno == EAGAIN) {
            return; /* an event will come when there is room */
        } else if (errno != EINTR) {
            client->over = true;
            client->owed = 0; /* the client is gone */
        }
    }
}

/* Something is new about a client: it has sent something, or its socket has room, or both. */
static void advance_client(struct client *client)
{
    if (!client->over)
        receive(client);
    transmit(client);
    if (client->over && client->owed == 0) {
        close(client->fd); /* this also ends the watching */
        free(client);      /* a client has one event in a round, so no other event names it */
    }
}

/* The listener is level-triggered, so it is enough to accept one client at a time. */
static void accept_client(void)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct client *client = fd >= 0 ? calloc(1, sizeof(*client)) : NULL;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = client};
    if (!client || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0) {
        if (fd >= 0)
            close(fd);
        else
            net_handle_accept_error(); /* without descriptors the whole loop sleeps for a tick */
        free(client);
        return;
    }
    client->fd = fd;
}

static void run_once(void)
{
    struct epoll_event events[EVENTS_A_ROUND];
    int count = epoll_wait(epoll, events, EVENTS_A_ROUND, -1);
    for (int i = 0; i < count; i++)
        if (events[i].data.ptr == &listener)
            accept_client();
        else
            advance_client(events[i].data.ptr);
}

int main(int argc, char **argv)
{
    struct options options = {.name = "edge"};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &listener};
    options_parse(&options, argc, argv);
    listener = net_listen(&options, false);
    epoll = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    net_announce(&options, listener);
    for (;;)
        run_once();
}
