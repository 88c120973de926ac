/* floor: the least a web server can do. Its figures are the practical limit of the machine and of
 * the load generator. A server that comes near them has little left to gain.
 *
 *     floor ADDRESS LETTERS
 *
 * ADDRESS is an IPv4 address. The floor prints where it listens.
 *
 * Chapter 7 with everything else left out. Every request gets the same bytes, which are made before
 * the first client comes. A request costs one recv(), one send(), and its share of an epoll_wait().
 * The floor looks for two things in it:
 *
 * - The empty line at its end. There is one response for each. So requests that come in pieces and
 *   several that come at once are answered too, unless a piece ends within the empty line. Load
 *   generators send a request in one piece.
 * - Whether to keep the connection: HTTP/1.1 keeps it unless the client says "close", HTTP/1.0
 *   (which is ab) closes it unless the client says "keep-alive" (ab -k).
 *
 * If several clients come and go, the floor naps before each round. The load generator is busy all
 * the time, and to wake a sleeping process costs it some microseconds. If it had to wake the floor
 * for every connection, it would get less done than with a server that is kept awake by its work. A
 * nap ends by itself.
 *
 * It is for measuring only: there are no deadlines, a client that does not read is cut off, and
 * without a free descriptor it spins until there is one.
 *
 * epoll(7), accept4(2), recv(2), send(2), tcp(7); RFC 9112, section 9.3
 */
#include <arpa/inet.h>
#include <err.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 4096, EVENTS_A_ROUND = 256, MOST_HEAD = 256, MOST_BODY = 65536 };
enum { NAP_MICROSECONDS = 20 }; /* about 70 in fact: timers have a slack of 50, see prctl(2) */

struct answer {
    char bytes[MOST_HEAD + MOST_BODY]; /* an empty socket takes that much in one send() */
    size_t size;
};

static struct answer kept, closed; /* the same, but for the field Connection */
static int epoll;
static int watched;      /* descriptors: the listener, and every client's */
static bool come_and_go; /* the last request ended its connection */

static void watch(int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0)
        watched++;
    else
        close(fd); /* out of memory: one client less */
}

/* The answer that this request asks for. */
static const struct answer *answer_to(const char *request)
{
    if (strstr(request, " HTTP/1.0"))
        return strcasestr(request, "\nConnection: keep-alive") ? &kept : &closed;
    return strcasestr(request, "\nConnection: close") ? &closed : &kept;
}

/* Answers the requests that have come. Closes the connection when it is over. */
static void serve_client(int client)
{
    char buffer[8192], *request = buffer, *end;
    const struct answer *answer = &kept;
    ssize_t size = recv(client, buffer, sizeof(buffer) - 1, 0);

    buffer[size > 0 ? size : 0] = '\0';
    while (answer == &kept && (end = strstr(request, "\r\n\r\n"))) {
        *end = '\0';
        answer = answer_to(request);
        come_and_go = answer == &closed;
        if (send(client, answer->bytes, answer->size, MSG_NOSIGNAL) != (ssize_t)answer->size)
            answer = &closed; /* the client is gone, or does not read */
        request = end + strlen("\r\n\r\n");
    }
    if (size <= 0 || answer == &closed) {
        close(client);
        watched--;
    }
}

_Noreturn static void serve(int listener)
{
    struct epoll_event events[EVENTS_A_ROUND];
    for (;;) {
        if (come_and_go && watched > 2)
            usleep(NAP_MICROSECONDS);
        int count = epoll_wait(epoll, events, EVENTS_A_ROUND, -1), client;
        for (int i = 0; i < count; i++)
            if (events[i].data.fd != listener)
                serve_client(events[i].data.fd);
            else
                while ((client = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0)
                    watch(client); /* serve_client() closes it */
    }
}

static void make_answer(struct answer *answer, const char *connection, size_t size)
{
    int head = snprintf(answer->bytes, MOST_HEAD,
                        "HTTP/1.1 200 OK\r\nServer: floor\r\nConnection: %s\r\n"
                        "Content-Type: text/html\r\nContent-Length: %zu\r\n\r\n",
                        connection, size);
    memset(answer->bytes + head, 'x', size);
    answer->size = (size_t)head + size;
}

static int open_listener(const char *address)
{
    struct sockaddr_in here = {.sin_family = AF_INET};
    socklen_t size = sizeof(here);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)); /* clients inherit it */
    if (!inet_aton(address, &here.sin_addr))
        errx(2, "'%s': an IPv4 address", address);
    if (bind(listener, (struct sockaddr *)&here, size) < 0 || listen(listener, BACKLOG) < 0 ||
        getsockname(listener, (struct sockaddr *)&here, &size) < 0)
        err(1, "%s", address);
    printf("floor: listening on http://%s:%d\n", address, ntohs(here.sin_port));
    fflush(stdout);
    return listener;
}

int main(int argc, char **argv)
{
    size_t size = argc == 3 ? strtoul(argv[2], NULL, 10) : SIZE_MAX;

    if (size > MOST_BODY)
        errx(2, "Usage: floor ADDRESS LETTERS, %d at most", MOST_BODY);
    make_answer(&kept, "keep-alive", size);
    make_answer(&closed, "close", size);

    epoll = epoll_create1(0);
    int listener = open_listener(argv[1]);
    watch(listener);
    serve(listener);
}
