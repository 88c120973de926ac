/* Redis: not there, gone, frozen, or not what was expected. The guestbook says so, the files never
 * notice, and when Redis is well again so is the guestbook.
 */
#include "tests/harness/harness.h"

#define VIEW     "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n"
#define FORM     "guest-name=Ada&guest-remarks=hello"
#define PASSWORD "open: @sesame/%"

/* 503, which says when to come back and what to do. */
static void check_no_redis(const struct answer *answer)
{
    check(answer->status == 503, "status %d: %s", answer->status, answer->body);
    check(says_when_to_come_again(answer), "it does not say when to come again");
    check(body_has(answer, "redis-server"), "it does not say how to start one: %s", answer->body);
    check(body_has(answer, "may or may not"), "it is sure of what nobody knows: %s", answer->body);
}

/* 503, which says in plain words what kind of trouble it is, and not in those of Redis. */
static void check_refused(const struct answer *answer, bool posted)
{
    check(answer->status == 503, "status %d: %s", answer->status, answer->body);
    check(says_when_to_come_again(answer), "it does not say when to come again");
    check(body_has(answer, "Redis refused"), "%s", answer->body);
    check(body_has(answer, "was not stored") == posted, "what became of an entry: %s",
          answer->body);
    check(!body_has(answer, "redis-server"), "there is a Redis: %s", answer->body);
}

/* How often the server has written this on standard error. */
static int count_said(const char *text)
{
    return count_parts(server_errors(), text);
}

/* It has told something of Redis, but not more than once a second. */
static void check_said(const char *text, int64_t started)
{
    check(count_said(text) > 0, "nothing of \"%s\": %s", text, server_errors());
    check(count_said(": Redis ") <= 2 + (now_ms() - started) / 1000, "%s", server_errors());
}

/* From the start, and when it dies. */
EVERY_SERVER(without_redis_files_are_served_and_the_guestbook_says_what_is_missing)
{
    start_server(); /* no start_redis() before */
    check(count_lines(server_errors()) == 1, "not one line");
    check(strncmp(server_errors(), server_says, strlen(server_says)) == 0 &&
              strstr(server_errors(), "no Redis at unix:"),
          "it does not say what is wrong");
    for (int i = 0; i < 2; i++) {
        check_no_redis(get("/guestbook"));
        check_no_redis(post(FORM));
        check_file(get("/"), "public/index.html");
        start_redis();
        wait_until(get("/guestbook")->status == 200, SOON_MS, "it is there, and nobody notices");
        kill_redis();
    }
}

/* Many more than there are connections in the pool: whoever waits for one has no more time than the
 * rest, and is not told by one of them each. And nobody gets another's.
 * --timeout 10 gives a command two seconds. */
ONLY_SERVER(threading, two_hundred_who_wait_for_a_frozen_redis_are_told_in_time)
{
    enum { CLIENTS = 200 };
    struct client *clients[CLIENTS];
    start_redis();
    start_server("--timeout", "10");
    for (int frozen = 1; frozen >= 0; frozen--) {
        if (frozen)
            freeze_redis();
        int64_t start = now_ms();
        for (int i = 0; i < CLIENTS; i++)
            clients[i] =
                dial_and_say("GET /guestbook HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        for (int i = 0; i < CLIENTS; i++) {
            int status = hear(clients[i])->status;
            check(frozen ? status == 503 || status == 504 : status == 200, "status %d", status);
            hang_up(clients[i]);
        }
        if (frozen)
            check_took(start, 1900, 2000 + patience(4000)); /* not two seconds for each before */
        thaw_redis();
        wait_until(get("/guestbook")->status == 200, SOON_MS, "Redis is well, and nobody notices");
    }
}

CONCURRENT_SERVERS(files_are_served_while_somebody_waits_for_a_frozen_redis)
{
    start_redis();
    start_server("--timeout", "100");
    freeze_redis();
    struct client *c = dial_and_be_read(VIEW);
    check_file(get("/"), "public/index.html");
    check_file(get("/tux.png"), "public/tux.png");
    check(!has_heard(c), "the guestbook did not wait");
    thaw_redis();
    check(hear(c)->status == 200, "status %d", c->answer.status);
}

/* Who has nothing to do must sleep, though there is something to read: the client has sent ahead,
 * or left. */
EVERY_SERVER(waiting_for_redis_costs_no_cpu_whatever_the_client_does_meanwhile)
{
    start_redis();
    start_server("--timeout", "5");
    struct client *c = dial();
    say(c, "GET / HTTP/1.1\r\nHost: test\r\n\r\n"); /* a kept client, whom a loop watches */
    check_file(hear(c), "public/index.html");
    freeze_redis();
    say_and_be_read(c, VIEW);
    int64_t before = server_cpu_ms();
    say(c, "GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    say_no_more(c);
    check(hear(c)->status == 504, "status %d", c->answer.status); /* a second later */
    check(server_cpu_ms() - before < patience(60), "%lld ms of CPU",
          (long long)(server_cpu_ms() - before));
    check_file(hear(c), "public/index.html");
}

/* ---- a Redis that is there, and says no ---------------------------------------------------- */

/* The page's commands and the post's RPUSH are refused, in every other row on a connection that is
 * there already; nothing of theirs is stored, the files are as they were, and so is the guestbook
 * when Redis is well again. What Redis says is on standard error, a line a second, however often
 * and by whomever it was met with, and never on a page. Who may have no connection might notice
 * first that Redis hangs up. */
EVERY_SERVER(a_redis_that_refuses_means_503_until_it_does_not)
{
    static const struct {
        const char *refuse, *says, *relent;
    } rows[] = {
        {"CONFIG SET maxclients 1", "max number of clients", "CONFIG SET maxclients 100"},
        {"CONFIG SET maxmemory 1", "OOM", "CONFIG SET maxmemory 0"},
        {"CONFIG SET requirepass another", "NOAUTH", "CONFIG SET requirepass %s"},
        {"REPLICAOF 127.0.0.1 1", "READONLY", "REPLICAOF NO ONE"},
        {"CONFIG SET min-replicas-to-write 1", "NOREPLICAS", "CONFIG SET min-replicas-to-write 0"},
        {"SET guestbook:entries x", "WRONGTYPE", "DEL guestbook:entries"},
    };
    start_redis();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        start_server();
        int64_t started = now_ms();
        check(i % 2 == 0 || get("/guestbook")->status == 200, "before %s", rows[i].says);
        redis(rows[i].refuse);
        for (int j = 0; j < 30; j++) {
            check_refused(get("/guestbook"), false);
            const struct answer *posted = post(FORM);
            check_refused(posted, true);
            check(!body_has(posted, rows[i].says), "Redis' own words");
        }
        check_said(rows[i].says, started);
        check_file(get("/"), "public/index.html");
        redis(rows[i].relent, "");
        wait_until(get("/guestbook")->status == 200, SOON_MS, "well, and nobody notices");
        check(redis_number("LLEN guestbook:entries") == 0, "%s: stored all the same", rows[i].says);
        stop_server();
    }
}

/* ---- a Redis with a password --------------------------------------------------------------- */

/* What Redis says is told, and never the password. */
EVERY_SERVER(with_a_wrong_password_it_is_a_503_that_says_so)
{
    start_redis();
    redis("CONFIG SET requirepass %s", "another"); /* our own connection is in already */
    setenv("REDISCLI_AUTH", PASSWORD, 1);
    start_server();
    int64_t started = now_ms();
    for (int i = 0; i < 3; i++) {
        check_refused(get("/guestbook"), false);
        check_refused(post(FORM), true);
    }
    check_file(get("/"), "public/index.html");
    check_said("Redis says: WRONGPASS ", started);
    check(count_said(PASSWORD) == 0, "%s", server_errors());
    redis("CONFIG SET requirepass %s", PASSWORD);
    check(get("/guestbook")->status == 200, "it is right now");
    check(redis_number("LLEN guestbook:entries") == 0, "refused, and stored");
}

/* Said on each connection anew, which costs no request, and its reply is nobody's. It may be meant
 * for another Redis: that is told once, not for each of the connections. */
EVERY_SERVER(the_password_may_be_in_the_environment_wanted_or_not)
{
    start_redis();
    setenv("REDISCLI_AUTH", PASSWORD, 1);
    for (int wanted = 0; wanted < 2; wanted++) {
        redis("CONFIG SET requirepass %s", wanted ? PASSWORD : "");
        start_server();
        for (int i = 0; i < 3; i++) {
            check(get("/guestbook")->status == 200 && post(FORM)->status == 303, "%d", i);
            redis("CLIENT KILL TYPE normal");
            poll(NULL, 0, i == 1 ? 1100 : 0); /* whatever is told is told once a second at most */
        }
        check(redis_number("LLEN guestbook:entries") == 3 * (wanted + 1) &&
                  redis_number("GET guestbook:visitors") == 3 * (wanted + 1),
              "not stored once each");
        check(count_lines(server_errors()) == !wanted &&
                  count_said("Redis says: ERR AUTH <password> called without any password") ==
                      !wanted &&
                  count_said(PASSWORD) == 0,
              "%s", server_errors());
        stop_server();
    }
}

/* A hundred pages that compute for 20 ms each can be made at the same moment. */
static void a_file_does_not_wait_for_pages_that_come_together(void)
{
    enum { PAGES = 100, PART = 4 };
    int64_t longest = 0, begin = now_ms();
    struct client *pages[PAGES];
    start_redis();
    start_server("--work", "20");
    freeze_redis();
    for (int i = 0; i < PAGES; i++)
        pages[i] = dial_and_be_read("GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
    thaw_redis();
    while (!has_heard(pages[PAGES - 1])) {
        int64_t start = now_ms();
        check_file(get("/"), "public/index.html");
        int64_t took = now_ms() - start;
        longest = took > longest ? took : longest;
    }
    int64_t all = now_ms() - begin;
    check(longest < all / PART, "%lld ms of %lld", (long long)longest, (long long)all);
    for (int i = 0; i < PAGES; i++)
        check(hear(pages[i])->status == 200, "page %d: %d", i, pages[i]->answer.status);
}
AGAINST_LOOPS(a_file_does_not_wait_for_pages_that_come_together)
