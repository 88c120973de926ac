/* Exercise 04/argument: a thread for every client, and --workers seats.
 *
 * The server tells each visitor the address and the port that the visitor comes from.
 * It accepts each client at once and creates a thread for it at once. But only
 * --workers threads serve at a time. The others wait until a seat is free. Visitors
 * who come one after the other read the truth. When several come together, some of
 * them read where somebody else comes from.
 *
 * pthread_create(3), sem_wait(3), getnameinfo(3)
 */
#include "net.h"
#include "options.h"
#include "stop.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STACK_BYTES = 256 * 1024, NAME_BYTES = 80 };

static sem_t seats; /* how many more threads may serve now */

/* What the main thread hands to a new thread. Each thread has its own, and frees it. */
struct task {
    int client;
    const char *name; /* where the client comes from: "127.0.0.1, port 40112" */
};

static void answer(const struct task *task)
{
    char body[NAME_BYTES + 32], text[512];
    int len = snprintf(body, sizeof(body), "You come from %s.\n", task->name);
    len = snprintf(text, sizeof(text),
                   "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n"
                   "Connection: close\r\n\r\n%s",
                   len, body);
    send(task->client, text, (size_t)len, MSG_NOSIGNAL);
}

/* A thread's whole life. As in 01_iterative/bare.c, one recv() is taken to be a whole request. */
static void *serve_one_client(void *argument)
{
    struct task *task = argument;
    char request[4096];
    ssize_t n;
    sem_wait(&seats);
    do
        n = recv(task->client, request, sizeof(request), 0);
    while (n < 0 && errno == EAGAIN && !stop_requested()); /* a tick */
    if (n > 0)
        answer(task);
    close(task->client);
    free(task);
    sem_post(&seats);
    return NULL;
}

/* Detached, with a small stack. All signals are blocked, because they are for the main thread. */
static pthread_attr_t thread_attributes(void)
{
    pthread_attr_t attributes;
    sigset_t all;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setsigmask_np(&attributes, &all);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    return attributes;
}

static void create_thread(const pthread_attr_t *attributes, int client, const char *name)
{
    pthread_t thread;
    struct task *task = malloc(sizeof(*task));
    if (task) {
        *task = (struct task){.client = client, .name = name};
        if (pthread_create(&thread, attributes, serve_one_client, task) == 0)
            return;
    }
    close(client); /* no memory or no thread for it */
    free(task);
}

static void write_name(char name[NAME_BYTES], const struct sockaddr *address, socklen_t size)
{
    char host[64] = "?", port[8] = "?";
    getnameinfo(address, size, host, sizeof(host), port, sizeof(port),
                NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(name, NAME_BYTES, "%s, port %s", host, port);
}

static void accept_and_create(int listener)
{
    pthread_attr_t attributes = thread_attributes();
    struct sockaddr_storage address;
    char name[NAME_BYTES];

    while (!stop_requested()) {
        socklen_t size = sizeof(address);
        int client = accept4(listener, (struct sockaddr *)&address, &size, SOCK_CLOEXEC);
        if (client < 0) {
            net_handle_accept_error();
            continue;
        }
        write_name(name, (struct sockaddr *)&address, size);
        create_thread(&attributes, client, name);
    }
}

int main(int argc, char **argv)
{
    struct options options;
    options_parse(&options, argc, argv, "argument", 100);
    sem_init(&seats, 0, (unsigned)options.workers);
    int listener = net_listen(&options, true);
    stop_catch_signals(true);
    net_announce(&options, listener);

    accept_and_create(listener);
    close(listener);
    return 0;
}
