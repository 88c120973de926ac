/* One process waits for all clients at once. Only poll() sleeps, because no socket blocks. What a
 * thread had on its stack is in a structure here.
 * poll(2), accept4(2), fcntl(2) O_NONBLOCK
 */
#define _GNU_SOURCE 1 /* for accept4() */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char answer[] = "HTTP/1.1 200 OK\r\n"
                             "Content-Type: text/plain\r\nContent-Length: 15\r\n"
                             "Connection: close\r\n\r\nHello, network\n";
enum { CLIENTS = 1000 };
struct client {
    int fd;
    const char *rest; /* of its answer: what it was not sent yet. NULL: it has not asked */
};
static struct client clients[1 + CLIENTS]; /* the listening socket has the first place */
static struct pollfd fds[1 + CLIENTS];     /* for each of them: what poll() is asked */

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

    fds[0] = (struct pollfd){.fd = listener, .events = POLLIN};
    for (nfds_t count = 1;;) {
        if (poll(fds, count, fds[0].events ? -1 : 100) < 0) /* sleeps until one of them is ready */
            continue;
        for (nfds_t i = count - 1; i > 0; i--) {
            if (fds[i].revents && advance(&clients[i])) {
                fds[i].events = clients[i].rest ? POLLOUT : POLLIN;
            } else if (fds[i].revents) {
                close(clients[i].fd);
                fds[i] = fds[--count]; /* the last client moves here: it has had its turn */
                clients[i] = clients[count];
            }
        }
        int client = fds[0].revents ? accept4(listener, NULL, NULL, SOCK_NONBLOCK) : -1;
        if (client >= 0) {
            clients[count] = (struct client){.fd = client};
            fds[count++] = (struct pollfd){.fd = client, .events = POLLIN};
        }
        /* No descriptor or no place is left: new clients have to wait in the queue for a moment. */
        fds[0].events = (fds[0].revents && client < 0) || count > CLIENTS ? 0 : POLLIN;
    }
}
