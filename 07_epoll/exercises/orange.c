/* Exercise 07/orange: let a server's workers wait for Redis, and need hardly a connection for it.
 *
 * The program gets a port and a number. On the wall (and in /status.json) so many
 * workers shall be orange: asking Redis, which does not answer. This one opens a
 * connection for each, says its request and keeps all of them open.
 *
 * Here: do it with two descriptors beside the first three, so with at most two
 * connections at a time. The program ends when it has said all its requests. Not one
 * request more: the wall needs a worker, too.
 *
 * connect(2), send(2), close(2)
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char request[] = "GET /guestbook HTTP/1.1\r\nHost: here\r\n\r\n";

static int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        perror("orange");
        exit(1);
    }
    return fd;
}

int main(int argc, char **argv)
{
    int port = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 8000;
    int workers = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;
    for (int i = 0; i < workers; i++) {
        int fd = connect_to(port);
        if (send(fd, request, strlen(request), MSG_NOSIGNAL) < 0)
            perror("orange: send");
    }
    for (;;)
        pause();
}
