/* bare.c, and Redis counts the visitors. Each child opens a connection of its own. On one
 * that all children had from their parent, they would read each other's replies.
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
static int redis_port;

static void check(int result, const char *what)
{
    if (result < 0)
        err(1, "%s", what); /* says why, and exits */
}

/* Asks Redis, sleeps until it has replied, and tells the client. */
static void answer(int client)
{
    redisContext *redis = redisConnect("127.0.0.1", redis_port);
    redisReply *reply = NULL;
    if (redis && !redis->err)
        reply = redisCommand(redis, "INCR visits"); /* NULL: the connection has ended */
    if (reply && reply->type == REDIS_REPLY_INTEGER)
        dprintf(client, counted, reply->integer);
    else
        send(client, away, sizeof(away) - 1, MSG_NOSIGNAL);
    freeReplyObject(reply);
    redisFree(redis);
}

int main(int argc, char **argv)
{
    in_port_t port = argc > 1 ? (in_port_t)strtol(argv[1], NULL, 10) : 8000;
    redis_port = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 6379;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK); /* no other machine can reach us */
    char request[4096];

    int listener = socket(AF_INET, SOCK_STREAM, 0);
    check(listener, "socket");
    check(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)), "setsockopt");
    check(bind(listener, (struct sockaddr *)&here, sizeof(here)), "bind");
    check(listen(listener, 10), "listen");
    signal(SIGPIPE, SIG_IGN); /* hiredis writes without MSG_NOSIGNAL, and so does dprintf() */
    /* Tells the kernel to forget a child that has ended. Otherwise it is a zombie until we ask. */
    check(sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_IGN}, NULL), "sigaction");

    for (;;) {
        int client = accept(listener, NULL, NULL); /* sleeps until a client connects */
        if (client < 0)
            continue;
        pid_t child = fork();
        if (child == 0) { /* only the parent accepts */
            close(listener);
            if (recv(client, request, sizeof(request), 0) > 0) /* sleeps until it sends a byte */
                answer(client);
            _exit(0); /* closes the child's client, too */
        }
        if (child < 0) /* no process left */
            send(client, away, sizeof(away) - 1, MSG_NOSIGNAL);
        close(client); /* the child has a copy */
    }
}
