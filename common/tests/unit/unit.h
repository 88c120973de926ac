/* unit: what several of the unit tests use.
 *
 *  - Criterion runs every test in a process of its own: what is static here is
 *    each test's own, and whatever a test opens ends with it.
 *  - No server runs here, and no Redis. Bytes and replies are fed; where
 *    something must misbehave, a thread of the test plays it (stand-in).
 *  - Nobody sleeps and hopes: tests wait for an event, or for a deadline that
 *    is itself what they are about.
 */
#ifndef UNIT_H
#define UNIT_H

#include "app.h"
#include "board.h"
#include "conn.h"
#include "http.h"
#include "options.h"
#include "process.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <hiredis/hiredis.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000 }; /* for what must happen; a test that waits so long has failed */
/* All suites have the same .timeout, or Criterion 2.4 forgets some of them. */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A test behind which end() looks for what is left. It is no .fini, whose findings do not count. */
#define TestToEnd(suite, name)                                                                     \
    static void suite##_##name(void);                                                              \
    Test(suite, name)                                                                              \
    {                                                                                              \
        suite##_##name();                                                                          \
        end();                                                                                     \
    }                                                                                              \
    static void suite##_##name(void)

/* ---- comparing: Criterion says that two things differ, these say how ----------------------- */

#define expect_number(about, actual, expected)                                                     \
    do {                                                                                           \
        long long actual_ = (long long)(actual), expected_ = (long long)(expected);                \
        cr_expect(actual_ == expected_, "%s: %s is %lld instead of %lld", about, #actual, actual_, \
                  expected_);                                                                      \
    } while (0)

/* A span against a string; NULL stands for a span that is not there. */
#define expect_span(about, actual, expected)                                                       \
    do {                                                                                           \
        struct span actual_ = (actual);                                                            \
        const char *expected_ = (expected);                                                        \
        cr_expect(expected_ ? actual_.at &&span_is(actual_, expected_) : !actual_.at,              \
                  "%s: %s is \"%.*s\" instead of \"%s\"", about, #actual, (int)actual_.len,        \
                  actual_.at ? actual_.at : "", expected_ ? expected_ : "(nothing)");              \
    } while (0)

#define expect_text(about, actual, expected)                                                       \
    do {                                                                                           \
        const char *text_ = (actual);                                                              \
        expect_span(about, text_ ? span_of(text_) : (struct span){0}, expected);                   \
    } while (0)

#define expect_part(about, text, part)                                                             \
    do {                                                                                           \
        const char *text_ = (text), *part_ = (part);                                               \
        cr_expect(strstr(text_, part_), "%s: no \"%s\" in \"%s\"", about, part_, text_);           \
    } while (0)

/* ---- a folder of the test's own ------------------------------------------------------------ */

static char scratch[32];
static int scratch_fd = -1;

static inline void scratch_make(void)
{
    /* By its parent's number the runner knows what a test that crashed has left (around.c). */
    snprintf(scratch, sizeof(scratch), "/tmp/unit-%d-XXXXXX", (int)getppid());
    cr_assert(mkdtemp(scratch) && chmod(scratch, 0755) == 0, "%s: %s", scratch, strerror(errno));
    scratch_fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cr_assert(scratch_fd >= 0);
}

static inline int scratch_remove_one(const char *path, const struct stat *about, int kind,
                                     struct FTW *where)
{
    (void)about, (void)kind, (void)where;
    return remove(path);
}

static inline void scratch_remove(void)
{
    if (scratch_fd >= 0)
        nftw(scratch, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void scratch_folder(const char *name)
{
    cr_assert(mkdirat(scratch_fd, name, 0755) == 0, "%s: %s", name, strerror(errno));
}

/* A file, and the folders on the way to it. */
static inline void scratch_bytes(const char *name, const char *bytes, size_t len)
{
    char folder[100];
    for (const char *end = name; (end = strchr(end, '/')); end++) {
        snprintf(folder, sizeof(folder), "%.*s", (int)(end - name), name);
        cr_assert(mkdirat(scratch_fd, folder, 0755) == 0 || errno == EEXIST, "%s", folder);
    }
    int fd = openat(scratch_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    cr_assert(fd >= 0, "%s: %s", name, strerror(errno));
    for (size_t done = 0; done < len;) {
        ssize_t n = write(fd, bytes + done, len - done);
        cr_assert(n > 0);
        done += (size_t)n;
    }
    close(fd);
}

static inline void scratch_file(const char *name, const char *text)
{
    scratch_bytes(name, text, strlen(text));
}

static inline void scratch_site(void)
{
    char templates[PATH_MAX];
    scratch_make();
    cr_assert(realpath("templates", templates) &&
              symlinkat(templates, scratch_fd, "templates") == 0);
    scratch_file("public/index.html", "home\n");
    scratch_file("public/a.txt", "0123456789");
}

static inline struct options unit_options(void)
{
    return (struct options){
        .name = "unit",
        .bind = "127.0.0.1",
        .root = scratch,
        .keep_alive_ms = 5000,
        .timeout_ms = 10000,
        .backlog = 16,
    };
}

/* A worker that serves that site, with its options, and a board of one slot. */
static inline struct board *unit_start_worker(struct worker *worker, struct options *options,
                                              int (*count_waiting)(const struct worker *))
{
    struct board *board = board_open(1);
    cr_assert(board);
    scratch_site();
    *options = unit_options();
    process_start();
    app_load(options);
    *worker = (struct worker){
        .options = options,
        .board = board,
        .slot = board_claim(board, 1),
        .count_waiting = count_waiting,
    };
    return board;
}

static inline void read_to_end(int fd, char *text, size_t size)
{
    size_t len = 0;
    ssize_t n;
    while (len < size - 1 && (n = read(fd, text + len, size - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    close(fd);
}

/* ---- sockets ------------------------------------------------------------------------------- */

static inline bool comes(int fd, short events, int ms)
{
    struct pollfd one = {.fd = fd, .events = events};
    return poll(&one, 1, ms) > 0;
}

static inline void send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
        cr_assert(n > 0, "send: %s", strerror(errno));
        bytes += n;
        len -= (size_t)n;
    }
}

static inline void say(int fd, const char *text)
{
    send_all(fd, text, strlen(text));
}

/* Two ends of a TCP connection over loopback: the server's blocks, and ticks. */
static inline void tcp_pair(int *server, int *client, int tick_ms)
{
    const struct timeval tick = {.tv_usec = tick_ms * 1000L};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, 1) == 0 &&
              getsockname(listener, (struct sockaddr *)&address, &size) == 0 &&
              connect(*client, (struct sockaddr *)&address, size) == 0);
    *server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    cr_assert(setsockopt(*server, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof(tick)) == 0 &&
              setsockopt(*server, SOL_SOCKET, SO_SNDTIMEO, &tick, sizeof(tick)) == 0);
    close(listener);
}

static inline void set_blocking(int fd, bool blocking)
{
    int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

/* ---- Redis --------------------------------------------------------------------------------- */

/* What hiredis makes of these bytes. The caller frees it. */
static inline redisReply *reply_of(const char *bytes, size_t len)
{
    void *reply = NULL;
    redisReader *reader = redisReaderCreate();
    cr_assert(reader && redisReaderFeed(reader, bytes, len) == REDIS_OK &&
              redisReaderGetReply(reader, &reply) == REDIS_OK && reply);
    redisReaderFree(reader);
    return reply;
}

/* Waits until exactly these bytes have come. */
static inline bool hear(int fd, const char *bytes)
{
    char heard[1024];
    size_t len = strlen(bytes), got = 0;
    while (got < len) {
        if (!comes(fd, POLLIN, PATIENCE_MS))
            return false;
        ssize_t n = recv(fd, heard + got, len - got, 0);
        if (n <= 0)
            return false;
        got += (size_t)n;
    }
    return memcmp(heard, bytes, len) == 0;
}

#endif
