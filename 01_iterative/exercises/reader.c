/* Exercise 01/reader: a head in a few reads.
 * The task is in 01_iterative/exercises/reader.md. Manual pages: recv(2), memmem(3), tcp(7)
 */
#include "classroom/exercises/plain.h"

enum { HEAD_MAX = 4096 };

/* Waits for the client's next bytes. 0 or less: it is gone, or the server is to stop. */
static ssize_t receive(int client, char *bytes, size_t room)
{
    ssize_t n;
    do
        n = recv(client, bytes, room, 0);
    while (n < 0 && errno == EAGAIN && !stop_requested()); /* a tick: this client takes its time */
    return n;
}

/* Reads a head, including the empty line that ends it. Returns its length in bytes; 0 if the client
 * left before that, -1 if there is no end within HEAD_MAX.
 * Here: use as few calls as you can, however the head was cut in pieces. */
static long read_head(int client)
{
    char head[HEAD_MAX];
    size_t len = 0;
    while (len < sizeof(head)) {
        if (receive(client, head + len, 1) <= 0)
            return 0;
        len++;
        if (len >= 4 && memcmp(head + len - 4, "\r\n\r\n", 4) == 0)
            return (long)len;
    }
    return -1;
}

int main(int argc, char **argv)
{
    struct options options = {.name = "reader"};
    options_parse(&options, argc, argv);
    int listener = net_listen(&options, true);
    stop_catch_signals(true);
    net_announce(&options, listener);

    while (!stop_requested()) {
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0) {
            net_handle_accept_error();
            continue;
        }
        char body[24];
        long bytes = read_head(client);
        snprintf(body, sizeof(body), "%ld\n", bytes);
        if (bytes > 0)
            plain_send(client, "200 OK", body);
        else if (bytes < 0)
            plain_send(client, "431 Request Header Fields Too Large", "");
        close(client);
    }
    close(listener);
    return 0;
}
