/* bare.c, and Redis counts the visitors. Each thread opens one connection, and keeps it. */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static const char counted[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                              "Connection: close\r\n\r\nYou are visitor %lld\n";
static const char away[] = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\n";
enum { THREADS = 4 };
static int redis_port;

static void check(int result, const char *what)
{
    if (result < 0)
        err(1, "%s", what); /* says why, and exits */
}

/* Asks Redis, sleeps until it has replied, and tells the client. */
static void answer(int client, redisContext *redis)
{
    redisReply *reply = NULL;
    if (!redis->err || redisReconnect(redis) == REDIS_OK)
        reply = redisCommand(redis, "INCR visits"); /* NULL: the connection has ended */
    if (reply && reply->type == REDIS_REPLY_INTEGER)
        dprintf(client, counted, reply->integer);
    else
        send(client, away, sizeof(away) - 1, MSG_NOSIGNAL);
    freeReplyObject(reply);
}

/* A thread's whole life: chapter 1's loop. */
static void *work(void *argument)
{
    char request[4096];
    int listener = *(int *)argument; /* of main(), which never changes it and never returns */
    redisContext *redis = redisConnect("127.0.0.1", redis_port); /* Is it away? redis->err */
    check(redis ? 0 : -1, "redisConnect");
    for (;;) {
        int client = accept(listener, NULL, NULL); /* sleeps until a client connects */
        if (client < 0)
            continue;
        if (recv(client, request, sizeof(request), 0) > 0) /* sleeps until it sends a byte */
            answer(client, redis);
        close(client);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    in_port_t port = argc > 1 ? (in_port_t)strtol(argv[1], NULL, 10) : 8000;
    redis_port = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 6379;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK); /* no other machine can reach us */
    pthread_t thread;

    int listener = socket(AF_INET, SOCK_STREAM, 0);
    check(listener, "socket");
    check(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)), "setsockopt");
    check(bind(listener, (struct sockaddr *)&here, sizeof(here)), "bind");
    check(listen(listener, 10), "listen");
    signal(SIGPIPE, SIG_IGN); /* hiredis writes without MSG_NOSIGNAL, and so does dprintf() */

    for (int i = 0; i < THREADS; i++) {
        errno = pthread_create(&thread, NULL, work, &listener);
        check(-errno, "pthread_create");
    }
    pause(); /* for ever: if main() returned, that would end all threads */
}
