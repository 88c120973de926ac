#include "redis.h"

#include "log.h"
#include "process.h"

#include <errno.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- where it is --------------------------------------------------------------------------- */

static const char *locate_host(struct redis_server *server)
{
    char host[256];
    const char *where = server->where, *colon = strrchr(where, ':');
    size_t len = colon ? (size_t)(colon - where) : 0;
    if (!colon || len == 0 || len >= sizeof(host))
        return "host:port, or unix:PATH";
    bool brackets = where[0] == '[' && where[len - 1] == ']';
    snprintf(host, sizeof(host), "%.*s", (int)len - (brackets ? 2 : 0), where + brackets);

    char *end;
    long port = strtol(colon + 1, &end, 10);
    if (end == colon + 1 || *end != '\0' || port < 1 || port > 65535)
        return "host:port, with a port from 1 to 65535";

    /* where "localhost" is both IPv4 and IPv6, Redis more often listens on 127.0.0.1 */
    struct addrinfo *address, hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_INET};
    struct addrinfo hints_6 = {.ai_socktype = SOCK_STREAM, .ai_family = AF_INET6};
    if (getaddrinfo(host, colon + 1, &hints, &address) != 0 &&
        getaddrinfo(host, colon + 1, &hints_6, &address) != 0)
        return "a host that can be found";
    server->address_size = address->ai_addrlen;
    memcpy(&server->address, address->ai_addr, address->ai_addrlen);
    freeaddrinfo(address);
    return NULL;
}

const char *redis_parse_address(struct redis_server *server, const char *where)
{
    server->where = where;
    server->password = "";
    if (strncmp(where, "unix:", 5) != 0)
        return locate_host(server);
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    size_t len = strlen(where + 5);
    if (len == 0 || len >= sizeof(local.sun_path))
        return "a path of 1 to 107 bytes";
    memcpy(local.sun_path, where + 5, len);
    server->address_size = sizeof(local);
    memcpy(&server->address, &local, sizeof(local));
    return NULL;
}

/* ---- its errors ---------------------------------------------------------------------------- */

enum { SHOWN_BYTES = 200 };

/* All processes of a server share this. */
struct redis_logged {
    _Atomic int64_t second; /* of the last line */
    atomic_bool auth;       /* an error of AUTH was logged */
};

/* Logs "NAME: Redis DOES: ERROR". Of the error it shows the first 200 bytes, those that cannot be
 * printed as \xHH. Any thread and any child may call this. */
static void log_error(const struct redis_server *server, const char *does, const char *error,
                      size_t len)
{
    char line[SHOWN_BYTES * 4 + 1];
    int64_t now = clock_now_ms() / 1000;
    if (!server->logged || atomic_exchange(&server->logged->second, now) == now)
        return;
    text_escape(error, len < SHOWN_BYTES ? len : SHOWN_BYTES, line, sizeof(line));
    log_message(server->name, "Redis %s: %s", does, line);
}

void redis_log_error(const struct redis_server *server, const redisReply *reply, bool is_of_auth)
{
    if (reply->type != REDIS_REPLY_ERROR || !server->logged)
        return;
    if (!is_of_auth || !atomic_exchange(&server->logged->auth, true))
        log_error(server, "says", reply->str, (size_t)reply->len);
}

/* ---- connecting ---------------------------------------------------------------------------- */

static bool set_limit(int fd, int option, long ms)
{
    const struct timeval limit = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    return setsockopt(fd, SOL_SOCKET, option, &limit, sizeof(limit)) == 0;
}

/* While nobody listens on Redis' port, the kernel may choose that port for our own end, if it is
 * one of ip_local_port_range (ip(7)). Then connect(2) succeeds: both ends are this socket (RFC
 * 9293, 3.5), which would keep the port from Redis. */
static bool is_its_own_peer(int fd, const struct redis_server *server)
{
    struct sockaddr_storage own;
    socklen_t size = sizeof(own);
    return getsockname(fd, (struct sockaddr *)&own, &size) == 0 && size == server->address_size &&
           memcmp(&own, &server->address, size) == 0;
}

/* A blocking connect(2) ends after SO_SNDTIMEO, with EINPROGRESS (socket(7)). On a Unix socket
 * whose queue is full it waits, too, and ends with EAGAIN. After a signal it is called again, and
 * waits on. */
int redis_connect(const struct redis_server *server, int flag)
{
    int fd = socket(server->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | flag, 0);
    int result = -1;
    if (fd >= 0 && set_limit(fd, SO_SNDTIMEO, server->connect_ms) &&
        set_limit(fd, SO_RCVTIMEO, server->command_ms))
        do
            result = connect(fd, (const struct sockaddr *)&server->address, server->address_size);
        while (result < 0 && errno == EINTR);
    bool is_made = result == 0 || (fd >= 0 && flag && errno == EINPROGRESS);
    if (is_made && !is_its_own_peer(fd, server))
        return fd;
    int reason = is_made ? ECONNREFUSED : errno;
    if (fd >= 0) { /* with a reset: TIME_WAIT would keep the port from Redis for another minute */
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
                   sizeof(struct linger));
        close(fd);
    }
    errno = reason;
    return -1;
}

/* ---- commands ------------------------------------------------------------------------------ */

void redis_prepare(struct redis_command *command)
{
    const char *words[4];
    size_t lens[4];
    char *bytes;
    int count = 0;
    for (; count < 4 && command->words[count].at; count++) {
        words[count] = command->words[count].at;
        lens[count] = command->words[count].len;
    }
    long long len = redisFormatCommandArgv(&bytes, count, words, lens);
    if (len > 0) {
        command->bytes = bytes;
        command->len = (size_t)len;
    }
}

bool redis_is_stale(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

struct redis_command redis_auth_command(const struct redis_server *server)
{
    return (struct redis_command){.words = {SPAN("AUTH"), span_of(server->password)}};
}

/* ---- replies ------------------------------------------------------------------------------- */

/* hiredis 0.14 ends the program if it cannot replace a larger buffer that has become empty. It has
 * just freed that one, so there is memory for the new one, which is small. */
enum { KEPT_BYTES = 1024 * 1024 };

redisReader *redis_open_reader(void)
{
    redisReader *reader = redisReaderCreate();
    if (reader)
        reader->maxbuf = KEPT_BYTES;
    return reader;
}

bool redis_next_reply(const struct redis_server *server, redisReader *reader, redisReply **reply)
{
    void *whole = NULL;
    bool makes_sense = redisReaderGetReply(reader, &whole) == REDIS_OK;
    *reply = whole;
    if (!makes_sense)
        log_error(server, "makes no sense", reader->errstr, strlen(reader->errstr));
    return makes_sense;
}

/* ---- at start ------------------------------------------------------------------------------ */

void redis_find(struct redis_server *server, const struct options *o)
{
    *server = (struct redis_server){
        .name = o->name,
        .connect_ms = o->timeout_ms / CONNECT_PART,
        .command_ms = o->timeout_ms / REDIS_PART,
    };
    const char *right = redis_parse_address(server, o->redis);
    if (right)
        options_bad_value(o->name, "--redis", o->redis, right);

    /* The environment is safer than the command line, which ps(1) shows to all users. */
    const char *password = getenv("REDISCLI_AUTH");
    if (password)
        server->password = password;
    server->logged = mmap(NULL, sizeof(*server->logged), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (server->logged == MAP_FAILED)
        process_die(o->name, "no memory for what is logged of Redis: %s", strerror(errno));

    int fd = redis_connect(server, 0);
    if (fd < 0)
        fprintf(stderr,
                "%s: no Redis at %s (%s): files are served, the guestbook answers 503 until "
                "there is one\n",
                o->name, server->where, strerror(errno == EINPROGRESS ? ETIMEDOUT : errno));
    else
        close(fd);
}
