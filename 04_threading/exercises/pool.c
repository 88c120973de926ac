/* Exercise 04/pool: a thread for every client, and one Redis connection for them all.
 * The task is in 04_threading/exercises/pool.md.
 * Manual pages: pthread_mutex_lock(3), pthread_cond_wait(3)
 */
#include "classroom/exercises/each.h"
#include "options.h"
#include "process.h"
#include "redis.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { REDIS_CONNECTIONS = 8 }; /* Here: open this many, however many clients come. */

static redisContext *redis; /* all threads send their commands over it */

static void connect_to(const struct redis_server *server, const char *name)
{
    int fd = redis_connect(server, 0);
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

static void answer(int client, const char *request)
{
    char body[64];
    long long number = count_visitor();
    (void)request; /* whatever was asked for */
    snprintf(body, sizeof(body), "You are visitor %lld.\n", number);
    plain_send(client, number < 0 ? "503 Service Unavailable" : "200 OK", body);
}

int main(int argc, char **argv)
{
    struct options options = {.name = "pool"};
    struct redis_server server;

    options_parse(&options, argc, argv);
    redis_find(&server, &options);
    connect_to(&server, options.name);
    each_run(&options, answer);
    return 0;
}
