/* A thread for each client. All threads are one process: they share its memory and its
 * descriptors, and one that crashes ends them all.
 * Each thread is given the number of its client, and not the address of a variable that
 * holds it. The next accept() may change that variable before the thread reads it.
 *
 * pthread_create(3), pthread_detach(3)
 */
#include <arpa/inet.h>
#include <err.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char answer[] = "HTTP/1.1 200 OK\r\n"
                             "Content-Type: text/plain\r\nContent-Length: 15\r\n"
                             "Connection: close\r\n\r\nHello, network\n";

static void check(int result, const char *what)
{
    if (result < 0)
        err(1, "%s", what); /* says why, and exits */
}

/* A thread's whole life. It owns its client, and closes it. */
static void *serve(void *argument)
{
    char request[4096];
    int client = (int)(intptr_t)argument;
    if (recv(client, request, sizeof(request), 0) > 0) /* sleeps until it sends a byte */
        send(client, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
    close(client);
    return NULL;
}

int main(int argc, char **argv)
{
    in_port_t port = argc > 1 ? (in_port_t)strtol(argv[1], NULL, 10) : 8000;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK); /* no other machine can reach us */
    pthread_t thread;

    int listener = socket(AF_INET, SOCK_STREAM, 0);
    check(listener, "socket");
    check(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)), "setsockopt");
    check(bind(listener, (struct sockaddr *)&here, sizeof(here)), "bind");
    check(listen(listener, 10), "listen");

    for (;;) {
        int client = accept(listener, NULL, NULL); /* sleeps until a client connects */
        if (client < 0) /* perhaps no descriptor is left: each client has one of ours now */
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        else if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)client) == 0)
            pthread_detach(thread); /* nobody will ask how it ended */
        else
            close(client); /* no thread left: it is still ours */
    }
}
