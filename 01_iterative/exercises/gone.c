/* Exercise 01/gone: a visitor closes the window.
 * The task is in 01_iterative/exercises/gone.md.
 * Manual pages: write(2), send(2), pipe(7), signal(7)
 */
#include "classroom/exercises/plain.h"

enum { PAGE_SIZE = 1 << 20 };

static char page[PAGE_SIZE];

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
    char request[4096], head[128];
    int len = snprintf(head, sizeof(head),
                       "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                       "Content-Length: %d\r\nConnection: close\r\n\r\n",
                       PAGE_SIZE);
    if (plain_read(client, request, sizeof(request)) && send_all(client, head, (size_t)len))
        send_all(client, page, sizeof(page));
    close(client);
}

int main(int argc, char **argv)
{
    struct options options = {.name = "gone"};
    options_parse(&options, argc, argv);
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
