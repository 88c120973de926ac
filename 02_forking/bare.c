/* A process for each client. The parent accepts, and a child serves its one client.
 *
 * A slow client holds up its own child and nobody else, and a child that crashes
 * takes no other client with it. Each client costs a fork. Nothing limits the number
 * of the children here, or how long one of them lives: main.c does that.
 *
 * fork(2), wait(2) (its notes on SIG_IGN), sigaction(2), _exit(2)
 */
#include <arpa/inet.h>
#include <err.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static const char answer[] = "HTTP/1.1 200 OK\r\n"
                             "Content-Type: text/plain\r\nContent-Length: 15\r\n"
                             "Connection: close\r\n\r\nHello, network\n";
static const char busy[] = "HTTP/1.0 503 Service Unavailable\r\n\r\n";

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
    /* Tells the kernel to forget a child that has ended. Otherwise it is a zombie until we ask. */
    check(sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_IGN}, NULL), "sigaction");

    for (;;) {
        int client = accept(listener, NULL, NULL); /* sleeps until a client connects */
        if (client < 0)
            continue;
        pid_t child = fork();
        if (child == 0) { /* only the parent accepts */
            close(listener);
            if (recv(client, request, sizeof(request), 0) > 0) /* sleeps until it sends a byte */
                send(client, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
            _exit(0); /* closes the child's client, too */
        }
        if (child < 0) /* no process left */
            send(client, busy, sizeof(busy) - 1, MSG_NOSIGNAL);
        close(client); /* the child has a copy */
    }
}
