/* bare.c, and Redis counts the visitors, as in chapter 6. epoll_ctl(2) EPOLLONESHOT */
#define _GNU_SOURCE 1 /* for accept4() */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <hiredis/async.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const char counted[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                              "Connection: close\r\n\r\nYou are visitor %lld\n";
static const char away[] = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\n";
struct client {
    int fd;
    bool is_asking;   /* hiredis has its address: it may neither move nor be freed */
    const char *rest; /* of its answer: what it was not sent yet. NULL: there is none yet */
    char answer[128];
};
static int epoll;                /* the kernel's list */
static struct client of_redis;   /* only its fd, so that it may stand on the list, too */
static redisAsyncContext *redis; /* NULL: there is no connection */
static int redis_port;

static void check(int result, const char *what)
{
    if (result < 0)
        err(1, "%s", what); /* says why, and exits */
}

static bool watch(int operation, struct client *client, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = client};
    return epoll_ctl(epoll, operation, client->fd, &event) == 0;
}

/* hiredis never waits. It says through these what epoll has to wait for, and when it is over. */
static void add_write(void *place)
{
    watch(EPOLL_CTL_MOD, place, EPOLLIN | EPOLLOUT);
}

static void del_write(void *place)
{
    watch(EPOLL_CTL_MOD, place, EPOLLIN);
}

static void forget(void *place)
{
    ((struct client *)place)->fd = -1;
    redis = NULL; /* hiredis frees it */
}

static void connect_to_redis(void)
{
    redis = redisAsyncConnect("127.0.0.1", redis_port);
    if (!redis)
        return;
    of_redis.fd = redis->c.fd;
    redis->ev.data = &of_redis;
    redis->ev.addWrite = add_write;
    redis->ev.delWrite = del_write;
    redis->ev.cleanup = forget;
    if (redis->err || !watch(EPOLL_CTL_ADD, &of_redis, EPOLLIN))
        redisAsyncFree(redis);
}

/* With the reply to a client's question, or with NULL if the connection has ended without one. */
static void on_reply(redisAsyncContext *context, void *reply, void *asker)
{
    (void)context;
    const redisReply *number = reply;
    struct client *client = asker;
    client->is_asking = false;
    client->rest = away;
    if (number && number->type == REDIS_REPLY_INTEGER) {
        snprintf(client->answer, sizeof(client->answer), counted, number->integer);
        client->rest = client->answer;
    }
    watch(EPOLL_CTL_MOD, client, EPOLLOUT | EPOLLONESHOT);
}

/* Sends a client's question, and does not wait for the reply. */
static void ask(struct client *client)
{
    if (!redis)
        connect_to_redis();
    client->is_asking = true;
    if (!redis || redisAsyncCommand(redis, on_reply, client, "INCR visits") != REDIS_OK)
        on_reply(redis, NULL, client); /* hiredis will not call it */
}

/* Goes on with a client until it would have to wait. Returns false when the two are done. */
static bool advance(struct client *client)
{
    char request[4096];
    ssize_t n = client->rest ? send(client->fd, client->rest, strlen(client->rest), MSG_NOSIGNAL)
                             : recv(client->fd, request, sizeof(request), 0);
    if (n <= 0) /* EAGAIN: not yet. Anything else: the end */
        return n < 0 && (errno == EAGAIN || errno == EINTR);
    if (client->rest)
        client->rest += n;
    else
        ask(client);
    return !client->rest || *client->rest != '\0';
}

int main(int argc, char **argv)
{
    in_port_t port = argc > 1 ? (in_port_t)strtol(argv[1], NULL, 10) : 8000;
    redis_port = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 6379;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK); /* no other machine can reach us */
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    check(listener, "socket");
    check(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)), "setsockopt");
    check(bind(listener, (struct sockaddr *)&here, sizeof(here)), "bind");
    check(listen(listener, 10), "listen");
    signal(SIGPIPE, SIG_IGN); /* hiredis writes without MSG_NOSIGNAL */
    check(epoll = epoll_create1(0), "epoll_create1");
    check(watch(EPOLL_CTL_ADD, &(struct client){.fd = listener}, EPOLLIN) ? 0 : -1, "epoll_ctl");
    for (struct epoll_event event;;) {
        if (epoll_wait(epoll, &event, 1, -1) < 1) /* sleeps until one of them is ready */
            continue;
        struct client *client = event.data.ptr;
        if (client == &of_redis) {
            if (event.events != EPOLLOUT)
                redisAsyncHandleRead(redis);
            if (redis && event.events & EPOLLOUT)
                redisAsyncHandleWrite(redis);
            continue;
        }
        if (client->fd != listener) {
            bool goes_on = advance(client);
            uint32_t events = client->rest ? EPOLLOUT : EPOLLIN;
            if (goes_on &&
                (client->is_asking || watch(EPOLL_CTL_MOD, client, events | EPOLLONESHOT)))
                continue;
        } else if ((client = malloc(sizeof(*client)))) {
            *client = (struct client){.fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)};
            if (client->fd >= 0 && watch(EPOLL_CTL_ADD, client, EPOLLIN | EPOLLONESHOT))
                continue;
        }
        if (client && client->fd >= 0)
            close(client->fd); /* the kernel takes it off its list, too */
        else
            poll(NULL, 0, 100); /* no descriptor or no memory is left: all wait for a moment */
        free(client);
    }
}
