/* Exercise 04/rooms: eight rooms with visitors, and a thread for every client.
 *
 * GET /2/5 moves a visitor from room 2 to room 5, and GET / counts the visitors in all
 * rooms. Each room has a lock. Clients who come one after the other are served well.
 * But when several come together, it happens that some of them get no answer, and
 * neither does anybody who comes later. The server uses no processor time then.
 *
 * pthread_mutex_lock(3), gdb(1)
 */
#include "net.h"
#include "options.h"
#include "stop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROOMS = 8, VISITORS = 10, BODY_BYTES = 128 };

static struct room {
    pthread_mutex_t lock;
    int visitors; /* read and written with `lock` held */
} rooms[ROOMS];

/* Nobody may see that a visitor has left one room and has not come to the other, so both are
 * locked. */
static void move(int from, int to, char body[BODY_BYTES])
{
    pthread_mutex_lock(&rooms[from].lock);
    pthread_mutex_lock(&rooms[to].lock);
    if (rooms[from].visitors > 0) {
        rooms[from].visitors--;
        rooms[to].visitors++;
    }
    snprintf(body, BODY_BYTES, "Room %d has %d visitors, room %d has %d.\n", from,
             rooms[from].visitors, to, rooms[to].visitors);
    pthread_mutex_unlock(&rooms[to].lock);
    pthread_mutex_unlock(&rooms[from].lock);
}

/* This is the sum of one moment, so all rooms are locked. */
static void count(char body[BODY_BYTES])
{
    int sum = 0;
    for (int i = 0; i < ROOMS; i++)
        pthread_mutex_lock(&rooms[i].lock);
    for (int i = 0; i < ROOMS; i++)
        sum += rooms[i].visitors;
    for (int i = 0; i < ROOMS; i++)
        pthread_mutex_unlock(&rooms[i].lock);
    snprintf(body, BODY_BYTES, "All rooms have %d visitors.\n", sum);
}

static void answer(int client, const char *request)
{
    char body[BODY_BYTES], text[512];
    int from, to;
    if (sscanf(request, "GET /%d/%d ", &from, &to) == 2 && from >= 0 && from < ROOMS && to >= 0 &&
        to < ROOMS)
        move(from, to, body);
    else
        count(body);
    int len = snprintf(text, sizeof(text),
                       "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                       "Connection: close\r\n\r\n%s",
                       strlen(body), body);
    send(client, text, (size_t)len, MSG_NOSIGNAL);
}

/* A thread's whole life. As in 01_iterative/bare.c, one recv() is taken to be a whole request. */
static void *serve_one_client(void *argument)
{
    int client = (int)(intptr_t)argument; /* the descriptor itself, which fits into a pointer */
    char request[4096];
    ssize_t n;
    do
        n = recv(client, request, sizeof(request) - 1, 0);
    while (n < 0 && errno == EAGAIN && !stop_requested()); /* a tick */
    if (n > 0) {
        request[n] = '\0';
        answer(client, request);
    }
    close(client);
    return NULL;
}

int main(int argc, char **argv)
{
    struct options options;
    pthread_attr_t attributes;
    pthread_t thread;

    options_parse(&options, argc, argv, "rooms", 0);
    for (int i = 0; i < ROOMS; i++) {
        pthread_mutex_init(&rooms[i].lock, NULL);
        rooms[i].visitors = VISITORS;
    }
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int listener = net_listen(&options, true);
    stop_catch_signals(true);
    net_announce(&options, listener);

    while (!stop_requested()) {
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0)
            net_handle_accept_error();
        else if (pthread_create(&thread, &attributes, serve_one_client, (void *)(intptr_t)client))
            close(client);
    }
    close(listener);
    return 0;
}
