/* A bounded buffer: one thread accepts clients and puts them into ten places, and four workers
 * take them out. While it is full, put() sleeps, and new clients wait in the kernel's queue.
 * pthread_cond_wait(3), pthread_cond_signal(3), pthread_join(3), shutdown(2)
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static const char answer[] = "HTTP/1.1 200 OK\r\n"
                             "Content-Type: text/plain\r\nContent-Length: 15\r\n"
                             "Connection: close\r\n\r\nHello, network\n";
enum { THREADS = 4, PLACES = 10 };
static int listener, clients[PLACES];
static long in, out; /* how many clients were put into these places, and taken out */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held by whoever uses the places */
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;

static void check(int result, const char *what)
{
    if (result < 0)
        err(1, "%s", what); /* says why, and exits */
}

static void put(int client)
{
    pthread_mutex_lock(&lock);
    while (in - out == PLACES)
        pthread_cond_wait(&not_full, &lock);
    clients[in++ % PLACES] = client;
    pthread_mutex_unlock(&lock);
    pthread_cond_signal(&not_empty);
}

static int take(void)
{
    pthread_mutex_lock(&lock);
    while (in == out)
        pthread_cond_wait(&not_empty, &lock);
    int client = clients[out++ % PLACES];
    pthread_mutex_unlock(&lock);
    pthread_cond_signal(&not_full);
    return client;
}

/* A thread's whole life. It owns the clients that it takes, and closes them. */
static void *work(void *unused)
{
    char request[4096];
    for (int client; (client = take()) >= 0; close(client))
        if (recv(client, request, sizeof(request), 0) > 0) /* sleeps until it sends a byte */
            send(client, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
    return unused;
}

static void stop(int number)
{
    signal(number, SIG_DFL);       /* a second signal ends us at once */
    shutdown(listener, SHUT_RDWR); /* from now on accept() fails, with EINVAL */
}

int main(int argc, char **argv)
{
    in_port_t port = argc > 1 ? (in_port_t)strtol(argv[1], NULL, 10) : 8000;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK); /* no other machine can reach us */
    pthread_t threads[THREADS];
    listener = socket(AF_INET, SOCK_STREAM, 0);
    check(listener, "socket");
    check(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)), "setsockopt");
    check(bind(listener, (struct sockaddr *)&here, sizeof(here)), "bind");
    check(listen(listener, 10), "listen");
    signal(SIGTERM, stop);

    for (int i = 0; i < THREADS; i++) {
        errno = pthread_create(&threads[i], NULL, work, NULL);
        check(-errno, "pthread_create");
    }
    for (int client; (client = accept(listener, NULL, NULL)) >= 0 || errno != EINVAL;)
        if (client >= 0)
            put(client);
    for (int i = 0; i < THREADS; i++)
        put(-1); /* behind all clients: the worker that takes it ends */
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}
