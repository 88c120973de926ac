/* Redis in bad weather, while the server is busy: what was promised is kept, nothing is done twice,
 * and the files do not notice. One thread plays all clients: each has one request under way.
 */
#include "tests/harness/harness.h"

#include <poll.h>

/* ---- a crowd ------------------------------------------------------------------------------- */

enum {
    VISITORS = 6, /* fewer than there are workers */
    MOST_REQUESTS = 1000000,
    TIMEOUT_MS = 2000, /* for --timeout: connecting has a tenth of that, a command a fifth */
    LONGEST_MS = 600,  /* so this is the longest that a command may take, or one of a page's */
};

struct visitor {
    struct client *client; /* NULL: connects for the next request */
    int number;            /* of its request */
    int64_t asked;         /* when */
};

static struct visitor crowd[VISITORS];
static bool crowd_posts; /* entries, each with its request's number for a name; or asks for pages */
static int requests;
static short statuses[MOST_REQUESTS]; /* of the answers, by request; 0: none so far */
static int done, refused, late;       /* answered with 200 or 303, 503, 504 */
static int64_t longest_ms;            /* that an answer took */
static int64_t all_well_since = 1;    /* no request from then on may fail; 0: any may */

static void send_request(struct visitor *v)
{
    char request[512], form[64];
    if (v->client && has_heard(v->client)) { /* its end: kept, but given up since */
        hang_up(v->client);
        v->client = NULL;
    }
    if (!v->client)
        v->client = dial();
    check(requests < MOST_REQUESTS, "so many requests, and no end");
    v->number = requests++;
    v->asked = now_ms();
    snprintf(form, sizeof(form), "guest-name=%d&guest-remarks=hello", v->number);
    snprintf(request, sizeof(request),
             "POST /guestbook HTTP/1.1\r\nHost: test\r\n%s"
             "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %zu\r\n\r\n%s",
             (v - crowd) % 2 ? "Connection: close\r\n" : "", strlen(form), form);
    if (!crowd_posts)
        snprintf(request, sizeof(request), "GET /guestbook HTTP/1.1\r\nHost: test\r\n%s\r\n",
                 (v - crowd) % 2 ? "Connection: close\r\n" : "");
    say(v->client, request);
}

static void hear_response(struct visitor *v)
{
    int status = hear(v->client)->status, good = crowd_posts ? 303 : 200;
    int64_t took = now_ms() - v->asked;
    check(status == good || status == 503 || status == 504, "request %d: %d", v->number, status);
    check(status == good || !all_well_since || v->asked < all_well_since,
          "Redis is back for a second, and then: %d", status);
    statuses[v->number] = (short)status;
    done += status == good;
    refused += status == 503;
    late += status == 504;
    longest_ms = took > longest_ms ? took : longest_ms;
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

static void crowd_comes(bool posts)
{
    crowd_posts = posts;
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

/* Each had its answer in its time; chapter 1's clients wait for each other's, too. */
static void check_deadlines(int longest)
{
    enum { SYN_MS = 1000 }; /* after which one that got lost in the crowd is sent again */
    int64_t limit = (server_is("iterative") ? VISITORS : 1) * longest + SYN_MS + patience(600);
    check(longest_ms < limit, "an answer took %lld ms", (long long)longest_ms);
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
    all_well_since = 0;
    crowd_comes(true);
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
    check_deadlines(LONGEST_MS);
}

/* ---- a restart under load ------------------------------------------------------------------ */

EVERY_SERVER(a_second_after_a_restart_of_redis_every_page_is_there)
{
    start_redis();
    start_server(); /* Redis is never silent here: who is dead says so at once */
    crowd_comes(false);
    for (int i = 0; i < 2; i++) {
        int before = done;
        busy_until(done >= before + SOME, "no pages, and Redis is there");
        all_well_since = 0;
        kill_redis();
        before = refused;
        busy_until(refused >= before + SOME, "Redis is dead, and nobody is told");
        launch_redis();
        busy_until(redis_answers(), "Redis is not back");
        int64_t back = now_ms();
        before = done;
        busy_until(done > before, "no page, though Redis is back");
        check(now_ms() - back < patience(1000), "after %lld ms", (long long)(now_ms() - back));
        all_well_since = back + patience(1000);
        busy_until(now_ms() >= all_well_since + 200, "time stands still");
    }
    crowd_leaves();
    check_deadlines(0);
}

/* ---- files meanwhile ----------------------------------------------------------------------- */

static int compare_times(const void *a, const void *b)
{
    const int64_t *one = a, *other = b;
    return (*one > *other) - (*one < *other);
}

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* The median time for an answer, in microseconds. */
static int64_t median_us(const char *target, int status)
{
    enum { TIMES = 101 };
    int64_t times[TIMES];
    for (int i = 0; i < TIMES; i++) {
        times[i] = now_us();
        check(get(target)->status == status, "%s", target);
        times[i] = now_us() - times[i];
    }
    qsort(times, TIMES, sizeof(times[0]), compare_times);
    return times[TIMES / 2];
}

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
    check_took(start, BEFORE * (COMMAND_MS - 20), BEFORE * COMMAND_MS + patience(500));
    for (int i = 0; i < BEFORE; i++) {
        check(hear(before[i])->status == 504, "status %d", before[i]->answer.status);
        hang_up(before[i]);
    }
}

/* ---- a long list --------------------------------------------------------------------------- */

static const char fill[] =
    "local entries = {} "
    "for i = 1, 1000 do "
    "  for j = 1, 1000 do "
    "    entries[j] = '2026-11-21T02:45:37Z\\nAda\\n' .. i * 1000 + j - 1000 "
    "  end "
    "  redis.call('RPUSH', 'guestbook:entries', unpack(entries)) "
    "end";

EVERY_SERVER(a_page_of_a_million_entries_is_there_in_50_ms_and_takes_no_more_memory)
{
    enum { MORE_KIB = 4096, PEAK_KIB = 48 * 1024 }; /* a reply of a million would take 100 MiB */
    start_redis();
    start_server();
    redis("EVAL %s 0", fill);
    redis("LTRIM guestbook:entries 0 99");
    median_us("/guestbook", 200); /* so that all have asked before */
    long before = server_pss_kib();
    redis("DEL guestbook:entries");
    redis("EVAL %s 0", fill);
    check(redis_number("LLEN guestbook:entries") == 1000000, "no million");
    int64_t first = median_us("/guestbook", 200), last = median_us("/guestbook?page=50000", 200);
    check(first < patience(50) * 1000 && last < patience(50) * 1000,
          "the first page takes %lld us, the last one %lld", (long long)first, (long long)last);
    check(body_has(get("/guestbook"), "<p dir=\"auto\">1000000</p>") &&
              body_has(get("/guestbook?page=50000"), "<p dir=\"auto\">1</p>"),
          "not the first and the last entry");
    long more = server_pss_kib() - before;
    check(more < patience(MORE_KIB), "%ld KiB more", more);
    long peak = stop_server().peak_kib; /* of chapter 2's children, too, who are gone */
    check(peak < patience(PEAK_KIB), "at most it was %ld KiB", peak);
}
