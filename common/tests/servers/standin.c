/* Redis as a real one cannot be told to be: it talks in single bytes, stops in the middle of a
 * word, says what makes no sense, hangs up, or answers too late. A stand-in does it, at each of the
 * three calls that a page takes, and at the one or two of a post.
 */
#include "tests/harness/harness.h"

#define VIEW   "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n"
#define VIEW_2 "GET /guestbook?page=2 HTTP/1.1\r\nHost: test\r\n\r\n"
#define FORM   "guest-name=Ada&guest-remarks=hello"

enum { COMMAND_MS = 400, CONNECT_MS = 200 }; /* what --timeout 2 makes of them */

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

EVERY_SERVER(replies_may_come_byte_by_byte)
{
    start_stand_in();
    start_server();
    stand_in((struct manner){.in_bytes = true});
    for (int i = 1; i <= 3; i++) {
        char number[64];
        snprintf(number, sizeof(number), "You are visitor number %d.", i);
        const struct answer *page = get(i == 2 ? "/guestbook?page=2" : "/guestbook");
        check(page->status == 200 && body_has(page, number) && body_has(page, ranges[i == 2]),
              "%d: %s", page->status, page->body);
    }
    check(post(FORM)->status == 303, "the post");
}

enum { AT_ONCE_MS = 2000 }; /* at most */

/* Redis answers in this manner at each of the calls. Whoever needs that call is told one of two
 * statuses, not before `least_ms`, and by `most_ms`. Nobody knows whether the call was done, so
 * nobody sends it again. And all is well afterwards. */
static void check_every_call(struct manner m, int status, int or_status, int least_ms, int most_ms)
{
    bool ours = server_is_ours();
    const char *says = m.says ? m.says : "half a reply";
    for (size_t i = 0; i < COUNT(calls); i++) {
        int heard = stand_in_heard(calls[i]);
        m.at = calls[i];
        stand_in(m);
        int64_t start = now_ms();
        const struct answer *answer = ask_what_takes(calls[i]);
        int64_t took = now_ms() - start;
        check(answer->status == status || answer->status == or_status, "%s: %.30s: %d: %s",
              calls[i], says, answer->status, answer->body);
        check(answer->status == 503 || body_has(answer, ours ? "look before you post" : "Redis"),
              "it does not say that an entry may be stored: %s", answer->body);
        check(answer->status == 503 || !ours || !field(answer, "Retry-After"), "come again?");
        check(took >= least_ms && took < most_ms, "%s: %.30s: after %lld ms", calls[i], says,
              (long long)took);
        check(stand_in_heard(calls[i]) == heard + 1, "%s was sent again", calls[i]);
        check_all_is_well(calls[i]);
    }
}

/* Nothing at all, or the first half of a reply. */
EVERY_SERVER(silence_and_half_a_reply_mean_504_in_time_at_every_call)
{
    int least = COMMAND_MS - 20, most = COMMAND_MS + (int)patience(500);
    start_stand_in();
    start_server("--timeout", "2");
    check_every_call((struct manner){.says = "", .then = FALLS_SILENT}, 504, 504, least, most);
    check_every_call((struct manner){.half = true, .then = FALLS_SILENT}, 504, 504, least, most);
}

/* Each byte is in time, but a command's time is for its whole reply. */
EVERY_SERVER(a_reply_that_trickles_in_for_longer_than_its_time_means_504)
{
    enum { BYTE_MS = 20 }; /* the list of entries has more than forty */
    start_stand_in();
    start_server("--timeout", "2");
    stand_in((struct manner){.at = "LRANGE", .in_bytes = true, .pause_ms = BYTE_MS});
    int64_t start = now_ms();
    check(get("/guestbook")->status == 504, "it was waited for");
    check_took(start, COMMAND_MS - 20, COMMAND_MS + patience(300));
    check_all_is_well("a trickle");
}

/* A loop's visitors wait in one line for one connection. Redis completes a reply long before the
 * time of a command is over, but is not through with all of them. */
static void a_redis_that_answers_steadily_is_waited_for_however_long_the_line(void)
{
    enum { VISITORS = 150, REPLY_MS = 15, TIMEOUT_MS = 2000 };
    struct client *visitors[VISITORS];
    start_stand_in();
    start_server("--timeout", "2");
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
AGAINST(poll, a_redis_that_answers_steadily_is_waited_for_however_long_the_line)
AGAINST(epoll, a_redis_that_answers_steadily_is_waited_for_however_long_the_line)

EVERY_SERVER(a_connection_closed_instead_of_a_reply_means_503_at_every_call)
{
    int most = (int)patience(AT_ONCE_MS);
    start_stand_in();
    start_server();
    check_every_call((struct manner){.says = "", .then = CLOSES}, 503, 503, 0, most);
    check_every_call((struct manner){.half = true, .then = CLOSES}, 503, 503, 0, most);
}

EVERY_SERVER(rubbish_means_503_and_is_forgotten)
{
    static const char *const rubbish[] = {
        "HTTP/1.1 400 Bad Request\r\n\r\n", /* a wrong port */
        "\r\n",
        "$x\r\n",
        "*-7\r\n",
        "$-7\r\n",
        "$99999999999999999999\r\n",
        "*99999999999\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
        /* RESP3, which nobody has asked Redis to speak: hiredis 1 understands it, 0.14 does not */
        "_\r\n",
        "#t\r\n",
        ",1.5\r\n",
        "(12345678901234567890\r\n",
        "=5\r\ntxt:x\r\n",
        "%1\r\n+a\r\n+b\r\n",
        "~1\r\n+a\r\n",
        ">2\r\n+message\r\n+x\r\n",
    };
    start_stand_in();
    start_server();
    for (size_t i = 0; i < COUNT(rubbish); i++) /* some of it has no end */
        check_every_call((struct manner){.says = rubbish[i]}, 503, 504, 0, SOON_MS);
}

/* A reply's beginning, and so many pieces, each with so many bytes and the end of a line. */
static char *compose_reply(const char *begins, size_t pieces, const char *piece, size_t len)
{
    char *reply = malloc(strlen(begins) + pieces * (strlen(piece) + len + 2) + 1);
    char *at = stpcpy(reply, begins);
    for (size_t i = 0; i < pieces; i++) {
        at = stpcpy(at, piece);
        memset(at, '<', len);
        at = stpcpy(at + len, "\r\n");
    }
    return reply;
}

enum { LONGEST = 16384, ENTRIES = 21, HUGE_BYTES = 30000000 };

/* What a reply claims costs nothing, and what it holds is not gathered: it is refused as soon as it
 * is seen to be more than a page can be, and the server can be stopped all the while. */
EVERY_SERVER(a_reply_larger_than_a_page_can_be_means_503_at_once)
{
    const char *const replies[] = {
        "*2147483647\r\n",
        "*9223372036854775807\r\n",
        "*4294967296\r\n",
        "*22\r\n",
        "*1\r\n*1\r\n$1\r\nx\r\n",
        "*1\r\n*0\r\n",
        compose_reply("*1\r\n$30000000\r\n", 1, "", HUGE_BYTES),
        compose_reply("*1\r\n$300000000\r\n", 1, "", HUGE_BYTES),
        compose_reply("*1\r\n+", 1, "", HUGE_BYTES),
        compose_reply("*", 1, "", HUGE_BYTES),
        compose_reply("-ERR ", 1, "", HUGE_BYTES),
        compose_reply("*1\r\n$16385\r\n", 1, "", LONGEST + 1),
        compose_reply("*22\r\n", ENTRIES + 1, "$1\r\n", 1),
    };
    start_stand_in();
    start_server("--timeout", "20"); /* 4 s for a command */
    for (size_t i = 0; i < COUNT(replies); i++)
        check_every_call((struct manner){.says = replies[i]}, 503, 503, 0,
                         (int)patience(AT_ONCE_MS));
    if (!server_is_ours()) /* its words are its own, and so is the memory of its runtime */
        return;
    check(count_lines(server_errors()) == 2 && /* hiredis has an opinion of its own on one */
              strstr(server_errors(), "Redis makes no sense: a reply larger than a page can be\n"),
          "not told once");
    struct statistics s = stop_server();
    check(s.peak_kib < patience(24000), "%ld KiB", s.peak_kib);
}

/* As long as they may be. */
EVERY_SERVER(the_largest_page_that_can_be_is_served)
{
    char *reply = compose_reply("*21\r\n", ENTRIES, "$16384\r\n", LONGEST);
    start_stand_in();
    start_server();
    stand_in((struct manner){.at = "LRANGE", .says = reply});
    const struct answer *page = get("/guestbook");
    check(page->status == 200, "status %d", page->status);
    check(page->body_len > 20 * LONGEST * strlen("&lt;"), "%zu bytes", page->body_len);
    check_all_is_well("a large page");
}

/* As RESP goes, but not what was asked. */
EVERY_SERVER(a_reply_of_the_wrong_kind_means_503)
{
    static const char *const replies[] = {"+OK\r\n", "-ERR unknown command\r\n", "$-1\r\n",
                                          "*-1\r\n"};
    static const struct manner others[] = {
        {.at = "INCR", .says = "$1\r\n1\r\n"},
        {.at = "GET", .says = ":1\r\n"},
        {.at = "GET", .says = "$0\r\n\r\n"},
        {.at = "GET", .says = "$21\r\n123456789012345678901\r\n"},
        {.at = "LRANGE", .says = "$1\r\n1\r\n"},
        {.at = "LRANGE", .says = "*3\r\n:1\r\n$-1\r\n*1\r\n$1\r\nx\r\n"}, /* no strings */
        {.at = "LRANGE", .says = "*2\r\n$1\r\nx\r\n:1\r\n"},
    };
    start_stand_in();
    start_server();
    for (size_t i = 0; i < COUNT(replies); i++)
        check_every_call((struct manner){.says = replies[i]}, 503, 503, 0,
                         (int)patience(AT_ONCE_MS));
    for (size_t i = 0; i < COUNT(others); i++) {
        stand_in(others[i]);
        check(get("/guestbook")->status == 503, "%s: %s", others[i].at, others[i].says);
        check_all_is_well(others[i].says);
    }
}

/* The entry is stored by then, and the list a little too long: that is no matter for the visitor.
 */
EVERY_SERVER(a_post_is_answered_303_whatever_becomes_of_the_trimming)
{
    static const struct manner manners[] = {
        {.at = "LTRIM"},
        {.at = "LTRIM", .says = "-NOPERM this user has no permissions\r\n"},
        {.at = "LTRIM", .says = ":7\r\n"},
        {.at = "LTRIM", .says = "rubbish\r\n"},
        {.at = "LTRIM", .half = true, .then = CLOSES},
        {.at = "LTRIM", .says = "", .then = CLOSES},
        {.at = "LTRIM", .half = true, .then = FALLS_SILENT},
        {.at = "LTRIM", .says = "", .then = FALLS_SILENT},
    };
    start_stand_in();
    start_server("--timeout", "2");
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

/* A terminal that is shown the log must not obey it, and a log does not grow with what Redis makes
 * up. */
EVERY_SERVER(errors_of_redis_are_told_once_each_escaped_and_not_without_end)
{
    char says[600], long_text[400] = "";
    start_stand_in();
    start_server();
    memset(long_text, 'x', sizeof(long_text) - 1);
    for (int turn = 0; turn < 2; turn++) {
        stand_in((struct manner){.at = "INCR", .says = "-ERR \033[31mred\a \\ \xc3\xa4\r\n"});
        const struct answer *page = get("/guestbook");
        check(page->status == 503 && !body_has(page, "red\a"), "%d: %s", page->status, page->body);
    }
    const char *told = server_errors();
    check(count_lines(told) == 1 &&
              strstr(told, ": Redis says: ERR \\x1b[31mred\\x07 \\x5c \\xc3\\xa4\n"),
          "not that");
    for (int i = 0; i < 50; i++) {
        snprintf(says, sizeof(says), "-ERR %d %s\r\n", i, long_text);
        stand_in((struct manner){.at = i % 2 ? "RPUSH" : "LRANGE", .says = says});
        check(ask_what_takes(i % 2 ? "RPUSH" : "LRANGE")->status == 503, "%s", says);
    }
    int lines = count_lines(server_errors());
    check(lines == 16 || (lines < 16 && !server_is_ours()), "%d lines", lines);
    check(strlen(server_errors()) < 16 * 250, "%zu bytes", strlen(server_errors()));
    check_all_is_well("errors");
}

/* Whatever happens at AUTH: what was asked behind it gets no reply of AUTH's, and nobody waits. */
EVERY_SERVER(no_reply_to_auth_is_a_503_or_504_in_time)
{
    static const struct {
        struct manner manner;
        int status;
    } rows[] = {
        {{.at = "AUTH",
          .says = "-WRONGPASS invalid username-password pair or user is disabled.\r\n",
          .then = GOES_ON},
         503},
        {{.at = "AUTH", .says = ":1\r\n", .then = GOES_ON}, 503},
        {{.at = "AUTH", .says = "*1\r\n$2\r\nOK\r\n", .then = GOES_ON}, 503},
        {{.at = "AUTH", .says = "rubbish\r\n", .then = GOES_ON}, 503},
        {{.at = "AUTH", .says = "+OK\r\n+more\r\n", .then = GOES_ON}, 503},
        {{.at = "AUTH", .says = "", .then = CLOSES}, 503},
        {{.at = "AUTH", .says = "+O", .then = CLOSES}, 503},
        {{.at = "AUTH", .says = "", .then = FALLS_SILENT}, 504},
    };
    start_stand_in();
    setenv("REDISCLI_AUTH", "secret", 1);
    /* one, so that whoever connects anew is the one that is asked */
    start_server("--timeout", "2", "--workers", "1");
    for (size_t i = 0; i < 2 * COUNT(rows); i++) {
        const char *call = i % 2 ? "RPUSH" : "INCR";
        stand_in((struct manner){.at = call, .then = CLOSES}); /* the next one connects anew */
        ask_what_takes(call);
        stand_in(rows[i / 2].manner);
        int64_t start = now_ms();
        const struct answer *answer = ask_what_takes(call);
        check(answer->status == rows[i / 2].status, "%s: %d: %s", rows[i / 2].manner.says,
              answer->status, answer->body);
        check_took(start, 0, COMMAND_MS + patience(500));
        check_all_is_well(rows[i / 2].manner.says);
    }
    check(stand_in_heard("AUTH") >= 2 * (int)COUNT(rows), "not said on every connection");
}

/* The end of the connection comes together with the reply, or while nobody asks. */
EVERY_SERVER(a_reply_is_good_though_the_connection_ends_behind_it)
{
    start_stand_in();
    start_server();
    struct client *c = dial();
    for (int i = 0; i < 5; i++) {
        stand_in((struct manner){.at = "LRANGE", .then = CLOSES});
        say(c, VIEW);
        check(hear(c)->status == 200, "%d: the page was whole", i);
    }
    for (int i = 0; i < 3; i++) {
        stand_in((struct manner){.at = "RPUSH", .then = CLOSES}); /* waits until it has closed */
        check(post(FORM)->status == 303, "%d: the post was stored", i);
    }
    check(stand_in_heard("RPUSH") == 3, "sent again");
    hang_up(c);
    check_all_is_well("all that");
}

/* Nobody may take it for the reply to what is asked next. */
EVERY_SERVER(what_redis_says_unasked_is_nobodys_reply)
{
    static const char *const words[] = {":4711\r\n", "-LOADING\r\n", "+OK\r\n+OK\r\n", "$5\r\nhel",
                                        "rubbish\r\n"};
    start_stand_in();
    start_server();
    struct client *c = dial();
    for (size_t i = 0; i < COUNT(words); i++) {
        say(c, VIEW);
        check(hear(c)->status == 200, "status %d", c->answer.status);
        stand_in_says_unasked(words[i]);
        say(c, VIEW_2);
        hear(c);
        check(c->answer.status == 200 && body_has(&c->answer, ranges[1]) &&
                  !body_has(&c->answer, "4,711"),
              "%s: %d: %s", words[i], c->answer.status, c->answer.body);
    }
    hang_up(c);
    check_all_is_well("all that");
}

/* More than was asked, at each of the calls. */
EVERY_SERVER(what_stands_behind_a_reply_is_nobodys_reply)
{
    static const char *const replies[] = {":1\r\n:4711\r\n", "$1\r\n1\r\n$4\r\n4711\r\n",
                                          "*0\r\n:4711\r\n", ":1\r\n:4711\r\n"};
    start_stand_in();
    start_server();
    for (size_t i = 0; i < 3 * COUNT(calls); i++) {
        const char *call = calls[i % COUNT(calls)];
        stand_in((struct manner){.at = call, .says = replies[i % COUNT(calls)]});
        for (int turn = 0; turn < 2; turn++) {
            const struct answer *answer = ask_what_takes(call);
            check(answer->status == (strcmp(call, "RPUSH") == 0 ? 303 : 200) &&
                      !body_has(answer, "4,711"),
                  "%s: %d: %s", call, answer->status, answer->body);
        }
        check_all_is_well(call);
    }
}

/* Two clients with two pages: Redis freezes as one of them is at its first, second or third call,
 * and says what it had to say when nobody waits for it any more. */
EVERY_SERVER(a_late_reply_never_reaches_another_request)
{
    start_stand_in();
    start_server("--timeout", "2.5");
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

/* Many more than there are connections in the pool. When Redis goes on it closes the connection on
 * which it was asked first, and answers on all others. --timeout 30 gives a command six seconds. */
ONLY_SERVER(threading, a_dead_connection_to_redis_fails_no_more_than_its_own_request)
{
    enum { CLIENTS = 200 };
    struct client *clients[CLIENTS];
    int failed = 0;
    start_stand_in();
    start_server("--timeout", "30");
    stand_in((struct manner){.at = "INCR", .then = FREEZES});
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = dial();
        say(clients[i], "GET /guestbook HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    }
    for (int i = 0; i < CLIENTS; i++)
        wait_until(is_read(clients[i]), SOON_MS, "not read");
    stand_in((struct manner){.at = "INCR", .says = "", .then = CLOSES, .once = true});
    for (int i = 0; i < CLIENTS; i++) {
        int status = hear(clients[i])->status;
        check(status == 200 || status == 503, "status %d", status);
        failed += status == 503;
        hang_up(clients[i]);
    }
    check(failed == 1, "%d were told 503", failed);
    check_all_is_well("a dead connection");
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
    start_server("--redis", where, "--timeout", "2");
    for (int i = 0; i < 3; i++) {
        int64_t start = now_ms();
        int status = i < 2 ? get("/guestbook")->status : post(FORM)->status;
        check_took(start, CONNECT_MS - 20, CONNECT_MS + patience(500));
        check(status == 503, "status %d", status);
        check_file(get("/"), "public/index.html");
    }
    for (size_t i = 0; i < COUNT(waits); i++)
        close(waits[i]);
    close(listener);
}
