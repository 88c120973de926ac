/* each: how some exercises of chapter 4 begin. Each client gets a thread, which reads its request
 * and answers it. What the answer is, and what the threads share, is the exercise itself.
 *
 * An exercise is one file, so it includes the code along with the declarations.
 */
#ifndef EXERCISES_EACH_H
#define EXERCISES_EACH_H

#include "plain.h"

#include <pthread.h>
#include <stdint.h>

/* What a thread does with its client's request. It is set before there are any threads. */
static void (*each_answer)(int client, const char *request);

/* A thread's whole life. */
static inline void *each_serve(void *argument)
{
    int client = (int)(intptr_t)argument; /* the descriptor itself, which fits into a pointer */
    char request[4096];
    if (plain_read(client, request, sizeof(request)))
        each_answer(client, request);
    close(client);
    return NULL;
}

/* Listens, and makes a thread for each client, until the signal to stop. */
static inline void each_run(const struct options *options,
                            void (*answer)(int client, const char *request))
{
    pthread_attr_t attributes;
    pthread_t thread;
    each_answer = answer;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int listener = net_listen(options, true);
    stop_catch_signals(true);
    net_announce(options, listener);

    while (!stop_requested()) {
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0)
            net_handle_accept_error();
        else if (pthread_create(&thread, &attributes, each_serve, (void *)(intptr_t)client))
            close(client);
    }
    close(listener);
}

#endif
