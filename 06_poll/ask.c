/* bare.c, and Redis counts the visitors, over one connection for all. A function that slept until
 * the reply came is two here: ask() sends the question, and hiredis calls on_reply() later.
 */
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
#include <sys/socket.h>
#include <unistd.h>

static const char counted[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                              "Connection: close\r\n\r\nYou are visitor %lld\n";
static const char away[] = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\n";
enum { LISTENER, REDIS, FIRST, PLACES = FIRST + 1000 };
struct client {
    int fd;
    bool is_asking;   /* hiredis has its address: it may neither move nor be freed */
    const char *rest; /* of its answer: what it was not sent yet. NULL: there is none yet */
    char answer[128];
};
static struct client *clients[PLACES];
static struct pollfd fds[PLACES]; /* for each of them: what poll() is asked */
static redisAsyncContext *redis;  /* NULL: there is no connection */
static int redis_port;

static void check(int result, const char *what)
{
    if (result < 0)
        err(1, "%s", what); /* says why, and exits */
}

/* hiredis never waits. It says through these what poll() has to wait for, and when it is over. */
static void add_write(void *of_redis)
{
    ((struct pollfd *)of_redis)->events |= POLLOUT;
}

static void del_write(void *of_redis)
{
    ((struct pollfd *)of_redis)->events &= ~POLLOUT;
}

static void forget(void *of_redis)
{
    ((struct pollfd *)of_redis)->fd = -1; /* poll() skips it */
    redis = NULL;                         /* hiredis frees it */
}

static void connect_to_redis(void)
{
    redis = redisAsyncConnect("127.0.0.1", redis_port);
    if (!redis)
        return;
    fds[REDIS] = (struct pollfd){.fd = redis->c.fd, .events = POLLIN};
    redis->ev.data = &fds[REDIS];
    redis->ev.addWrite = add_write;
    redis->ev.delWrite = del_write;
    redis->ev.cleanup = forget;
    if (redis->err)
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

    fds[LISTENER] = (struct pollfd){.fd = listener, .events = POLLIN};
    fds[REDIS].fd = -1;
    for (nfds_t count = FIRST;;) {
        for (nfds_t i = FIRST; i < count; i++) /* one that asks waits for Redis' socket only */
            fds[i] = (struct pollfd){.fd = clients[i]->is_asking ? -1 : clients[i]->fd,
                                     .events = clients[i]->rest ? POLLOUT : POLLIN};
        if (poll(fds, count, fds[LISTENER].events ? -1 : 100) < 0) /* sleeps until one is ready */
            continue;
        for (nfds_t i = count - 1; i >= FIRST; i--) {
            if (fds[i].revents && !advance(clients[i])) {
                close(clients[i]->fd);
                free(clients[i]);
                clients[i] = clients[--count]; /* the last client moves here: it has had its turn */
            }
        }
        if (fds[REDIS].revents & ~POLLOUT)
            redisAsyncHandleRead(redis);
        if (redis && fds[REDIS].revents & POLLOUT)
            redisAsyncHandleWrite(redis);
        int fd = fds[LISTENER].revents ? accept4(listener, NULL, NULL, SOCK_NONBLOCK) : -1;
        if (fd >= 0 && (clients[count] = calloc(1, sizeof(struct client))))
            clients[count++]->fd = fd;
        else if (fd >= 0)
            close(fd);
        /* No descriptor or no place is left: new clients have to wait in the queue for a moment. */
        fds[LISTENER].events = (fds[LISTENER].revents && fd < 0) || count == PLACES ? 0 : POLLIN;
    }
}
