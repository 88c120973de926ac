/* bare.c, and Redis counts the visitors. While we sleep until it has replied, we serve
 * nobody else: the second visitor waits for the first one's Redis, too.
 *
 *     make bare && build/bare/01-ask 8000 6379      our port, and that of Redis
 */
#include <arpa/inet.h>
#include <err.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static const char counted[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                              "Connection: close\r\n\r\nYou are visitor %lld\n";
static const char away[] = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\n";

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

int main(int argc, char **argv)
{
    in_port_t port = argc > 1 ? (in_port_t)strtol(argv[1], NULL, 10) : 8000;
    int redis_port = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 6379;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK); /* no other machine can reach us */
    char request[4096];

    int listener = socket(AF_INET, SOCK_STREAM, 0);
    check(listener, "socket");
    check(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)), "setsockopt");
    check(bind(listener, (struct sockaddr *)&here, sizeof(here)), "bind");
    check(listen(listener, 10), "listen");
    signal(SIGPIPE, SIG_IGN); /* hiredis writes without MSG_NOSIGNAL, and so does dprintf() */
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
}
