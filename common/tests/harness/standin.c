/* A stand-in for Redis: one thread, one poll(2), and one lock, which the test takes to tell it how
 * to behave, and to ask what it has heard. */
#include "harness.h"

#include <linux/sockios.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/un.h>

enum { PEERS = 256, ROOM = 4096, WORDS = 4, WORD = 64 };

/* One connection of the server's. What it has asked and not yet been answered is in `in`. */
struct peer {
    int fd; /* -1: nobody */
    bool silent;
    size_t len;
    char in[ROOM];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct peer peers[PEERS];
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

/* ---- what is asked ------------------------------------------------------------------------- */

/* The number of a line such as "*4" or "$18"; returns where the next one begins, NULL: not here. */
static const char *read_number(const char *at, const char *end, size_t *number)
{
    const char *stop = memmem(at, (size_t)(end - at), "\r\n", 2);
    *number = stop ? strtoul(at + 1, NULL, 10) : 0;
    return stop ? stop + 2 : NULL;
}

/* The beginnings of the next command's words. Returns its bytes; 0: it is not whole yet. */
static size_t read_command(const struct peer *p, char words[WORDS][WORD])
{
    const char *end = p->in + p->len;
    size_t count, len;
    const char *at = read_number(p->in, end, &count);
    for (size_t i = 0; at && i < count && i < WORDS; i++) {
        at = read_number(at, end, &len);
        if (!at || (size_t)(end - at) < len + 2)
            return 0;
        snprintf(words[i], WORD, "%.*s", (int)len, at);
        at += len + 2;
    }
    return at ? (size_t)(at - p->in) : 0;
}

/* ---- what is answered ---------------------------------------------------------------------- */

static void compose(char *reply, size_t size, char words[WORDS][WORD])
{
    char text[3 * WORD];
    if (strcmp(words[0], "INCR") == 0) {
        snprintf(reply, size, ":%lld\r\n", ++visitors);
    } else if (strcmp(words[0], "GET") == 0) {
        snprintf(text, sizeof(text), "%lld", visitors);
        snprintf(reply, size, "$%zu\r\n%s\r\n", strlen(text), text);
    } else if (strcmp(words[0], "LRANGE") == 0) {
        snprintf(text, sizeof(text), "2026-11-21T02:45:37Z\nAda\n%s to %s", words[2], words[3]);
        snprintf(reply, size, "*1\r\n$%zu\r\n%s\r\n", strlen(text), text);
    } else if (strcmp(words[0], "RPUSH") == 0) {
        snprintf(reply, size, ":%lld\r\n", ++entries);
    } else {
        snprintf(reply, size, "+OK\r\n");
    }
}

/* Waits until the other side has read all; false if it has left, or never does. */
static bool is_taken(int fd)
{
    int unread = 1;
    int64_t limit = now_ms() + patience(SOON_MS);
    while (ioctl(fd, SIOCOUTQ, &unread) == 0 && unread > 0 && now_ms() < limit) {
        struct pollfd end = {.fd = fd, .events = POLLRDHUP};
        if (poll(&end, 1, 0) > 0)
            return false;
        sched_yield();
    }
    return unread == 0;
}

static void utter(int fd, const char *bytes, size_t len, const struct manner *m)
{
    size_t piece = m->in_bytes ? 1 : len;
    for (size_t sent = 0; sent < len; sent += piece) {
        poll(NULL, 0, m->pause_ms);
        if (send(fd, bytes + sent, piece, MSG_NOSIGNAL) < 0 || (m->in_bytes && !is_taken(fd)))
            return;
    }
}

static void hang_up_on(struct peer *p)
{
    close(p->fd);
    p->fd = -1;
}

/* Answers one command; false: there is none, or it is not answered now. */
static bool answer(struct peer *p)
{
    char words[WORDS][WORD] = {""}, reply[ROOM];
    size_t used = p->fd >= 0 && !p->silent && !frozen ? read_command(p, words) : 0;
    if (used == 0)
        return false;
    bool concerned = !manner.at || strcmp(manner.at, words[0]) == 0;
    struct manner m = concerned ? manner : (struct manner){0};
    frozen = m.then == FREEZES;
    if (frozen)
        return false; /* it stays in the buffer, for later */
    if (m.once)
        manner = (struct manner){0};
    for (int i = 0; i < COMMANDS; i++)
        commands[i].heard += strcmp(commands[i].name, words[0]) == 0;
    p->len -= used;
    memmove(p->in, p->in + used, p->len);

    compose(reply, sizeof(reply), words);
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
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    while (p < peers + PEERS && p->fd >= 0)
        p++;
    if (fd < 0 || p == peers + PEERS) {
        close(fd);
        return;
    }
    p->fd = fd;
    p->silent = false;
    p->len = 0;
}

static void receive(struct peer *p)
{
    ssize_t n = recv(p->fd, p->in + p->len, ROOM - p->len, 0);
    if (n <= 0)
        hang_up_on(p);
    else
        p->len += (size_t)n;
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
              chmod(address.sun_path, getenv("FOLDERS") ? 0777 : 0700) == 0 &&
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

void stand_in_says_unasked(const char *text)
{
    pthread_mutex_lock(&lock);
    for (struct peer *p = peers; p < peers + PEERS; p++)
        if (p->fd >= 0)
            utter(p->fd, text, strlen(text), &(struct manner){0});
    pthread_mutex_unlock(&lock);
}
