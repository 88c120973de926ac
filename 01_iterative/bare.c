/* The smallest server there is: one client at a time, and the same answer for all.
 *
 *     make bare && build/bare/01      then, elsewhere: curl http://127.0.0.1:8000/
 *
 * Four calls make a server: socket, bind, listen and accept. accept() returns a
 * descriptor. From it we read the client's bytes, and to it we write ours.
 * The server reads once, and takes what it gets for a whole request. On a single
 * machine that is nearly always right. Elsewhere it is not: main.c reads on.
 *
 * socket(2), bind(2), listen(2), accept(2), ip(7), tcp(7)
 */
#include <arpa/inet.h>
#include <err.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static const char answer[] = "HTTP/1.1 200 OK\r\n"
                             "Content-Type: text/plain\r\nContent-Length: 15\r\n"
                             "Connection: close\r\n\r\nHello, network\n";

static void check(int result, const char *what)
{
    if (result < 0)
        err(1, "%s", what); /* says why, and exits */
}

int main(int argc, char **argv)
{
    in_port_t port = argc > 1 ? (in_port_t)strtol(argv[1], NULL, 10) : 8000;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK); /* no other machine can reach us */
    char request[4096];

    int listener = socket(AF_INET, SOCK_STREAM, 0);
    check(listener, "socket");
    check(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)), "setsockopt");
    check(bind(listener, (struct sockaddr *)&here, sizeof(here)), "bind");
    check(listen(listener, 10), "listen");

    for (;;) {
        int client = accept(listener, NULL, NULL); /* sleeps until a client connects */
        if (client < 0)
            continue;
        if (recv(client, request, sizeof(request), 0) > 0) /* sleeps until it sends a byte */
            send(client, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
        close(client);
    }
}
