/* Redis: not there, gone, frozen, or not what was expected. The guestbook says so, the files never
 * notice, and when Redis is well again so is the guestbook.
 */
#include "servers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 503, which says when to come back and what to do. */
static void check_no_redis(const struct answer *answer)
{
    const char *retry = field(answer, "Retry-After");
    check(answer->status == 503, "status %d: %s", answer->status, answer->body);
    check(retry && atoi(retry) > 0, "Retry-After: %s", retry ? retry : "none");
    check(body_has(answer, "redis-server"), "it does not say how to start one: %s", answer->body);
}

/* What the server has used of the CPU so far, its present children included. */
static int64_t cpu_ms(void)
{
    pid_t processes[64] = {server_pid};
    char states[64], path[64];
    int64_t ticks = 0;
    for (int i = list_children(server_pid, processes + 1, 63, states); i >= 0; i--) {
        unsigned long user = 0, system = 0;
        snprintf(path, sizeof(path), "/proc/%d/stat", (int)processes[i]);
        const char *stat = read_whole(path, NULL), *behind_name = stat ? strrchr(stat, ')') : NULL;
        if (behind_name)
            sscanf(behind_name, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                   &system);
        ticks += (int64_t)(user + system);
    }
    return ticks * 1000 / sysconf(_SC_CLK_TCK);
}

EVERY_SERVER(without_redis_files_are_served_and_the_guestbook_says_what_is_missing)
{
    start_server(); /* no start_redis() before */
    check(count_lines(server_errors()) == 1, "not one line");
    check(strncmp(server_errors(), server_name, strlen(server_name)) == 0 &&
              strstr(server_errors(), "no Redis at unix:"),
          "it does not say what is wrong");
    check_no_redis(get("/guestbook"));
    check_no_redis(post("guest-name=Ada&guest-remarks=hello"));
    check_file(get("/"), "public/index.html");
    start_redis();
    wait_until(get("/guestbook")->status == 200, 1000, "Redis is there, and nobody notices");
}

EVERY_SERVER(when_redis_dies_the_guestbook_says_so_until_it_is_back)
{
    start_redis();
    start_server();
    check(get("/guestbook")->status == 200, "not even before");
    kill_redis();
    check_no_redis(get("/guestbook"));
    check_no_redis(post("guest-name=Ada&guest-remarks=hello"));
    check_file(get("/"), "public/index.html");
    start_redis();
    wait_until(get("/guestbook")->status == 200, 1000, "Redis is back, and nobody notices");
}

EVERY_SERVER(a_restart_of_redis_between_two_requests_costs_neither)
{
    start_redis();
    start_server();
    struct client *c = dial();
    for (int i = 0; i < 3; i++) {
        say(c, "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
        check(hear(c)->status == 200, "after %d restarts: %d", i, c->answer.status);
        kill_redis();
        start_redis();
    }
    hang_up(c);
}

EVERY_SERVER(when_redis_dies_while_it_is_asked_the_visitor_is_told)
{
    start_redis();
    start_server("--timeout", "30"); /* 6 s for Redis: more than a death takes to notice */
    freeze_redis();
    struct client *c = dial();
    say(c, "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
    wait_until(is_read(c), SOON_MS, "not read");
    kill_redis();
    check_no_redis(hear(c));
    start_redis();
    say(c, "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
    check(hear(c)->status == 200, "status %d", c->answer.status);
    hang_up(c);
}

/* --timeout 5 gives a command one second. */
EVERY_SERVER(a_frozen_redis_means_504_in_time)
{
    start_redis();
    start_server("--timeout", "5");
    check(get("/guestbook")->status == 200, "not even before");
    freeze_redis();
    int64_t start = now_ms();
    const struct answer *answer = get("/guestbook");
    int64_t took = now_ms() - start;
    check(answer->status == 504 && body_has(answer, "Redis"), "%d: %s", answer->status,
          answer->body);
    check(took >= 900 && took < 1000 + patience(1000), "after %lld ms", (long long)took);
    thaw_redis();
    wait_until(get("/guestbook")->status == 200, 2000, "Redis is well, and nobody notices");
}

CONCURRENT_SERVERS(files_are_served_while_somebody_waits_for_a_frozen_redis)
{
    start_redis();
    start_server("--timeout", "10");
    freeze_redis();
    struct client *c = dial();
    say(c, "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
    wait_until(is_read(c), SOON_MS, "not read");
    check_file(get("/"), "public/index.html");
    check_file(get("/tux.png"), "public/tux.png");
    check(!has_heard(c), "the guestbook did not wait");
    thaw_redis();
    check(hear(c)->status == 200, "status %d", c->answer.status);
    hang_up(c);
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
    say(c, "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
    wait_until(is_read(c), SOON_MS, "not read");
    int64_t before = cpu_ms();
    say(c, "GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    say_no_more(c);
    check(hear(c)->status == 504, "status %d", c->answer.status); /* a second later */
    check(cpu_ms() - before < patience(60), "%lld ms of CPU", (long long)(cpu_ms() - before));
    check_file(hear(c), "public/index.html");
    hang_up(c);
}

EVERY_SERVER(a_post_whose_reply_is_lost_is_not_sent_again)
{
    start_redis();
    start_server("--timeout", "1");
    freeze_redis();
    const struct answer *answer = post("guest-name=Ada&guest-remarks=hello");
    check(answer->status == 504 && body_has(answer, "may or may not"), "%d: %s", answer->status,
          answer->body);
    thaw_redis();
    wait_until(get("/guestbook")->status == 200, 2000, "Redis is well, and nobody notices");
    check(redis_number("LLEN guestbook:entries") <= 1, "stored more than once");
}

/* A late reply to the first must not be taken for the reply to the second. */
EVERY_SERVER(nobody_gets_a_reply_that_was_meant_for_another)
{
    start_redis();
    start_server("--timeout", "1");
    redis("SET guestbook:visitors 41");
    check(post("guest-name=Ada&guest-remarks=hello")->status == 303, "not stored");
    freeze_redis();
    for (int i = 0; i < 3; i++)
        check(get("/guestbook")->status == 504, "Redis is frozen");
    thaw_redis();
    wait_until(get("/guestbook")->status == 200, 2000, "Redis is well, and nobody notices");
    long long before = redis_number("GET guestbook:visitors");
    char expected[64];
    snprintf(expected, sizeof(expected), "visitor number %lld.", before + 1);
    const struct answer *page = get("/guestbook");
    check(body_has(page, expected) && body_has(page, "<bdi>Ada</bdi>"), "not %s: %s", expected,
          page->body);
}

EVERY_SERVER(somebody_elses_value_under_our_key_is_a_503)
{
    start_redis();
    start_server();
    redis("SET guestbook:entries x");
    check_no_redis(get("/guestbook"));
    check_no_redis(post("guest-name=Ada&guest-remarks=hello"));
    redis("DEL guestbook:entries");
    check(get("/guestbook")->status == 200, "it does not recover");
    redis("DEL guestbook:visitors");
    redis("RPUSH guestbook:visitors x");
    check_no_redis(get("/guestbook"));
    redis("SET guestbook:visitors many");
    check_no_redis(get("/guestbook"));
    redis("DEL guestbook:visitors");
    redis("RPUSH guestbook:entries %s", "not one of ours <b>");
    const struct answer *page = get("/guestbook");
    check(page->status == 200 && body_has(page, "not one of ours &lt;b&gt;"), "%d: %s",
          page->status, page->body);
}
