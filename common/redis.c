#include "redis.h"

#include "clock.h"
#include "http.h"
#include "log.h"
#include "options.h"
#include "process.h"
#include "text.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- where it is --------------------------------------------------------------------------- */

/* Copies [at, end) to `out` of size + 1 bytes, without its escapes. */
static bool unescape(const char *at, const char *end, char *out, size_t size)
{
    char text[3 * REDIS_MAX_PASSWORD];
    if ((size_t)(end - at) > sizeof(text))
        return false;
    memcpy(text, at, (size_t)(end - at));
    long len = http_decode_escapes(text, (size_t)(end - at));
    if (len < 0 || (size_t)len > size || memchr(text, '\0', (size_t)len))
        return false;
    memcpy(out, text, (size_t)len);
    out[len] = '\0';
    return true;
}

/* Reads "user", ":password" or "user:password", up to `end`. */
static bool read_credentials(struct redis_server *server, const char *at, const char *end)
{
    const char *colon = memchr(at, ':', (size_t)(end - at));
    const char *user_end = colon ? colon : end, *password = colon ? colon + 1 : end;
    return unescape(at, user_end, server->user, REDIS_MAX_USER) &&
           unescape(password, end, server->password, REDIS_MAX_PASSWORD) &&
           (colon ? *server->password : *server->user) != '\0';
}

static const char *locate_host(struct redis_server *server, const char *where)
{
    char host[256];
    const char *colon = strrchr(where, ':');
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

static const char scheme[] = "redis://";

static bool is_url(const char *where)
{
    return strncmp(where, scheme, strlen(scheme)) == 0;
}

const char *redis_parse_address(struct redis_server *server, const char *where)
{
    if (strncmp(where, "unix:", 5) == 0) {
        struct sockaddr_un local = {.sun_family = AF_UNIX};
        size_t len = strlen(where + 5);
        if (len == 0 || len >= sizeof(local.sun_path))
            return "a path of 1 to 107 bytes";
        memcpy(local.sun_path, where + 5, len);
        server->address_size = sizeof(local);
        memcpy(&server->address, &local, sizeof(local));
        return NULL;
    }
    const char *host = is_url(where) ? where + strlen(scheme) : where;
    const char *at = is_url(where) ? strrchr(host, '@') : NULL;
    if (at && !read_credentials(server, host, at))
        return "redis://user:password@host:port";
    return locate_host(server, at ? at + 1 : host);
}

/* ---- its errors ---------------------------------------------------------------------------- */

enum { TOLD_ERRORS = 16, TOLD_BYTES = 200 };

/* Hashes of the errors that were printed; 0: a free place. All processes of a server share them. */
struct redis_told {
    _Atomic uint32_t hashes[TOLD_ERRORS];
};

void redis_log(const struct redis_server *server, const char *does, const char *error, size_t len)
{
    char line[TOLD_BYTES * 4 + 1];
    uint32_t hash = 2166136261; /* FNV-1a */
    len = len < TOLD_BYTES ? len : TOLD_BYTES;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)error[i]) * 16777619;
    hash += hash == 0;
    for (int i = 0; server->told && i < TOLD_ERRORS; i++) {
        uint32_t there = 0;
        /* The thread or process that puts the hash into a free place prints the error. */
        if (atomic_compare_exchange_strong(&server->told->hashes[i], &there, hash)) {
            text_escape(error, len, line, sizeof(line));
            log_message(server->name, "Redis %s: %s", does, line);
            return;
        }
        if (there == hash)
            return;
    }
}

/* ---- connecting ---------------------------------------------------------------------------- */

/* Returns a socket that is connected within `ms`, or -1 with errno set. With 0 milliseconds the
 * socket is non-blocking, and its connection may still be on its way. We do not connect with
 * hiredis: version 0.14, which Debian 12 and Ubuntu 22.04 have, crashes while it connects if
 * malloc(3) returns NULL, and has no redisConnectWithOptions(). */
static int connect_within(const struct redis_server *server, int64_t ms)
{
    /* A blocking connect(2) ends after SO_SNDTIMEO, with EINPROGRESS (socket(7)), or with EAGAIN on
     * a Unix socket. */
    const struct timeval limit = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    int fd =
        socket(server->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | (ms ? 0 : SOCK_NONBLOCK), 0);
    if (fd >= 0 && (!ms || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0) &&
        (connect(fd, (const struct sockaddr *)&server->address, server->address_size) == 0 ||
         (!ms && errno == EINPROGRESS)))
        return fd;
    int reason = errno;
    if (fd >= 0)
        close(fd);
    errno = reason;
    return -1;
}

int redis_connect(const struct redis_server *server)
{
    int64_t deadline = clock_now_ms() + server->connect_ms;
    for (;;) {
        int64_t left = deadline - clock_now_ms();
        int fd = connect_within(server, left > 0 ? left : 1);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || clock_now_ms() >= deadline)
            return fd;
        poll(NULL, 0, 5); /* the queue of a Unix socket is full, or a signal came: once more */
    }
}

int redis_connect_nonblocking(const struct redis_server *server)
{
    return connect_within(server, 0);
}

/* ---- commands and replies ------------------------------------------------------------------ */

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

/* `pos` and `len` are fields of the public struct redisReader, but they are not documented. Checked
 * in hiredis 0.14.1 and 1.2.0. */
bool redis_has_more(const redisReader *reader)
{
    return reader->pos < reader->len;
}

bool redis_is_stale(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

void redis_log_nonsense(const struct redis_server *server, const redisReader *reader,
                        const struct redis_limits *limits)
{
    const char *error = reader->errstr;
    if (limits->exceeded)
        error = "a reply larger than a page can be";
    else if (reader->err != REDIS_ERR_PROTOCOL)
        return; /* lost, or too late */
    redis_log(server, "makes no sense", error, strlen(error));
}

struct redis_command redis_auth_command(const struct redis_server *server)
{
    const char *password = server->password, *user = *server->user ? server->user : NULL;
    return (struct redis_command){
        .count = user ? 3 : 2,
        .words = {"AUTH", user ? user : password, password},
        .lens = {strlen("AUTH"), strlen(user ? user : password), strlen(password)},
    };
}

int redis_auth_refusal(const redisReply *reply)
{
    static const char *const not_ready[] = {"LOADING ", "ERR max number of clients"};
    if (reply->type == REDIS_REPLY_STATUS)
        return 0;
    for (size_t i = 0; reply->str && i < sizeof(not_ready) / sizeof(not_ready[0]); i++)
        if (strncmp(reply->str, not_ready[i], strlen(not_ready[i])) == 0)
            return REDIS_NOT_READY;
    return REDIS_NOT_ADMITTED;
}

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

/* ---- at start ------------------------------------------------------------------------------ */

void redis_find(struct redis_server *server, const struct options *o)
{
    *server = (struct redis_server){
        .name = o->name,
        .connect_ms = options_connect_ms(o),
        .command_ms = options_redis_ms(o),
    };
    const char *right = redis_parse_address(server, o->redis);
    const char *at = is_url(o->redis) ? strrchr(o->redis, '@') : NULL;
    const char *shown = at ? at + 1 : o->redis; /* without the password, for messages */
    if (right)
        options_bad_value(o->name, "--redis", shown, right);

    /* The environment is safer than the command line, which ps(1) shows to all users. */
    const char *password = getenv("REDISCLI_AUTH");
    if (password && !*server->password) {
        if (strlen(password) > REDIS_MAX_PASSWORD)
            process_die(o->name, "REDISCLI_AUTH: a password of at most %d bytes",
                        REDIS_MAX_PASSWORD);
        memcpy(server->password, password, strlen(password) + 1);
    }
    if (*server->user && !*server->password)
        process_die(o->name, "--redis %s: a user needs a password, as REDISCLI_AUTH", shown);
    server->told = mmap(NULL, sizeof(*server->told), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (server->told == MAP_FAILED)
        process_die(o->name, "%s", strerror(errno));

    int fd = redis_connect(server);
    if (fd < 0)
        fprintf(stderr,
                "%s: no Redis at %s (%s): files are served, the guestbook answers 503 until "
                "there is one\n",
                o->name, shown, strerror(errno == EINPROGRESS ? ETIMEDOUT : errno));
    else
        close(fd);
}
