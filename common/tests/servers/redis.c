/* Redis: not there, gone, frozen, or not what was expected. The guestbook says so, the files never
 * notice, and when Redis is well again so is the guestbook.
 */
#include "tests/harness/harness.h"

#define VIEW "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n"
#define FORM "guest-name=Ada&guest-remarks=hello"

/* 503, which says when to come back and what to do. */
static void check_no_redis(const struct answer *answer)
{
    check(answer->status == 503, "status %d: %s", answer->status, answer->body);
    check(says_when_to_come_again(answer), "it does not say when to come again");
    check(body_has(answer, "redis-server"), "it does not say how to start one: %s", answer->body);
    check(body_has(answer, "may or may not"), "it is sure of what nobody knows: %s", answer->body);
}

/* 503, which says in plain words what kind of trouble it is, and not in those of Redis. */
static void check_refused(const struct answer *answer, const char *kind, bool posted)
{
    check(answer->status == 503, "status %d: %s", answer->status, answer->body);
    check(says_when_to_come_again(answer), "it does not say when to come again");
    check(body_has(answer, kind), "not \"%s\": %s", kind, answer->body);
    check(body_has(answer, "was not stored") == posted, "what became of an entry: %s",
          answer->body);
    check(!body_has(answer, "redis-server"), "there is a Redis: %s", answer->body);
}

/* How often the server has written this on standard error. */
static int count_said(const char *text)
{
    return count_parts(server_errors(), text);
}

EVERY_SERVER(a_503_says_when_to_come_again)
{
    start_server(); /* there is no Redis */
    const char *retry = field(get("/guestbook"), "Retry-After");
    check(retry && atoi(retry) > 0, "Retry-After: %s", retry ? retry : "none");
}

EVERY_SERVER(without_redis_files_are_served_and_the_guestbook_says_what_is_missing)
{
    start_server(); /* no start_redis() before */
    check(count_lines(server_errors()) == 1, "not one line");
    check(strncmp(server_errors(), server_says, strlen(server_says)) == 0 &&
              strstr(server_errors(), "no Redis at unix:"),
          "it does not say what is wrong");
    check_no_redis(get("/guestbook"));
    check_no_redis(post(FORM));
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
    check_no_redis(post(FORM));
    check_file(get("/"), "public/index.html");
    start_redis();
    wait_until(get("/guestbook")->status == 200, 1000, "Redis is back, and nobody notices");
}

EVERY_SERVER(when_redis_dies_while_it_is_asked_the_visitor_is_told)
{
    start_redis();
    start_server("--timeout", "30"); /* 6 s for Redis: more than a death takes to notice */
    freeze_redis();
    struct client *c = dial_and_be_read(VIEW);
    kill_redis();
    check_no_redis(hear(c));
    start_redis();
    say(c, VIEW);
    check(hear(c)->status == 200, "status %d", c->answer.status);
}

/* Many more than there are connections in the pool: whoever waits for one has no more time than the
 * rest, and is not told by one of them each.
 * --timeout 5 gives a command one second. */
ONLY_SERVER(threading, two_hundred_who_wait_for_a_frozen_redis_are_told_in_time)
{
    enum { CLIENTS = 200 };
    struct client *clients[CLIENTS];
    start_redis();
    start_server("--timeout", "5");
    freeze_redis();
    int64_t start = now_ms();
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = dial();
        say(clients[i], "GET /guestbook HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    }
    for (int i = 0; i < CLIENTS; i++) {
        int status = hear(clients[i])->status;
        check(status == 503 || status == 504, "status %d", status);
        hang_up(clients[i]);
    }
    check_took(start, 900, 1000 + patience(700));
    thaw_redis();
    wait_until(get("/guestbook")->status == 200, 1000, "Redis is well, and nobody notices");
}

CONCURRENT_SERVERS(files_are_served_while_somebody_waits_for_a_frozen_redis)
{
    start_redis();
    start_server("--timeout", "10");
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

EVERY_SERVER(somebody_elses_value_under_our_key_is_a_503)
{
    start_redis();
    start_server();
    redis("SET guestbook:entries x");
    check_refused(get("/guestbook"), "is no guestbook", false);
    check_refused(post(FORM), "is no guestbook", true);
    redis("DEL guestbook:entries");
    check(get("/guestbook")->status == 200, "it does not recover");
    redis("DEL guestbook:visitors");
    redis("RPUSH guestbook:visitors x");
    check_refused(get("/guestbook"), "is no guestbook", false);
    redis("SET guestbook:visitors many");
    check_refused(get("/guestbook"), "Redis refused", false);
    redis("SET guestbook:visitors 9223372036854775807"); /* 2^63 - 1, and no more */
    check_refused(get("/guestbook"), "Redis refused", false);
    check(post(FORM)->status == 303, "an entry needs no visitor's number");
    redis("DEL guestbook:visitors");
    redis("RPUSH guestbook:entries %s", "not one of ours <b>");
    const struct answer *page = get("/guestbook");
    check(page->status == 200 && body_has(page, "not one of ours &lt;b&gt;"), "%d: %s",
          page->status, page->body);
}

/* ---- a Redis that is there, and says no ---------------------------------------------------- */

/* The page's INCR and the post's RPUSH are refused; nothing of theirs is stored, the files are as
 * they were, and so is the guestbook when Redis is well again. What Redis says is on standard error
 * once, however often and by whomever it was met with, and never on a page. */
EVERY_SERVER(a_redis_that_refuses_to_write_means_503_until_it_does_not)
{
    static const struct {
        const char *refuse, *says, *relent, *kind;
    } rows[] = {
        {"CONFIG SET maxmemory 1", "OOM", "CONFIG SET maxmemory 0", "memory"},
        {"REPLICAOF 127.0.0.1 1", "READONLY", "REPLICAOF NO ONE", "copy of another"},
        {"CONFIG SET min-replicas-to-write 1", "NOREPLICAS", "CONFIG SET min-replicas-to-write 0",
         "waits for its copies"},
    };
    start_redis();
    start_server();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        redis(rows[i].refuse);
        redisReply *reply = redisCommand(open_redis(), "RPUSH test x");
        check(strncmp(reply->str, rows[i].says, strlen(rows[i].says)) == 0, "%s", reply->str);
        for (int j = 0; j < 3; j++) {
            check_refused(get("/guestbook"), rows[i].kind, false);
            check_refused(post(FORM), rows[i].kind, true);
            check(!body_has(post(FORM), reply->str), "Redis' own words");
        }
        check(count_said(reply->str) == 1, "said %d times", count_said(reply->str));
        check_file(get("/"), "public/index.html");
        redis(rows[i].relent);
        check(get("/guestbook")->status == 200, "after %s", rows[i].says);
        check(redis_number("GET guestbook:visitors") == (int)i + 1 &&
                  redis_number("LLEN guestbook:entries") == 0,
              "%s: something was stored all the same", rows[i].says);
    }
}

EVERY_SERVER(a_redis_with_all_the_clients_it_may_have_means_503_until_there_is_room)
{
    start_redis();
    start_server();
    redis("CONFIG SET maxclients 1"); /* our own connection */
    redis("CLIENT KILL TYPE normal"); /* and any other that is there */
    for (int i = 0; i < 3; i++) {     /* Redis says so, and hangs up: either may be noticed first */
        check(get("/guestbook")->status == 503, "the page");
        check(post(FORM)->status == 503, "the post");
    }
    check(count_said("max number of clients") <= 1, "more than once");
    check_file(get("/"), "public/index.html");
    redis("CONFIG SET maxclients 100");
    wait_until(get("/guestbook")->status == 200, 1000, "there is room, and nobody notices");
    check(redis_number("LLEN guestbook:entries") == 0, "refused, and stored");
}

static bool is_loading(void)
{
    redisContext *context = open_redis();
    redisReply *reply = context ? redisCommand(context, "PING") : NULL;
    bool loading =
        reply && reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "LOADING", 7) == 0;
    freeReplyObject(reply);
    redisFree(context);
    return loading;
}

/* A real one, that takes its time: it rests at each of 4,000 keys, and looks up at each KiB. */
EVERY_SERVER(while_redis_loads_its_data_it_is_a_503)
{
    start_redis("--rdbcompression", "no");
    redis("EVAL %s 0", "for i = 1, 4000 do redis.call('SET', i, string.rep('x', 500)) end");
    redis("SAVE");
    kill_redis();
    launch_redis("--key-load-delay", "5000", "--loading-process-events-interval-bytes", "1024");
    wait_until(is_loading(), SOON_MS, "Redis says: %s", read_whole(place("redis.log"), NULL));
    start_server();
    for (int i = 0; i < 3; i++) {
        check_refused(get("/guestbook"), "loading its data", false);
        check_refused(post(FORM), "loading its data", true);
        check_file(get("/"), "public/index.html");
    }
    check(count_said("LOADING ") == 1, "said %d times", count_said("LOADING "));
    check(is_loading(), "the data were there too soon");
    check(redisCommand(open_redis(), "CONFIG SET key-load-delay 0"), "it does not listen");
    wait_until(redis_answers(), SOON_MS, "Redis still loads");
    wait_until(get("/guestbook")->status == 200, 1000, "Redis is ready, and nobody notices");
    check(redis_number("LLEN guestbook:entries") == 0, "refused, and stored");
}

/* ---- a Redis with a password --------------------------------------------------------------- */

#define PASSWORD "open: @sesame/%"

EVERY_SERVER(without_the_password_it_is_a_503_that_says_so)
{
    start_redis();
    redis("CONFIG SET requirepass %s", PASSWORD); /* our own connection has been let in already */
    start_server();
    for (int i = 0; i < 3; i++) {
        check_refused(get("/guestbook"), "password", false);
        check_refused(post(FORM), "password", true);
    }
    check(count_said("Redis says: NOAUTH Authentication required.") == 1, "not once");
    check_file(get("/"), "public/index.html");
    redis("CONFIG SET requirepass %s", "");
    check(get("/guestbook")->status == 200, "it is open now");
    check(redis_number("LLEN guestbook:entries") == 0, "refused, and stored");
}

/* Said on each connection anew, and its reply is nobody's. */
EVERY_SERVER(the_password_may_be_in_the_environment)
{
    start_redis();
    redis("CONFIG SET requirepass %s", PASSWORD);
    setenv("REDISCLI_AUTH", PASSWORD, 1);
    start_server();
    for (int i = 1; i <= 3; i++) {
        char number[64];
        snprintf(number, sizeof(number), "You are visitor number %d.", i);
        const struct answer *page = get("/guestbook");
        check(page->status == 200 && body_has(page, number), "%d: %s", page->status, page->body);
        check(post(FORM)->status == 303, "the post");
        redis("CLIENT KILL TYPE normal");
    }
    check(redis_number("LLEN guestbook:entries") == 3, "not stored once each");
    check(*server_errors() == '\0', "%s", server_errors());
}

EVERY_SERVER(a_wrong_password_is_a_503_until_it_is_right)
{
    start_redis();
    redis("CONFIG SET requirepass %s", "another");
    setenv("REDISCLI_AUTH", PASSWORD, 1);
    start_server();
    for (int i = 0; i < 3; i++) {
        const struct answer *answer = i % 2 ? post(FORM) : get("/guestbook");
        check(answer->status == 503 && body_has(answer, "password"), "%d: %s", answer->status,
              answer->body);
        check(!body_has(answer, "redis-server") && !body_has(answer, PASSWORD), "%s", answer->body);
    }
    check_file(get("/"), "public/index.html");
    check(count_lines(server_errors()) == 1 && count_said("password") == 1 &&
              count_said(PASSWORD) == 0,
          "not one line");
    redis("CONFIG SET requirepass %s", PASSWORD);
    check(get("/guestbook")->status == 200, "it is right now");
    check(redis_number("LLEN guestbook:entries") == 0, "refused, and stored");
}

EVERY_SERVER(the_password_may_be_in_the_address_and_is_never_repeated)
{
    char port[16], where[100];
    int taken = keep_port(port);
    snprintf(where, sizeof(where), "redis://:open:%%20@sesame%%2f%%25@127.0.0.1:%s", port);
    setenv("REDISCLI_AUTH", "something else", 1);
    start_server("--redis", where);
    check(count_lines(server_errors()) == 1 && count_said("no Redis at 127.0.0.1:") == 1 &&
              count_said("sesame") == 0,
          "not that");
    close(taken);
    start_redis("--port", port);
    redis("CONFIG SET requirepass %s", PASSWORD);
    check(get("/guestbook")->status == 200 && post(FORM)->status == 303, "not let in");
}

/* Of an access control list, with the rights that OPERATING.md gives it. */
EVERY_SERVER(a_user_may_be_in_the_address)
{
    char port[16], where[100];
    int taken = keep_port(port);
    snprintf(where, sizeof(where), "redis://ada@127.0.0.1:%s", port);
    setenv("REDISCLI_AUTH", "secret", 1);
    start_server("--redis", where);
    check_no_redis(get("/guestbook"));
    close(taken);
    start_redis("--port", port);
    redis("ACL SETUSER ada on >secret ~guestbook:* +incr +get +lrange +rpush +ltrim");
    redis("EVAL %s 0", "for i = 1, 10100 do redis.call('RPUSH', 'guestbook:entries', 'x') end");
    check(get("/guestbook")->status == 200 && post(FORM)->status == 303, "not let in");
    check(redis_number("LLEN guestbook:entries") == 10000, "not stored, or not trimmed");
    redis("ACL SETUSER ada -incr");
    check_refused(get("/guestbook"), "permit", false);
}

/* ---- a connection that Redis has closed ---------------------------------------------------- */

EVERY_SERVER(a_connection_that_redis_has_closed_costs_no_request)
{
    start_redis();
    start_server();
    for (int i = 0; i < 5; i++) {
        check(get("/guestbook")->status == 200, "%d: the page", i);
        redis("CLIENT KILL TYPE normal");
        check(post(FORM)->status == 303, "%d: the post", i);
        redis("CLIENT KILL TYPE normal");
    }
    check(redis_number("LLEN guestbook:entries") == 5, "not stored once each");
}

/* Both come to a server that is held fast: a question for Redis, and the end of the connection on
 * which it would be asked. So it finds the one only when it is about to use the other. */
EVERY_SERVER(a_connection_found_closed_as_it_is_needed_costs_no_request)
{
    int status;
    start_redis();
    start_server();
    struct client *c = dial();
    for (int i = 0; i < 5; i++) {
        say(c, VIEW);
        check(hear(c)->status == 200, "%d: status %d", i, c->answer.status);
        check(kill(-server_pid, SIGSTOP) == 0 &&
                  waitpid(server_pid, &status, WUNTRACED) == server_pid && WIFSTOPPED(status),
              "%s", strerror(errno));
        say(c, VIEW);
        redis("CLIENT KILL TYPE normal");
        kill(-server_pid, SIGCONT);
        check(hear(c)->status == 200, "%d: status %d", i, c->answer.status);
    }
}

/* Redis answers in time, but the server is held fast until it would be too late. (If it was stopped
 * before it had asked, it asks afterwards: the page is due all the same.) */
EVERY_SERVER(a_reply_that_came_while_the_server_was_stopped_counts)
{
    enum { COMMAND_MS = 1000, ASKED_MS = 30 };
    int status;
    start_redis();
    start_server("--timeout", "5");
    struct client *c = dial();
    for (int i = 0; i < 2; i++) {
        say(c, VIEW);
        check(hear(c)->status == 200, "%d: status %d", i, c->answer.status);
        freeze_redis();
        say(c, VIEW);
        poll(NULL, 0, ASKED_MS);
        check(kill(-server_pid, SIGSTOP) == 0 &&
                  waitpid(server_pid, &status, WUNTRACED) == server_pid && WIFSTOPPED(status),
              "%s", strerror(errno));
        thaw_redis();
        poll(NULL, 0, COMMAND_MS + 300); /* the clock is what this is about */
        kill(-server_pid, SIGCONT);
        check(hear(c)->status == 200, "%d: status %d", i, c->answer.status);
    }
}
