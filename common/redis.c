#include "redis.h"

#include "clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- how large a reply may be -------------------------------------------------------------- */

/* hiredis makes its objects with functions that may fail for lack of memory. Ours also fail beyond
 * the limits, before anything is allocated. */
#if HIREDIS_MAJOR < 1
typedef int element_count;
#else
typedef size_t element_count;
#endif

static void *create_array(const redisReadTask *task, element_count elements)
{
    struct redis_limits *limits = task->privdata;
    bool is_flat = task->type == REDIS_REPLY_ARRAY && !task->parent; /* no map, no set */
    limits->exceeded = !is_flat || elements > REDIS_MAX_ELEMENTS;
    return limits->exceeded ? NULL : limits->plain->createArray(task, elements);
}

static void *create_string(const redisReadTask *task, char *text, size_t len)
{
    struct redis_limits *limits = task->privdata;
    limits->exceeded = len > REDIS_MAX_STRING;
    return limits->exceeded ? NULL : limits->plain->createString(task, text, len);
}

/* maxbuf: hiredis 0.14 replaces an empty buffer of more than 16 KiB by a new one, and calls abort()
 * if there is no memory for that. With 0 it keeps the buffer, whose size has a limit. */
void redis_limit_replies(redisReader *reader, struct redis_limits *limits)
{
    reader->maxbuf = 0;
    *limits = (struct redis_limits){.functions = *reader->fn, .plain = reader->fn};
    limits->functions.createArray = create_array;
    limits->functions.createString = create_string;
    reader->fn = &limits->functions;
    reader->privdata = limits;
}

bool redis_is_too_large(const redisReader *reader, struct redis_limits *limits)
{
    enum { AROUND = sizeof("$16384\r\n\r\n") };
    limits->exceeded |= reader->len - reader->pos > REDIS_MAX_STRING + AROUND;
    return limits->exceeded;
}

/* ---- one connection ------------------------------------------------------------------------ */

void redis_log_error(const struct redis_server *server, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR)
        redis_log(server, "says", reply->str, (size_t)reply->len);
}

void redis_log_nonsense(const struct redis_server *server, const redisReader *reader,
                        const struct redis_limits *limits)
{
    const char *error = limits->exceeded                    ? "a reply larger than a page can be"
                        : reader->err == REDIS_ERR_PROTOCOL ? reader->errstr
                                                            : NULL;
    if (error)
        redis_log(server, "makes no sense", error, strlen(error));
}

void redis_close(struct redis *redis)
{
    if (redis->fd < 0)
        return;
    close(redis->fd);
    redisReaderFree(redis->reader);
    redis->fd = -1;
    redis->reader = NULL;
}

static bool open_connection(struct redis *redis)
{
    const long ms = redis->server->command_ms;
    const struct timeval limit = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    int fd = redis_connect(redis->server);
    redisReader *reader = fd >= 0 ? redisReaderCreate() : NULL;
    if (!reader) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    redis->fd = fd;
    redis->reader = reader;
    redis_limit_replies(reader, &redis->limits);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0)
        return true; /* for writing, connect_to() has set a limit already */
    redis_close(redis);
    return false;
}

bool redis_is_stale(const struct redis *redis)
{
    char byte;
    return recv(redis->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

/* The cast: an argument of hiredis lacks a const. */
void redis_prepare(struct redis_command *command)
{
    char *bytes;
    long long len = redisFormatCommandArgv(&bytes, command->count, (const char **)command->words,
                                           command->lens);
    if (len > 0) {
        command->bytes = bytes;
        command->len = (size_t)len;
    }
}

static bool write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno != EINTR)
            return false;
        bytes += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool send_command(int fd, const struct redis_command *command)
{
    if (command->bytes)
        return write_all(fd, command->bytes, command->len);
    struct redis_command formatted = *command;
    redis_prepare(&formatted);
    bool sent = formatted.bytes && write_all(fd, formatted.bytes, formatted.len);
    int reason = errno;
    redisFreeCommand((char *)formatted.bytes);
    errno = reason;
    return sent;
}

ssize_t redis_read(int fd, redisReader *reader)
{
    char bytes[16 * 1024];
    ssize_t n = read(fd, bytes, sizeof(bytes));
    if (n <= 0 || redisReaderFeed(reader, bytes, (size_t)n) == REDIS_OK)
        return n;
    errno = ENOMEM;
    return -1;
}

/* `pos` and `len` are fields of the public struct redisReader, but they are not documented. Checked
 * in hiredis 0.14.1 and 1.2.0. */
bool redis_has_more(const redisReader *reader)
{
    return reader->pos < reader->len;
}

/* Waits for the rest of a reply that comes in pieces. If the deadline has passed, checks once. */
static bool is_readable(int fd, int64_t deadline)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    int ready;
    do {
        int64_t left = deadline - clock_now_ms();
        ready = poll(&wanted, 1, left > 0 ? (int)left : 0);
    } while (ready < 0 && errno == EINTR);
    if (ready == 0)
        errno = EAGAIN;
    return ready > 0;
}

/* Reads until a reply is whole. The first read waits by itself (SO_RCVTIMEO). Returns NULL with
 * errno set, to EAGAIN if the time is over. */
static redisReply *read_reply(struct redis *redis, int64_t deadline)
{
    void *reply = NULL;
    for (bool first = true;; first = false) {
        if (!first && !is_readable(redis->fd, deadline))
            return NULL;
        ssize_t n = redis_read(redis->fd, redis->reader);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            errno = n == 0 ? ECONNRESET : errno;
            return NULL;
        }
        bool sense = redisReaderGetReply(redis->reader, &reply) == REDIS_OK;
        if (sense && reply)
            return reply;
        if (!sense || redis_is_too_large(redis->reader, &redis->limits)) {
            errno = EPROTO;
            return NULL;
        }
    }
}

/* One command on an open connection. */
static redisReply *exchange(struct redis *redis, const struct redis_command *command, int *why)
{
    int64_t deadline = clock_now_ms() + redis->server->command_ms;
    redisReply *reply = NULL;
    errno = 0;
    if (send_command(redis->fd, command))
        reply = read_reply(redis, deadline);
    *why = reply ? 0 : errno == EAGAIN ? REDIS_NO_REPLY : REDIS_NO_CONNECTION;
    if (reply)
        redis_log_error(redis->server, reply);
    if (!reply)
        redis_log_nonsense(redis->server, redis->reader, &redis->limits);
    if (!reply || redis_has_more(redis->reader))
        redis_close(redis); /* a late or an extra reply must not become the next command's */
    return reply;
}

struct redis_command redis_auth_command(const struct redis_server *server)
{
    const char *user = server->user, *password = server->password;
    if (!*user)
        return (struct redis_command){
            .count = 2,
            .words = {"AUTH", password},
            .lens = {strlen("AUTH"), strlen(password)},
        };
    return (struct redis_command){
        .count = 3,
        .words = {"AUTH", user, password},
        .lens = {strlen("AUTH"), strlen(user), strlen(password)},
    };
}

int redis_auth_refusal(const struct redis_server *server, const redisReply *reply)
{
    static const char *const not_ready[] = {"LOADING ", "ERR max number of clients"};
    redis_log_error(server, reply);
    if (reply->type == REDIS_REPLY_STATUS)
        return 0;
    for (size_t i = 0; reply->str && i < sizeof(not_ready) / sizeof(not_ready[0]); i++)
        if (strncmp(reply->str, not_ready[i], strlen(not_ready[i])) == 0)
            return REDIS_NOT_READY;
    return REDIS_NOT_ADMITTED;
}

/* Opens the connection, and sends the password. */
static bool connect_and_authenticate(struct redis *redis, int *why)
{
    *why = REDIS_NO_CONNECTION;
    if (!open_connection(redis))
        return false;
    if (!*redis->server->password)
        return true;
    struct redis_command auth = redis_auth_command(redis->server);
    redisReply *reply = exchange(redis, &auth, why);
    int refusal = reply ? redis_auth_refusal(redis->server, reply) : 0;
    if (refusal) {
        redis_close(redis);
        *why = refusal;
    } else if (reply && redis->fd < 0) { /* Redis sent more than the reply */
        *why = REDIS_NO_CONNECTION;
    }
    freeReplyObject(reply);
    return redis->fd >= 0;
}

redisReply *redis_ask(struct redis *redis, const struct redis_command *command, int *why)
{
    redisReply *reply = NULL;
    bool ready = redis->fd >= 0 || connect_and_authenticate(redis, why);
    if (ready)
        reply = exchange(redis, command, why);
    /* A lost reply says something about this connection only. */
    redis->why = ready && *why == REDIS_NO_CONNECTION ? 0 : *why;
    return reply;
}
