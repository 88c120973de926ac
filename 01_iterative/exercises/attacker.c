/* Exercise 01/attacker: stop the iterative server, with a handful of connections.
 * It connects to a server of yours on this machine, whose port it is given, says "ready",
 * and sleeps until it is killed.
 * The task is in 01_iterative/exercises/attacker.md. Manual pages: connect(2), send(2), pause(2)
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS = 1 };

static int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        perror("attacker");
        exit(1);
    }
    return fd;
}

static void say(int fd, const char *text)
{
    if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
        perror("attacker: send");
}

int main(int argc, char **argv)
{
    int port = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 8000;
    for (int i = 0; i < CONNECTIONS; i++)
        say(connect_to(port), "");
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}
