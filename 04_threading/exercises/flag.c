/* Exercise 04/flag: visitors wait until the door is open, and a thread serves each of them.
 *
 * GET /open/42 writes the number 42 on the door, and opens it. GET / waits until the
 * door is open, and answers with the number on it. A visitor who comes when the door is
 * open is answered at once. But visitors who have come before wait for ever, and each of
 * them keeps a core busy.
 *
 * pthread_mutex_lock(3), pthread_cond_wait(3)
 */
#include "net.h"
#include "options.h"
#include "stop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static int number_on_door;
static bool is_open; /* once it is, it stays open; but the number may change */

static void open_door(int number)
{
    number_on_door = number;
    is_open = true;
}

/* Waits until the door is open, and reads the number on it. */
static int wait_at_door(void)
{
    while (!is_open)
        ;
    return number_on_door;
}

static void answer(int client, const char *request)
{
    char body[32], text[512];
    int number;
    if (sscanf(request, "GET /open/%d ", &number) == 1)
        open_door(number);
    else
        number = wait_at_door();
    int len = snprintf(body, sizeof(body), "%d\n", number);
    len = snprintf(text, sizeof(text),
                   "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n"
                   "Connection: close\r\n\r\n%s",
                   len, body);
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

    options_parse(&options, argc, argv, "flag", 0);
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
