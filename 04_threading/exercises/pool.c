/* Exercise 04/pool: a thread for every client, and one Redis connection for them all.
 *
 * The server counts each visitor in Redis with INCR, and tells the visitor the
 * number in the reply. A visitor who comes alone always gets the right number.
 * When many come at once, they get wrong numbers or none, or the server ends.
 *
 * A hiredis context is not thread-safe, as its manual says. It has one buffer for
 * the bytes that have been received and not been read yet, and all threads use it.
 *
 * pthread_mutex_lock(3), pthread_cond_wait(3)
 */
#include "net.h"
#include "options.h"
#include "process.h"
#include "redis.h"
#include "stop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { REDIS_CONNECTIONS = 8 }; /* Here: open this many, however many clients come. */

static redisContext *redis; /* all threads send their commands over it */

static void connect_to(const struct redis_server *server, const char *name)
{
    int fd = redis_connect(server);
    redis = fd < 0 ? NULL : redisConnectFd(fd);
    if (!redis || redis->err)
        process_die(name, "Redis: %s", redis ? redis->errstr : strerror(errno));
}

/* Counts a visitor and returns the number, or -1 if Redis did not count. */
static long long count_visitor(void)
{
    redisReply *reply = redisCommand(redis, "INCR guestbook:visitors");
    long long number = reply && reply->type == REDIS_REPLY_INTEGER ? reply->integer : -1;
    freeReplyObject(reply);
    return number;
}

static void answer(int client, long long number)
{
    char body[64], text[256];
    int len = snprintf(body, sizeof(body), "You are visitor %lld.\n", number);
    len = snprintf(text, sizeof(text),
                   "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n"
                   "Connection: close\r\n\r\n%s",
                   number < 0 ? "503 Service Unavailable" : "200 OK", len, body);
    send(client, text, (size_t)len, MSG_NOSIGNAL);
}

/* A thread's whole life. As in 01_iterative/bare.c, one recv() is taken to be a whole request. */
static void *greet(void *argument)
{
    int client = (int)(intptr_t)argument; /* the descriptor itself, which fits into a pointer */
    char request[4096];
    ssize_t n;
    do
        n = recv(client, request, sizeof(request), 0);
    while (n < 0 && errno == EAGAIN && !stop_requested()); /* a tick */
    if (n > 0)
        answer(client, count_visitor());
    close(client);
    return NULL;
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;
    pthread_attr_t attributes;
    pthread_t thread;

    options_parse(&options, argc, argv, "pool", 0);
    redis_find(&server, &options);
    connect_to(&server, options.name);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int listener = net_listen(&options, true);
    stop_catch_signals(true);
    net_announce(&options, listener);

    while (!stop_requested()) {
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0)
            net_handle_accept_error();
        else if (pthread_create(&thread, &attributes, greet, (void *)(intptr_t)client) != 0)
            close(client);
    }
    close(listener);
    return 0;
}
