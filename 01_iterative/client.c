/* The other end: connects to a server, asks it for one page, and prints what comes.
 *
 *     cc -o /tmp/client 01_iterative/client.c && /tmp/client localhost 8000 /
 *
 * getaddrinfo(3), socket(2), connect(2), getnameinfo(3)
 */
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static int connect_to(const struct addrinfo *address)
{
    char host[64] = "?";
    getnameinfo(address->ai_addr, address->ai_addrlen, host, sizeof(host), NULL, 0, NI_NUMERICHOST);
    fprintf(stderr, "trying %s\n", host);

    int fd = socket(address->ai_family, address->ai_socktype, address->ai_protocol);
    if (fd >= 0 && connect(fd, address->ai_addr, address->ai_addrlen) == 0) /* sleeps */
        return fd;
    perror(host);
    if (fd >= 0)
        close(fd);
    return -1;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: client HOST PORT PATH\n");
        return 2;
    }
    struct addrinfo *addresses, hints = {.ai_socktype = SOCK_STREAM};
    int error = getaddrinfo(argv[1], argv[2], &hints, &addresses);
    if (error) {
        fprintf(stderr, "%s: %s\n", argv[1], gai_strerror(error));
        return 1;
    }
    int server = -1;
    for (const struct addrinfo *each = addresses; each && server < 0; each = each->ai_next)
        server = connect_to(each);
    freeaddrinfo(addresses);
    if (server < 0)
        return 1;

    char bytes[4096];
    int len = snprintf(bytes, sizeof(bytes),
                       "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", argv[3]);
    if (len >= (int)sizeof(bytes) || send(server, bytes, (size_t)len, MSG_NOSIGNAL) != len) {
        fprintf(stderr, "the request was not sent\n");
        return 1;
    }
    ssize_t got;
    while ((got = recv(server, bytes, sizeof(bytes), 0)) > 0)
        fwrite(bytes, 1, (size_t)got, stdout);
    if (got < 0)
        perror("recv");
    close(server);
    return got < 0;
}
