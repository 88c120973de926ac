/* Threads made beforehand. Each of them is chapter 1's server, and all of them sleep in
 * accept() on the same listening socket. There is no lock around accept(), and no queue
 * behind it: the kernel's accept queue has its own lock, and wakes one thread for a client.
 *
 * pthread_create(3), accept(2), pause(2)
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static const char answer[] = "HTTP/1.1 200 OK\r\n"
                             "Content-Type: text/plain\r\nContent-Length: 15\r\n"
                             "Connection: close\r\n\r\nHello, network\n";
enum { THREADS = 4 };

static void check(int result, const char *what)
{
    if (result < 0)
        err(1, "%s", what); /* says why, and exits */
}

/* A thread's whole life: chapter 1's loop. */
static void *work(void *argument)
{
    char request[4096];
    int listener = *(int *)argument; /* of main(), which never changes it and never returns */
    for (;;) {
        int client = accept(listener, NULL, NULL); /* sleeps until a client connects */
        if (client < 0)
            continue;
        if (recv(client, request, sizeof(request), 0) > 0) /* sleeps until it sends a byte */
            send(client, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
        close(client);
    }
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

    for (int i = 0; i < THREADS; i++) {
        errno = pthread_create(&thread, NULL, work, &listener);
        check(-errno, "pthread_create");
    }
    pause(); /* for ever: if main() returned, that would end all threads */
}
