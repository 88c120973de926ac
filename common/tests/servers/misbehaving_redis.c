/* Redis as a real one cannot be told to be: it talks in single bytes, stops in the middle of a
 * word, says what makes no sense, hangs up, or answers too late. A stand-in does it, at each of the
 * three calls that a page takes, and at the one or two of a post.
 */
#include "stand_in.h"
#include "tests/harness/harness.h"

#define VIEW   "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n"
#define VIEW_2 "GET /guestbook?page=2 HTTP/1.1\r\nHost: test\r\n\r\n"
#define FORM   "guest-name=Ada&guest-remarks=hello"

/* What --timeout 5 makes of them. A busy machine may take as long again, and more. */
enum { COMMAND_MS = 1000, CONNECT_MS = 500, LATE_MS = 3000 };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const calls[] = {"INCR", "GET", "LRANGE", "RPUSH"};
enum { PAGE_CALLS = 3 };

static const char *const ranges[] = {"-21 to -1", "-41 to -21"}; /* of the first page and second */

static const struct answer *ask_what_takes(const char *call)
{
    return strcmp(call, "RPUSH") == 0 ? post(FORM) : get("/guestbook");
}

/* Whatever has happened before: a page, a post and a file are answered as ever. */
static void check_all_is_well(const char *after)
{
    stand_in((struct manner){0});
    const struct answer *page = get("/guestbook");
    check(page->status == 200 && body_has(page, ranges[0]), "after %s: %d: %s", after, page->status,
          page->body);
    check(post(FORM)->status == 303, "after %s: the post", after);
    check_file(get("/"), "public/index.html");
}

/* Redis answers in this manner at each of the calls. Whoever needs that call is told one of two
 * statuses, of which 504 takes the whole time of a command. Nobody knows whether the call was done,
 * so nobody sends it again. And all is well afterwards. */
static void check_every_call(struct manner m, int status, int or_status)
{
    bool ours = server_is_ours();
    const char *says = m.says ? m.says : "half a reply";
    for (size_t i = 0; i < COUNT(calls); i++) {
        int heard = stand_in_heard(calls[i]);
        m.at = calls[i];
        stand_in(m);
        const struct answer *answer = ask_what_takes(calls[i]);
        check(answer->status == status || answer->status == or_status, "%s: %.30s: %d: %s",
              calls[i], says, answer->status, answer->body);
        check(answer->status == 503 || body_has(answer, ours ? "look before you post" : "Redis"),
              "it does not say that an entry may be stored: %s", answer->body);
        check(answer->status == 503 || !ours || !field(answer, "Retry-After"), "come again?");
        check(stand_in_heard(calls[i]) == heard + 1, "%s was sent again", calls[i]);
        check_all_is_well(calls[i]);
    }
}

/* Nothing at all, the first half of a reply, or one whose bytes are all in time, but not the whole:
 * more than forty. */
EVERY_SERVER(silence_and_half_a_reply_mean_504_in_time_at_every_call)
{
    static const struct manner manners[] = {
        {.at = "INCR", .says = "", .then = FALLS_SILENT},
        {.at = "RPUSH", .says = "", .then = FALLS_SILENT},
        {.at = "GET", .half = true, .then = FALLS_SILENT},
        {.at = "LRANGE", .half = true, .then = FALLS_SILENT},
        {.at = "LRANGE", .in_bytes = true, .pause_ms = COMMAND_MS / 20},
    };
    start_stand_in();
    start_server("--timeout", "5");
    for (size_t i = 0; i < COUNT(manners); i++) {
        int heard = stand_in_heard(manners[i].at);
        stand_in(manners[i]);
        int64_t start = now_ms();
        const struct answer *answer = ask_what_takes(manners[i].at);
        check_took(start, COMMAND_MS - 20, COMMAND_MS + patience(LATE_MS));
        check(answer->status == 504 && stand_in_heard(manners[i].at) == heard + 1, "%zu: %d", i,
              answer->status);
        check_all_is_well(manners[i].at);
    }
}

/* A loop's visitors wait in one line for one connection. Redis completes a reply long before the
 * time of a command is over, but is not through with all of them. */
static void a_redis_that_answers_steadily_is_waited_for_however_long_the_line(void)
{
    enum { VISITORS = 150, REPLY_MS = 40, TIMEOUT_MS = 5000 };
    struct client *visitors[VISITORS];
    start_stand_in();
    start_server("--timeout", "5");
    stand_in((struct manner){.at = "INCR", .pause_ms = REPLY_MS});
    int64_t start = now_ms();
    for (int i = 0; i < VISITORS; i++) {
        visitors[i] = dial();
        say(visitors[i], VIEW);
    }
    for (int i = 0; i < VISITORS; i++) {
        check(hear(visitors[i])->status == 200, "visitor %d: %d", i, visitors[i]->answer.status);
        hang_up(visitors[i]);
    }
    check(now_ms() - start > TIMEOUT_MS, "there was no line");
}
AGAINST_LOOPS(a_redis_that_answers_steadily_is_waited_for_however_long_the_line)

/* Both posts are on their way when Redis refuses the first one, and hangs up. Nobody knows what
 * becomes of the second. */
static void only_a_post_that_was_refused_is_called_not_stored(void)
{
    static const char request[] = "POST /guestbook HTTP/1.1\r\nHost: test\r\nContent-Length: 34\r\n"
                                  "Content-Type: application/x-www-form-urlencoded\r\n\r\n" FORM;
    start_stand_in();
    start_server();
    stand_in((struct manner){
        .at = "RPUSH", .says = "-NOAUTH who are you\r\n", .pause_ms = 300, .then = CLOSES});
    struct client *first = dial_and_be_read(request), *second = dial_and_be_read(request);
    check(hear(first)->status == 503 && body_has(&first->answer, "was not stored"), "%d: %s",
          first->answer.status, first->answer.body);
    check(hear(second)->status == 503 && body_has(&second->answer, "look before you post"),
          "%d: %s", second->answer.status, second->answer.body);
}
AGAINST_LOOPS(only_a_post_that_was_refused_is_called_not_stored)

EVERY_SERVER(a_connection_closed_instead_of_a_reply_means_503_at_every_call)
{
    start_stand_in();
    start_server();
    check_every_call((struct manner){.says = "", .then = CLOSES}, 503, 503);
    check_every_call((struct manner){.half = true, .then = CLOSES}, 503, 503);
}

/* No Redis, RESP3, which nobody has asked it to speak, not what was asked, or more than that. */
EVERY_SERVER(a_reply_that_makes_no_sense_means_503_and_is_forgotten)
{
    const char *const replies[] = {
        "HTTP/1.1 400 Bad Request\r\n\r\n", /* a wrong port */
        "$99999999999999999999\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
        "%1\r\n+a\r\n+b\r\n",
        "-LOADING Redis is loading the dataset in memory\r\n",
        "+OK\r\n",
        "*-1\r\n",
        "*9223372036854775807\r\n",
    };
    static const struct manner others[] = {
        {.at = "INCR", .says = "$1\r\n1\r\n"},
        {.at = "GET", .says = ":1\r\n"},
        {.at = "GET", .says = "$21\r\n123456789012345678901\r\n"},
        {.at = "LRANGE", .says = "*3\r\n:1\r\n$-1\r\n*1\r\n$1\r\nx\r\n"}, /* no strings */
    };
    start_stand_in();
    start_server("--timeout", "20"); /* 4 s for a command */
    for (size_t i = 0; i < COUNT(replies); i++)
        check_every_call((struct manner){.says = replies[i]}, 503, 503);
    for (size_t i = 0; i < COUNT(others); i++) {
        stand_in(others[i]);
        check(get("/guestbook")->status == 503, "%s: %s", others[i].at, others[i].says);
        check_all_is_well(others[i].says);
    }
    for (int late = 0; late < 2;
         late++) { /* more than was asked for, with the reply or behind it */
        stand_in((struct manner){.at = "LRANGE",
                                 .says = "*1\r\n$1\r\nx\r\n:4711\r\n",
                                 .in_bytes = late,
                                 .pause_ms = late});
        check(get("/guestbook")->status == 200, "it is nobody's reply");
        check_all_is_well("what nobody has asked");
    }
    check(!server_is_ours() || strstr(server_errors(), "Redis makes no sense: "), "%s",
          server_errors());
}

/* The entry is stored by then, and the list a little too long: that is no matter for the visitor.
 */
EVERY_SERVER(a_post_is_answered_303_whatever_becomes_of_the_trimming)
{
    static const struct manner manners[] = {
        {.at = "LTRIM"},
        {.at = "LTRIM", .says = "-NOPERM this user has no permissions\r\n"},
        {.at = "LTRIM", .says = "rubbish\r\n"},
        {.at = "LTRIM", .half = true, .then = CLOSES},
        {.at = "LTRIM", .says = "", .then = CLOSES},
        {.at = "LTRIM", .half = true, .then = FALLS_SILENT},
        {.at = "LTRIM", .says = "", .then = FALLS_SILENT},
    };
    start_stand_in();
    start_server("--timeout", "5");
    for (size_t i = 0; i < COUNT(manners); i++) {
        int heard = stand_in_heard("RPUSH");
        stand_in(manners[i]);
        stand_in_has_entries(20000);
        const struct answer *answer = post(FORM);
        check(answer->status == 303, "%zu: %d: %s", i, answer->status, answer->body);
        check(stand_in_heard("RPUSH") == heard + 1, "%zu: the entry was sent again", i);
        check(stand_in_heard("LTRIM") == (int)i + 1, "%zu: trimmed %d times", i,
              stand_in_heard("LTRIM"));
        stand_in_has_entries(0);
        check_all_is_well("trimming");
    }
}

/* A terminal that is shown the log must not obey it, and a log grows by a line a second. */
EVERY_SERVER(errors_of_redis_are_told_escaped_and_once_a_second)
{
    start_stand_in();
    start_server();
    int64_t started = now_ms();
    stand_in((struct manner){.at = "INCR", .says = "-ERR \033[31mred\a \\ \xc3\xa4\r\n"});
    for (int turn = 0; turn < 50; turn++) {
        const struct answer *page = get("/guestbook");
        check(page->status == 503 && !body_has(page, "red\a"), "%d: %s", page->status, page->body);
        poll(NULL, 0, turn == 48 ? 1100 : 0);
    }
    const char *told = server_errors();
    int lines = count_lines(told);
    check(strstr(told, ": Redis says: ERR \\x1b[31mred\\x07 \\x5c \\xc3\\xa4\n"), "%s", told);
    check(!server_is_ours() || lines <= 2 + (now_ms() - started) / 1000, "%d lines: %s", lines,
          told);
    check_all_is_well("errors");
}

/* Whatever happens at AUTH: what was asked behind it gets no reply of AUTH's, and nobody waits. */
EVERY_SERVER(no_reply_to_auth_is_a_503_or_504_in_time)
{
    static const struct {
        struct manner manner;
        int status;
    } rows[] = {
        {{.at = "AUTH", .says = ":1\r\n", .then = GOES_ON}, 200}, /* it goes on */
        {{.at = "AUTH", .says = "rubbish\r\n", .then = GOES_ON}, 503},
        {{.at = "AUTH", .says = "+OK\r\n+more\r\n", .then = GOES_ON}, 503},
        {{.at = "AUTH", .says = "+O", .then = CLOSES}, 503},
        {{.at = "AUTH", .says = "", .then = FALLS_SILENT}, 504},
    };
    start_stand_in();
    setenv("REDISCLI_AUTH", "secret", 1);
    /* one, so that whoever connects anew is the one that is asked */
    start_server("--timeout", "5", "--workers", "1");
    for (size_t i = 0; i < 2 * COUNT(rows); i++) {
        const char *call = i % 2 ? "RPUSH" : "INCR";
        stand_in((struct manner){.at = call, .then = CLOSES}); /* the next one connects anew */
        ask_what_takes(call);
        stand_in(rows[i / 2].manner);
        int64_t start = now_ms();
        const struct answer *answer = ask_what_takes(call);
        int status = rows[i / 2].status == 200 && i % 2 ? 303 : rows[i / 2].status;
        check(answer->status == status, "%s: %d: %s", rows[i / 2].manner.says, answer->status,
              answer->body);
        check_took(start, 0, COMMAND_MS + patience(LATE_MS));
        check_all_is_well(rows[i / 2].manner.says);
    }
    check(stand_in_heard("AUTH") >= 2 * (int)COUNT(rows), "not said on every connection");
}

/* Two clients with two pages: Redis freezes as one of them is at its first, second or third call,
 * and says what it had to say when nobody waits for it any more. */
EVERY_SERVER(a_late_reply_never_reaches_another_request)
{
    start_stand_in();
    start_server("--timeout", "5");
    struct client *c[] = {dial(), server_is("iterative") ? NULL : dial()};
    int clients = c[1] ? 2 : 1;
    for (int call = 0; call < PAGE_CALLS; call++) {
        stand_in((struct manner){.at = calls[call], .then = FREEZES});
        for (int i = 0; i < clients; i++)
            say(c[i], i ? VIEW_2 : VIEW);
        wait_until(stand_in_is_frozen(), SOON_MS, "nobody asks");
        for (int i = 0; i < clients; i++)
            check(hear(c[i])->status == 504, "%s: %d", calls[call], c[i]->answer.status);
        for (int i = 0; i < clients; i++) /* while Redis is frozen, they ask for the other's page */
            say(c[i], i ? VIEW : VIEW_2);
        stand_in((struct manner){0});
        for (int turn = 0; turn < 6; turn++)
            for (int i = 0; i < clients; i++) {
                const struct answer *page = hear(c[i]);
                check(page->status == 200 && body_has(page, ranges[(turn + i + 1) % 2]),
                      "%s: turn %d: client %d: %d: %s", calls[call], turn, i, page->status,
                      page->body);
                if (turn < 5)
                    say(c[i], ranges[(turn + i) % 2] == ranges[0] ? VIEW : VIEW_2);
            }
    }
}

/* Packets to it are lost: the queue of this listener is full, and stays so. */
EVERY_SERVER(a_redis_that_cannot_be_reached_means_503_in_time)
{
    struct sockaddr_in address;
    socklen_t size = sizeof(address);
    char port[16], where[64];
    int listener = keep_port(port), waits[4];
    check(listen(listener, 0) == 0 &&
              getsockname(listener, (struct sockaddr *)&address, &size) == 0,
          "%s", strerror(errno));
    for (size_t i = 0; i < COUNT(waits); i++) {
        waits[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        check(connect(waits[i], (struct sockaddr *)&address, size) == 0 || errno == EINPROGRESS,
              "%s", strerror(errno));
    }
    snprintf(where, sizeof(where), "127.0.0.1:%s", port);
    start_server("--redis", where, "--timeout", "5");
    for (int i = 0; i < 3; i++) {
        int64_t start = now_ms();
        int status = i < 2 ? get("/guestbook")->status : post(FORM)->status;
        check_took(start, CONNECT_MS - 20, CONNECT_MS + patience(LATE_MS));
        check(status == 503, "status %d", status);
        check_file(get("/"), "public/index.html");
    }
    for (size_t i = 0; i < COUNT(waits); i++)
        close(waits[i]);
    close(listener);
}
