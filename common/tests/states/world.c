/* world: what happens while the loop sleeps. See states.h. */
#include "states.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- scenes -------------------------------------------------------------------------------- */

struct answer {
    const char *status, *part; /* how it begins behind "HTTP/1.1 ", and what is in it */
    int commands;              /* so many have to be asked of Redis first */
};
struct talk {
    const char *pieces[4]; /* as they come out of the socket */
    struct answer answers[6];
};
struct scene {
    const char *name, *password;
    struct talk talks[CLIENTS_THERE];
};

#define REQUEST(path, field) "GET " path " HTTP/1.1\r\nHost: a\r\n" field "\r\n"
#define GET(path)            REQUEST(path, "")
#define LAST(path)           REQUEST(path, "Connection: close\r\n")
#define UNCHANGED(path)      REQUEST(path, "If-None-Match: *\r\n")
#define PAGE(first)          "200 OK", "from " first, 3 /* LRANGE's first index: answer_command() */
#define FORM                                                                                       \
    "POST /guestbook HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"                              \
    "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 30\r\n\r\n"

/* clang-format off */
static const struct scene scenes[] = {
    {"two visitors", "",
     {{{"GET /guestbook?page=2 HTTP/1.1\r\nHo", "st: a\r\n\r\n"}, {{PAGE("-41")}}},
      {{GET("/guestbook?page=3")}, {{PAGE("-61")}}}}},
    {"requests sent ahead", "",
     {{{GET("/tux.png") UNCHANGED("/tux.png") GET("/none") "GET /guestbook?pa",
        "ge=2 HTTP/1.1\r\nHost: a\r\n\r\n" GET("/")},
       {{"200 OK", "image/png", 0}, {"304 Not Modified", "", 0}, {"404 Not Found", "", 0},
        {PAGE("-41")}, {"200 OK", "text/html", 0}}}}},
    {"a post and a visitor, with a password", "secret",
     {{{FORM, "guest-name=Ada&guest", "-remarks=x"}, {{"303 See Other", "/guestbook", 1}}},
      {{GET("/guestbook?page=3")}, {{PAGE("-61")}}}}},
    {"a refusal, and a last request", "",
     {{{GET("/none") "GET / HTTP/1.1\r\n\r\n", "behind it"},
       {{"404 Not Found", "", 0}, {"400 Bad Request", "", 0}}},
      {{LAST("/guestbook?page=2") "behind it"}, {{PAGE("-41")}}}}},
};
/* clang-format on */

const struct scene *world_scene(int number, const char **name, const char **password)
{
    if ((size_t)number >= sizeof(scenes) / sizeof(scenes[0]))
        return NULL;
    *name = scenes[number].name;
    *password = scenes[number].password;
    return &scenes[number];
}

/* ---- who is there -------------------------------------------------------------------------- */

struct peer world_peers[PEERS];
int64_t world_now;
bool world_signal;

enum { HEARD = 128 * 1024 };
static struct client {
    int said, answered; /* pieces, and requests */
    bool harmed;        /* it has itself to blame if a request is not answered */
    bool told_close;
    size_t heard_len; /* bytes of the beginning of the next response */
} clients[CLIENTS_THERE];
static char heard[CLIENTS_THERE][HEARD];
static const struct scene *scene;

static redisReader *reader; /* Redis reads commands with it */
static struct {
    char replies[CLIENTS_THERE + 1][80]; /* what it is going to say */
    int count;
    int asked; /* commands; each may be asked once */
    bool failed;
} redis;

static bool time_is_up; /* the loop has slept as long as it wanted to */
static bool stop_sent, time_passed;
static enum { NO_ENDING, SILENCE, GOOD_WILL } ending;
static int events_to_the_end;

void world_begin(const struct scene *played)
{
    memset(world_peers, 0, sizeof(world_peers));
    memset(clients, 0, sizeof(clients));
    memset(&redis, 0, sizeof(redis));
    world_peers[REDIS_THERE].here = world_peers[REDIS_THERE].dropped = true; /* nobody has called */
    scene = played;
    world_now = 1000000;
    world_signal = time_is_up = stop_sent = time_passed = false;
    events_to_the_end = 0;
    ending = NO_ENDING;
}

void world_mix(void)
{
    for (const struct peer *p = world_peers; p < world_peers + PEERS; p++) {
        mix(p->len), mix(p->here), mix(p->refused), mix(p->full), mix(p->ended), mix(p->reset);
        mix(p->shut), mix(p->dropped), mix(p->forgotten);
    }
    for (const struct client *c = clients; c < clients + CLIENTS_THERE; c++) {
        mix(c->heard_len), mix(c->said), mix(c->answered);
        mix(c->harmed), mix(c->told_close);
    }
    for (int i = 0; i < redis.count; i++)
        for (const char *at = redis.replies[i]; *at; at++)
            mix(*at);
    mix(redis.asked), mix(redis.failed);
    mix(time_is_up), mix(world_signal), mix(stop_sent), mix(time_passed);
}

/* ---- what the clients hear ----------------------------------------------------------------- */

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Is this what the client waits for, or a good reason why not? */
static bool is_right(const struct answer *wanted, const char *response, size_t len)
{
    const char *status = response + strlen("HTTP/1.1 ");
    if (starts_with(status, wanted->status))
        return memmem(response, len, wanted->part, strlen(wanted->part)) != NULL;
    if (starts_with(status, "408"))
        return time_passed;
    return wanted->commands > 0 && redis.failed && starts_with(status, "50");
}

static void take_response(int i, size_t len)
{
    struct client *c = &clients[i];
    const struct answer *wanted = &scene->talks[i].answers[c->answered++];
    must(!c->told_close, "a response follows one that says: Connection: close");
    must(wanted->status, "a response to no request");
    must(is_right(wanted, heard[i], len), "a wrong response, or the one to another request");
    c->told_close = memmem(heard[i], len, "Connection: close", 17) != NULL;
}

/* The length of the next response; 0 if it is not there in full. */
static size_t response_len(const char *response, size_t so_far)
{
    const char *end = memmem(response, so_far, "\r\n\r\n", 4);
    if (!end)
        return 0;
    size_t len = (size_t)(end + 4 - response);
    const char *content = memmem(response, len, "Content-Length: ", 16);
    len += content ? strtoul(content + 16, NULL, 10) : 0;
    return len <= so_far ? len : 0;
}

static void client_hears(int i, const char *bytes, size_t len)
{
    struct client *c = &clients[i];
    must(c->heard_len + len <= HEARD, "a response is too long");
    if (bytes)
        memcpy(heard[i] + c->heard_len, bytes, len);
    else
        memset(heard[i] + c->heard_len, '.', len);
    c->heard_len += len;
    while ((len = response_len(heard[i], c->heard_len)) > 0) {
        if (!starts_with(heard[i], "HTTP/1.1 100 "))
            take_response(i, len);
        c->heard_len -= len;
        memmove(heard[i], heard[i] + len, c->heard_len);
    }
}

/* It expects 100 Continue, and does not read its responses. Then the server may end the connection.
 */
void world_gives_up(int client)
{
    clients[client].harmed = true;
}

/* ---- what Redis hears ---------------------------------------------------------------------- */

static void answer_command(const redisReply *command)
{
    must(redis.count <= CLIENTS_THERE, "a client asks twice at once"); /* AUTH is one more */
    char *reply = redis.replies[redis.count++];
    const char *name = command->element[0]->str;
    int askable = 0;
    for (int i = 0; i < CLIENTS_THERE; i++)
        for (const struct answer *a = scene->talks[i].answers; a->status; a++)
            askable += a->commands;
    redis.asked += !starts_with(name, "AUTH");
    must(redis.asked <= askable, "a command is sent again");
    if (starts_with(name, "LRANGE")) {
        const char *first = command->element[2]->str;
        sprintf(reply, "*1\r\n$%zu\r\nfrom %s\r\n", strlen("from ") + strlen(first), first);
    } else {
        strcpy(reply, starts_with(name, "AUTH")  ? "+OK\r\n"
                      : starts_with(name, "GET") ? "$1\r\n7\r\n"
                                                 : ":7\r\n");
    }
}

static void redis_hears(const char *bytes, size_t len)
{
    void *command = NULL;
    redisReaderFeed(reader, bytes, len);
    while (redisReaderGetReply(reader, &command) == REDIS_OK && command) {
        answer_command(command);
        freeReplyObject(command);
    }
}

void world_hears(int peer, const char *bytes, size_t len)
{
    if (search_is_over)
        return;
    must(!world_peers[peer].shut, "bytes are sent behind the end");
    if (peer == REDIS_THERE)
        redis_hears(bytes, len);
    else
        client_hears(peer, bytes, len);
}

void world_calls_redis(void)
{
    bool refused = search_choose(1, 2, false);
    if (refused)
        search_tell("connect() fails at once.", "");
    redis.failed = redis.failed || refused;
    world_peers[REDIS_THERE] = (struct peer){.refused = refused};
    if (reader)
        redisReaderFree(reader);
    reader = redisReaderCreate();
    redis.count = 0;
}

/* If bytes are unread, close() sends a reset, which may destroy the response (lingering). */
void world_is_dropped(int peer)
{
    struct peer *p = &world_peers[peer];
    must(peer == REDIS_THERE || !p->full || p->reset || p->forgotten || search_is_over,
         "closed, and the kernel goes on with what the client does not take");
    bool well = !p->ended && !p->reset && !time_passed && !stop_sent && !search_is_over;
    must(peer == REDIS_THERE || !well || p->len == 0,
         "closed with bytes unread: the client may lose the response");
    if (peer == REDIS_THERE)
        redis.count = 0;
    *p = (struct peer){.here = true, .dropped = true};
}

/* ---- what may happen ----------------------------------------------------------------------- */

enum act {
    WAKE_UP, /* the loop does: something is ready, or the time is up */
    CALL,
    SAY,
    TAKE,
    ACCEPT,
    ANSWER,
    FALL_SILENT, /* from here on only time passes: does everything end? */
    BE_GOOD,     /* from here on everybody does what they can: is everything answered? */
    END,         /* from here on these are mishaps */
    RESET,
    REFUSE,
    FAIL,
    TIME,
    STOP,
};
static const char *const sentences[] = {
    [WAKE_UP] = "The loop wakes up.",
    [CALL] = "%s connects.",
    [SAY] = "%s sends its next piece.",
    [TAKE] = "%s takes what was sent: there is room again.",
    [ACCEPT] = "%s accepts the connection.",
    [ANSWER] = "%s answers the next command.",
    [END] = "%s sends no more.",
    [RESET] = "%s resets its connection.",
    [REFUSE] = "%s refuses the connection.",
    [FAIL] = "%s answers with an error.",
    [TIME] = "Time passes, as much as the loop wants to sleep.",
    [STOP] = "SIGTERM comes.",
    [FALL_SILENT] = "From now on only time passes.",
    [BE_GOOD] = "From now on everybody does what they can.",
};

enum { NOBODY = PEERS };
static const char *const names[] = {"The first client", "The second client", "Redis", ""};

struct events {
    struct event {
        enum act act;
        int peer;
    } all[40];
    int usual, count; /* the usual ones come first */
};

static void may(struct events *e, bool possible, enum act act, int peer)
{
    if (possible)
        e->all[e->count++] = (struct event){act, peer};
}

static bool is_open(const struct peer *p)
{
    return p->here && !p->reset && !p->dropped;
}

static void list_good_events(struct events *e, bool redis_is_called)
{
    const struct peer *there = &world_peers[REDIS_THERE];
    for (int i = 0; i < PEERS; i++)
        may(e, is_open(&world_peers[i]) && world_peers[i].full, TAKE, i);
    may(e, redis_is_called, ACCEPT, REDIS_THERE);
    may(e, is_open(there) && !there->ended && redis.count > 0, ANSWER, REDIS_THERE);
    for (int i = 0; i < CLIENTS_THERE; i++) {
        const struct peer *p = &world_peers[i];
        const struct client *c = &clients[i];
        bool more = scene->talks[i].pieces[c->said] != NULL;
        may(e, more && !p->here, CALL, i);
        may(e, more && is_open(p) && !p->ended, SAY, i);
    }
}

static void list_events(struct events *e, bool ready, int timeout)
{
    const struct peer *there = &world_peers[REDIS_THERE];
    bool called = !there->here && !there->refused;
    may(e, ready, WAKE_UP, NOBODY);
    list_good_events(e, called);
    may(e, true, FALL_SILENT, NOBODY);
    may(e, true, BE_GOOD, NOBODY);
    e->usual = e->count;
    for (int i = 0; i < PEERS; i++)
        may(e, is_open(&world_peers[i]) && !world_peers[i].ended, END, i);
    for (int i = 0; i < CLIENTS_THERE; i++)
        may(e, is_open(&world_peers[i]), RESET, i);
    bool can_answer = is_open(there) && !there->ended && redis.count > 0;
    may(e, called, REFUSE, REDIS_THERE);
    may(e, can_answer, FAIL, REDIS_THERE);
    may(e, timeout > 0, TIME, NOBODY);
    may(e, !stop_sent, STOP, NOBODY);
}

static void arrive(struct peer *p, const char *bytes, size_t len)
{
    memcpy(p->unread + p->len, bytes, len);
    p->len += len;
}

static void client_does(enum act act, int i)
{
    struct peer *p = &world_peers[i];
    struct client *c = &clients[i];
    const char *piece = scene->talks[i].pieces[c->said];
    if (act == SAY) {
        arrive(p, piece, strlen(piece));
        c->said++;
    }
    p->here = true;
    p->full = p->full && act != TAKE;
    p->ended = p->ended || act == END;
    p->reset = act == RESET;
    c->harmed = c->harmed || p->reset || (p->ended && piece);
}

static void redis_does(enum act act, struct peer *p)
{
    p->here = act != REFUSE;
    p->refused = act == REFUSE;
    p->full = p->full && act != TAKE;
    p->ended = p->ended || act == END;
    redis.failed = redis.failed || act == REFUSE || act == FAIL || act == END;
    if (act == ANSWER || act == FAIL) {
        const char *reply = act == FAIL ? "-ERR no\r\n" : redis.replies[0];
        arrive(p, reply, strlen(reply));
        memmove(redis.replies[0], redis.replies[1],
                (size_t)--redis.count * sizeof(redis.replies[0]));
    }
}

/* If everybody does what they can, nothing may come too late. */
static void time_passes(int timeout)
{
    world_now += timeout;
    time_is_up = true;
    time_passed = time_passed || ending != GOOD_WILL;
    redis.failed = redis.failed || time_passed;
}

static void happen(struct event event, int timeout)
{
    search_tell(sentences[event.act], names[event.peer]);
    if (event.peer < CLIENTS_THERE)
        client_does(event.act, event.peer);
    else if (event.peer == REDIS_THERE)
        redis_does(event.act, &world_peers[REDIS_THERE]);
    if (event.act == TIME)
        time_passes(timeout);
    if (event.act == STOP)
        stop_sent = world_signal = true;
    if (event.act == FALL_SILENT || event.act == BE_GOOD) {
        ending = event.act == BE_GOOD ? GOOD_WILL : SILENCE;
        search_is_free = true;
    }
}

/* ---- how it ends --------------------------------------------------------------------------- */

static void check_answers(void)
{
    for (int i = 0; i < CLIENTS_THERE; i++)
        must(!scene->talks[i].answers[clients[i].answered].status || clients[i].harmed ||
                 time_passed || stop_sent,
             "a request has no response");
}

/* Does somebody wait for something? */
static bool has_work(void)
{
    bool work = tested_has_work();
    for (int i = 0; i < CLIENTS_THERE; i++)
        work = work || (world_peers[i].here && !world_peers[i].dropped);
    return work;
}

/* At the end of a sequence there is no choice any more. NULL: nothing can happen. */
static const struct event *next_to_the_end(const struct events *e)
{
    enum { MOST = 200 };
    must(++events_to_the_end <= MOST, "there is no end to it");
    if (e->all[0].act == WAKE_UP || (ending == GOOD_WILL && e->all[0].act <= ANSWER))
        return &e->all[0];
    for (int i = 0; i < e->count && has_work(); i++)
        if (e->all[i].act == TIME)
            return &e->all[i];
    must(!has_work(), "a state without a way out");
    if (ending == GOOD_WILL)
        check_answers();
    return NULL;
}

void world_goes_on(int timeout, bool (*is_ready)(void))
{
    const struct event *next = NULL;
    if (!search_is_over)
        tested_check(timeout);
    time_is_up = timeout == 0;
    while (!search_is_over && !(next && next->act == WAKE_UP)) {
        static struct events e;
        e.count = 0;
        list_events(&e, time_is_up || is_ready(), time_is_up ? 0 : timeout);
        next = ending == NO_ENDING ? &e.all[search_choose(e.usual, e.count, true)]
                                   : next_to_the_end(&e);
        search_is_over = search_is_over || !next;
        if (!search_is_over)
            happen(*next, timeout);
    }
}
