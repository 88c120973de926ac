/* Exercise 01/gone: a visitor closes the window.
 *
 * Sends every client the same long page: its head, and then a mebibyte of it. Clients
 * leave when they like, and the result of every call that may fail is checked. Still,
 * the server is gone now and then, and has printed nothing.
 *
 * write(2), send(2), pipe(7), signal(7)
 */
#include "net.h"
#include "options.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAGE_SIZE = 1 << 20 };

static char page[PAGE_SIZE];

/* Takes the first bytes for the whole request. How requests are cut is not our subject here. */
static bool has_asked(int client)
{
    char request[4096];
    ssize_t n;
    do
        n = recv(client, request, sizeof(request), 0);
    while (n < 0 && errno == EAGAIN); /* a tick, see net_listen() */
    return n > 0;
}

/* Sends all bytes, however few of them the socket takes at a time. False: the client is gone. */
static bool send_all(int client, const char *bytes, size_t len)
{
    for (size_t sent = 0; sent < len;) {
        ssize_t n = write(client, bytes + sent, len - sent);
        if (n < 0 && errno != EAGAIN)
            return false;
        if (n > 0)
            sent += (size_t)n;
    }
    return true;
}

static void serve(int client)
{
    char head[128];
    int len = snprintf(head, sizeof(head),
                       "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                       "Content-Length: %d\r\nConnection: close\r\n\r\n",
                       PAGE_SIZE);
    if (has_asked(client) && send_all(client, head, (size_t)len))
        send_all(client, page, sizeof(page));
    close(client);
}

int main(int argc, char **argv)
{
    struct options options;
    options_parse(&options, argc, argv, "gone", 0);
    memset(page, '.', sizeof(page));
    int listener = net_listen(&options, true);
    net_announce(&options, listener);

    for (;;) { /* until SIGTERM or Ctrl-C: their default action is all we need */
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0)
            serve(client); /* owns client now, closes it */
        else
            net_handle_accept_error();
    }
}
