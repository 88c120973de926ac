/* Exercise 04/argument: a thread for every client, and --workers seats.
 * The task is in 04_threading/exercises/argument.md.
 * Manual pages: pthread_create(3), sem_wait(3), getnameinfo(3)
 */
#include "classroom/exercises/plain.h"

#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

enum { STACK_BYTES = 256 * 1024, NAME_BYTES = 80 };

static sem_t seats; /* how many more threads may serve now */
static pthread_attr_t attributes;

/* What the main thread hands to a new thread. Each thread has its own, and frees it. */
struct task {
    int client;
    const char *name; /* where the client comes from: "127.0.0.1, port 40112" */
};

/* A thread's whole life. */
static void *serve_one_client(void *argument)
{
    struct task *task = argument;
    char request[4096], body[NAME_BYTES + 32];
    sem_wait(&seats);
    if (plain_read(task->client, request, sizeof(request))) {
        snprintf(body, sizeof(body), "You come from %s.\n", task->name);
        plain_send(task->client, "200 OK", body);
    }
    close(task->client);
    free(task);
    sem_post(&seats);
    return NULL;
}

static void create_thread(int client, const char *name)
{
    pthread_t thread;
    struct task *task = malloc(sizeof(*task));
    if (task) {
        *task = (struct task){.client = client, .name = name};
        if (pthread_create(&thread, &attributes, serve_one_client, task) == 0)
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
        create_thread(client, name);
    }
}

int main(int argc, char **argv)
{
    struct options options = {.name = "argument", .workers = 100};
    options_parse(&options, argc, argv);
    sem_init(&seats, 0, (unsigned)options.workers);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int listener = net_listen(&options, true);
    stop_catch_signals(true);
    net_announce(&options, listener);

    accept_and_create(listener);
    close(listener);
    return 0;
}
