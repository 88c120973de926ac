/* Redis in bad weather, while the server is busy: what was promised is kept, nothing is done twice,
 * and the files do not notice. One thread plays all clients: each has one request under way.
 */
#include "tests/harness/harness.h"

/* ---- a crowd ------------------------------------------------------------------------------- */

enum {
    VISITORS = 6, /* fewer than there are workers */
    MOST_REQUESTS = 1000000,
    TIMEOUT_MS = 2000, /* for --timeout: connecting has a tenth of that, a command a fifth */
};

struct visitor {
    struct client *client; /* NULL: connects for the next request */
    int number;            /* of its request */
};

static struct visitor crowd[VISITORS];
static int requests;
static short statuses[MOST_REQUESTS]; /* of the answers, by request; 0: none so far */
static int done, refused, late;       /* answered with 303, 503, 504 */

/* Half of them ask to be kept; of chapter 1 none, as it gives up for the others who is slow. */
static void send_request(struct visitor *v)
{
    bool closes = (v - crowd) % 2 || server_is("iterative");
    char request[512], form[64];
    if (v->client && has_heard(v->client)) { /* its end: kept, but given up since */
        hang_up(v->client);
        v->client = NULL;
    }
    if (!v->client)
        v->client = dial();
    check(requests < MOST_REQUESTS, "so many requests, and no end");
    v->number = requests++;
    snprintf(form, sizeof(form), "guest-name=%d&guest-remarks=hello", v->number);
    snprintf(request, sizeof(request),
             "POST /guestbook HTTP/1.1\r\nHost: test\r\n%s"
             "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %zu\r\n\r\n%s",
             closes ? "Connection: close\r\n" : "", strlen(form), form);
    say(v->client, request);
}

static void hear_response(struct visitor *v)
{
    int status = hear(v->client)->status;
    check(status == 303 || status == 503 || status == 504, "request %d: %d", v->number, status);
    statuses[v->number] = (short)status;
    done += status == 303;
    refused += status == 503;
    late += status == 504;
    if (!v->client->answer.kept) {
        hang_up(v->client);
        v->client = NULL;
    }
}

/* Everybody who is answered asks again at once. */
static void one_round(bool ask_again)
{
    struct pollfd fds[VISITORS];
    for (int i = 0; i < VISITORS; i++)
        fds[i] =
            (struct pollfd){.fd = crowd[i].number < 0 ? -1 : crowd[i].client->fd, .events = POLLIN};
    poll(fds, VISITORS, 20);
    for (int i = 0; i < VISITORS; i++)
        if (fds[i].revents) {
            hear_response(&crowd[i]);
            crowd[i].number = -1;
            if (ask_again)
                send_request(&crowd[i]);
        }
}

/* The crowd is busy until something is the case. */
#define busy_until(condition, ...)                                                                 \
    for (int64_t limit_ = now_ms() + patience(SOON_MS); !(condition); one_round(true))             \
    check(now_ms() < limit_, __VA_ARGS__)

static void crowd_comes(void)
{
    for (int i = 0; i < VISITORS; i++)
        send_request(&crowd[i]);
}

static void crowd_leaves(void)
{
    for (int i = 0; i < VISITORS; i++)
        while (crowd[i].number >= 0)
            one_round(false);
    for (int i = 0; i < VISITORS; i++)
        if (crowd[i].client)
            hang_up(crowd[i].client);
}

/* ---- every post counts once ---------------------------------------------------------------- */

enum { SOME = 40 }; /* answers of a kind, to see that it goes on */

static void check_entries(void)
{
    unsigned char *stored = calloc((size_t)requests, 1);
    redisReply *list = redis("LRANGE guestbook:entries 0 -1");
    for (size_t i = 0; i < list->elements; i++) {
        int number = -1, n = 0;
        const char *entry = list->element[i]->str, *name = strchr(entry, '\n');
        check(name && sscanf(name, "\n%d\nhello%n", &number, &n) == 1 && n > 0 && !name[n] &&
                  number >= 0 && number < requests,
              "this was never posted: %s", entry);
        check(!stored[number]++, "stored twice: %d, which was answered %d", number,
              statuses[number]);
    }
    for (int i = 0; i < requests; i++)
        check(statuses[i] != 303 || stored[i], "answered 303 and not stored: %d", i);
    check(list->elements >= (size_t)done, "%d times 303, %zu entries", done, list->elements);
    free(stored);
}

#define ON_DISK "--appendonly", "yes", "--appendfsync", "always"

EVERY_SERVER(a_post_answered_303_is_stored_once_and_any_other_at_most_once)
{
    enum { KILLS = 9 };
    char timeout[16];
    snprintf(timeout, sizeof(timeout), "%g", TIMEOUT_MS / 1000.0);
    start_redis(ON_DISK);
    start_server("--timeout", timeout);
    crowd_comes();
    for (int i = 0; i < KILLS; i++) {
        int before = done;
        busy_until(done >= before + SOME, "Redis is there, and nothing is stored");
        if (i % 3 ==
            2) { /* frozen, so that nobody is answered; it dies with what it has not read */
            freeze_redis();
            before = late;
            busy_until(late > before, "Redis is frozen, and nobody is told");
        }
        kill_redis();
        before = refused;
        busy_until(refused >= before + VISITORS, "Redis is dead, and nobody is told");
        launch_redis(ON_DISK);
    }
    int before = done;
    busy_until(done >= before + SOME, "Redis is back, and nothing is stored");
    freeze_redis();
    before = late;
    busy_until(late >= before + VISITORS, "Redis is frozen, and nobody is told");
    thaw_redis(); /* now it does what it was asked, for those who were told that it did not answer
                   */
    before = done;
    busy_until(done >= before + SOME, "Redis is well, and nothing is stored");
    crowd_leaves();
    wait_until(redis_answers(), SOON_MS, "Redis is not back");
    check_entries();
}

/* ---- files meanwhile ----------------------------------------------------------------------- */

/* Chapter 1 serves nobody meanwhile: a file waits for the command's deadline, once for each client
 * who stands before it and asks Redis. */
ONLY_SERVER(iterative, a_file_waits_for_those_before_it_who_wait_for_redis)
{
    enum { BEFORE = 3, COMMAND_MS = 200 };
    struct client *before[BEFORE];
    start_redis();
    start_server("--timeout", "1");
    freeze_redis();
    int64_t start = now_ms();
    for (int i = 0; i < BEFORE; i++) {
        before[i] = dial();
        say(before[i], "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
    }
    check_file(get("/"), "public/index.html");
    check_took(start, BEFORE * (COMMAND_MS - 20), BEFORE * COMMAND_MS + patience(3000));
    for (int i = 0; i < BEFORE; i++) {
        check(hear(before[i])->status == 504, "status %d", before[i]->answer.status);
        hang_up(before[i]);
    }
}
