/* A stand-in for Redis: one thread, one poll(2), and one lock, which the test takes to tell it how
 * to behave, and to ask what it has heard. */
#include "stand_in.h"

#include "tests/harness/harness.h"

#include <pthread.h>
#include <sys/un.h>

enum { PEERS = 256, ROOM = 4096 };

/* One connection of the server's. */
static struct peer {
    int fd; /* -1: nobody */
    bool silent;
    redisReader *asked;  /* what has come */
    redisReply *command; /* owned: the first of it, not answered yet; NULL: none is there whole */
} peers[PEERS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int listener;
static int wake[2]; /* a pipe, for a thread that sleeps in poll() */
static struct manner manner;
static bool frozen;
static long long visitors, entries;

static struct {
    const char *name;
    int heard;
} commands[] = {{"INCR", 0}, {"GET", 0}, {"LRANGE", 0}, {"RPUSH", 0}, {"LTRIM", 0}, {"AUTH", 0}};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

/* ---- what is answered ---------------------------------------------------------------------- */

static void compose(char *reply, size_t size, const redisReply *command)
{
    char text[ROOM / 2];
    const char *name = command->element[0]->str;
    if (strcmp(name, "INCR") == 0) {
        snprintf(reply, size, ":%lld\r\n", ++visitors);
    } else if (strcmp(name, "GET") == 0) {
        snprintf(text, sizeof(text), "%lld", visitors);
        snprintf(reply, size, "$%zu\r\n%s\r\n", strlen(text), text);
    } else if (strcmp(name, "LRANGE") == 0) {
        snprintf(text, sizeof(text), "2026-11-21T02:45:37Z\nAda\n%s to %s",
                 command->element[2]->str, command->element[3]->str);
        snprintf(reply, size, "*1\r\n$%zu\r\n%s\r\n", strlen(text), text);
    } else if (strcmp(name, "RPUSH") == 0) {
        snprintf(reply, size, ":%lld\r\n", ++entries);
    } else {
        snprintf(reply, size, "+OK\r\n");
    }
}

static void utter(int fd, const char *bytes, size_t len, const struct manner *m)
{
    size_t piece = m->in_bytes ? 1 : len;
    for (size_t sent = 0; sent < len; sent += piece) {
        poll(NULL, 0, m->pause_ms);
        if (send(fd, bytes + sent, piece, MSG_NOSIGNAL) < 0)
            return;
    }
}

static void hang_up_on(struct peer *p)
{
    freeReplyObject(p->command);
    redisReaderFree(p->asked);
    close(p->fd);
    *p = (struct peer){.fd = -1};
}

/* Answers one command; false: there is none, or it is not answered now. */
static bool answer(struct peer *p)
{
    char reply[ROOM];
    if (p->fd < 0 || p->silent || frozen)
        return false;
    if (!p->command &&
        (redisReaderGetReply(p->asked, (void **)&p->command) != REDIS_OK || !p->command))
        return false;
    const char *name = p->command->element[0]->str;
    bool concerned = !manner.at || strcmp(manner.at, name) == 0;
    struct manner m = concerned ? manner : (struct manner){0};
    frozen = m.then == FREEZES;
    if (frozen)
        return false; /* it stays, for later */
    for (int i = 0; i < COMMANDS; i++)
        commands[i].heard += strcmp(commands[i].name, name) == 0;
    compose(reply, sizeof(reply), p->command);
    freeReplyObject(p->command);
    p->command = NULL;

    const char *says = m.says ? m.says : reply;
    utter(p->fd, says, m.half ? strlen(says) / 2 : strlen(says), &m);
    p->silent = m.then == FALLS_SILENT;
    if (m.then == CLOSES)
        hang_up_on(p);
    return true;
}

/* ---- the thread ---------------------------------------------------------------------------- */

static void take_in(void)
{
    struct peer *p = peers;
    while (p < peers + PEERS - 1 && p->fd >= 0)
        p++;
    if (p->fd >= 0)
        hang_up_on(p);
    *p = (struct peer){.fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC),
                       .asked = redisReaderCreate()};
}

static void receive(struct peer *p)
{
    char bytes[ROOM];
    ssize_t n = recv(p->fd, bytes, sizeof(bytes), 0);
    if (n <= 0)
        hang_up_on(p);
    else
        redisReaderFeed(p->asked, bytes, (size_t)n);
}

/* Sleeps until something happens. Frozen, it hears nothing but the end of that. */
static void wait_and_hear(void)
{
    struct pollfd fds[PEERS + 2];
    char byte;
    for (int i = 0; i < PEERS; i++)
        fds[i] = (struct pollfd){.fd = frozen ? -1 : peers[i].fd, .events = POLLIN};
    fds[PEERS] = (struct pollfd){.fd = wake[0], .events = POLLIN};
    fds[PEERS + 1] = (struct pollfd){.fd = frozen ? -1 : listener, .events = POLLIN};
    pthread_mutex_unlock(&lock);
    poll(fds, PEERS + 2, -1);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < PEERS; i++)
        if (fds[i].revents)
            receive(&peers[i]);
    if (fds[PEERS].revents && read(wake[0], &byte, 1) < 0)
        return;
    if (fds[PEERS + 1].revents)
        take_in();
}

static void *play(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        wait_and_hear();
        for (struct peer *p = peers; p < peers + PEERS; p++)
            while (answer(p))
                ;
    }
    return NULL;
}

void start_stand_in(void)
{
    pthread_t thread;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", place("redis"));
    for (int i = 0; i < PEERS; i++)
        peers[i].fd = -1;
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
              listen(listener, PEERS) == 0 && pipe2(wake, O_CLOEXEC) == 0 &&
              pthread_create(&thread, NULL, play, NULL) == 0,
          "%s", strerror(errno));
}

/* ---- what the test says and asks ----------------------------------------------------------- */

void stand_in(struct manner m)
{
    pthread_mutex_lock(&lock);
    manner = m;
    frozen = false;
    pthread_mutex_unlock(&lock);
    check(write(wake[1], "", 1) == 1, "%s", strerror(errno));
}

void stand_in_has_entries(long long count)
{
    pthread_mutex_lock(&lock);
    entries = count;
    pthread_mutex_unlock(&lock);
}

bool stand_in_is_frozen(void)
{
    pthread_mutex_lock(&lock);
    bool is = frozen;
    pthread_mutex_unlock(&lock);
    return is;
}

int stand_in_heard(const char *command)
{
    int heard = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < COMMANDS; i++)
        heard += strcmp(commands[i].name, command) == 0 ? commands[i].heard : 0;
    pthread_mutex_unlock(&lock);
    return heard;
}
