/* The guestbook, as a visitor sees it and as Redis does. */
#include "tests/harness/harness.h"

static void check_page(const struct answer *page, const char *text)
{
    const char *type = field(page, "Content-Type");
    check(page->status == 200, "status %d: %s", page->status, page->body);
    check(type && strcmp(type, "text/html; charset=utf-8") == 0, "type %s", type);
    check(body_has(page, text), "no \"%s\" in %s", text, page->body);
}

EVERY_SERVER(a_view_of_the_guestbook_counts_one_visitor)
{
    start_redis();
    start_server();
    check_page(get("/guestbook"), "You are visitor number 1.");
    check_page(get("/guestbook"), "You are visitor number 2.");
    check_page(get("/guestbook?page=2&page=x"), "You are visitor number 3.");
    check(redis_number("GET guestbook:visitors") == 3, "Redis has counted otherwise");
}

EVERY_SERVER(the_count_has_thousands_separators)
{
    start_redis();
    start_server();
    redis("SET guestbook:visitors 998");
    check_page(get("/guestbook"), "visitor number 999.");
    check_page(get("/guestbook"), "visitor number 1,000.");
    redis("SET guestbook:visitors 1234566");
    check_page(get("/guestbook"), "visitor number 1,234,567.");
    redis("SET guestbook:visitors 9223372036854775806");
    check_page(get("/guestbook"), "visitor number 9,223,372,036,854,775,807.");
    redis("SET guestbook:visitors -1001");
    check_page(get("/guestbook"), "visitor number -1,000.");
    check_page(get("/guestbook"), "visitor number -999.");
}

EVERY_SERVER(a_page_takes_three_commands_one_after_the_other)
{
    static const char *const expected[] = {
        "\"INCR\" \"guestbook:visitors\"",
        "\"GET\" \"guestbook:visitors\"",
        "\"LRANGE\" \"guestbook:entries\"",
        "\"PING\"",
    };
    start_redis();
    start_server();
    redisContext *monitor = open_redis();
    check(redisCommand(monitor, "MONITOR"), "%s", monitor->errstr);
    get("/guestbook");
    redis("PING"); /* so that a fourth would show */
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        redisReply *seen = NULL;
        check(redisGetReply(monitor, (void **)&seen) == REDIS_OK, "%s", monitor->errstr);
        check(strstr(seen->str, expected[i]), "%s instead of %s", seen->str, expected[i]);
        freeReplyObject(seen);
    }
    redisFree(monitor);
}

EVERY_SERVER(a_post_is_stored_and_sends_the_visitor_back)
{
    start_redis();
    start_server();
    const struct answer *answer = post("guest-name=Ada&guest-remarks=Hello%2C+all%0D%0Aof+you");
    check(answer->status == 303, "status %d: %s", answer->status, answer->body);
    const char *location = field(answer, "Location");
    check(location && strcmp(location, "/guestbook") == 0, "Location: %s", location);

    redisReply *entry = redis("LINDEX guestbook:entries 0");
    int n = 0;
    sscanf(entry->str, "%*4d-%*2d-%*2dT%*2d:%*2d:%*2dZ%n", &n);
    check(n == 20 && strcmp(entry->str + n, "\nAda\nHello, all\nof you") == 0, "%s", entry->str);
    check(redis_number("LLEN guestbook:entries") == 1, "stored more than once");
}

EVERY_SERVER(an_entrys_time_is_utc_wherever_the_server_stands)
{
    struct tm utc = {0};
    setenv("TZ", "FAR-9", 1); /* nine hours east */
    start_redis();
    start_server();
    time_t before = time(NULL);
    check(post("guest-name=Ada&guest-remarks=hello")->status == 303, "not stored");
    redisReply *entry = redis("LINDEX guestbook:entries 0");
    strptime(entry->str, "%Y-%m-%dT%H:%M:%SZ", &utc);
    check(timegm(&utc) >= before && timegm(&utc) <= time(NULL), "%s", entry->str);
}

EVERY_SERVER(an_invalid_post_keeps_what_was_typed_and_stores_nothing)
{
    static const struct {
        const char *form, *kept;
    } cases[] = {
        {"guest-name=&guest-remarks=all+I+typed", "all I typed</textarea>"},
        {"guest-name=Ada+Byron&guest-remarks=+%0A", "value=\"Ada Byron\""},
        {"guest-name=Ada+Byron&guest-remarks=a%00b", "value=\"Ada Byron\""},
        {"guest-name=%22%3E%3Cb%3E&guest-remarks=", "value=\"&quot;&gt;&lt;b&gt;\""},
        {"guest-name=A%0AB&guest-remarks=all+I+typed", "all I typed</textarea>"},
        {"guest-name=A%00B&guest-remarks=all+I+typed", "all I typed</textarea>"},
        {"guest-name=1234567890123456789012345678901234567890123456789012345678901234x"
         "&guest-remarks=all+I+typed",
         "all I typed</textarea>"},
        {"guest-name=Ada", "<form"},
        {"", "<form"},
    };
    start_redis();
    start_server();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct answer *answer = post(cases[i].form);
        check(answer->status == 400, "%s: status %d", cases[i].form, answer->status);
        check(body_has(answer, cases[i].kept), "%s: %s", cases[i].form, answer->body);
        check(body_has(answer, "role=\"alert\""), "does not say why: %s", cases[i].form);
        check(!body_has(answer, "You are visitor"), "nobody was counted: %s", answer->body);
    }
    check(redis_number("LLEN guestbook:entries") == 0, "something was stored");
}

/* Rule 23: what a browser says of the page that has its visitor post. */
EVERY_SERVER(a_post_from_a_page_of_another_site_is_refused)
{
    static const struct {
        const char *host, *fields;
        int status;
    } rows[] = {
        {"test", "", 303},
        {"test:8007", "Origin: http://test:8007\r\nSec-Fetch-Site: same-origin\r\n", 303},
        {"TEST", "Origin: http://test:80\r\n", 303},
        {"test:", "Origin: http://test\r\n", 303},
        {"test:80", "Origin: HTTP://Test\r\n", 303},
        {"127.0.0.1:8007", "Origin: http://127.0.0.1:8007\r\n", 303},
        {"[::1]", "Origin: http://[::1]\r\n", 303},
        {"[::1]:8007", "Origin: http://[::1]:8007\r\n", 303},
        {"rebound.example:8000", /* which may lead here: rule 23 says that nobody checks it */
         "Origin: http://rebound.example:8000\r\nSec-Fetch-Site: same-origin\r\n", 303},
        {"test", "Sec-Fetch-Site: none\r\n", 303},
        {"test", "Sec-Fetch-Site: same-site\r\n", 303},
        {"test", "Sec-Fetch-Site: cross-site\r\n", 403},
        {"test", "Origin: http://test\r\nSec-Fetch-Site: cross-site\r\n", 403},
        {"test", "Origin: null\r\n", 403},
        {"test", "Origin:\r\n", 403},
        {"test", "Origin: test\r\n", 403},
        {"test", "Origin: http://\r\n", 403},
        {"test", "Origin: http://evil.example\r\nSec-Fetch-Site: same-origin\r\n", 403},
        {"test", "Origin: http://test.example\r\n", 403},
        {"test", "Origin: http://example.test\r\n", 403},
        {"test", "Origin: http://test/\r\n", 403},
        {"test", "Origin: http://test@example\r\n", 403},
        {"test", "Origin: http://test:8007\r\n", 403},
        {"test:80", "Origin: http://test:8007\r\n", 403},
        {"test:8007", "Origin: http://test\r\n", 403},
        {"test:8007", "Origin: http://test:80\r\n", 403},
        {"test:8007", "Origin: http://test:8007.example\r\n", 403},
        {"[::1]", "Origin: http://[::2]\r\n", 403},
        {"test", "Origin: https://test\r\n", 403},
        {"test:443", "Origin: https://test\r\n", 403},
    };
    const char *form = "guest-name=Eve&guest-remarks=not+hers";
    int stored = 0;
    start_redis();
    start_server();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char request[512];
        snprintf(request, sizeof(request),
                 "POST /guestbook HTTP/1.1\r\nHost: %s\r\n%sConnection: close\r\n"
                 "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %zu\r\n\r\n%s",
                 rows[i].host, rows[i].fields, strlen(form), form);
        const struct answer *answer = ask(request);
        check(answer->status == rows[i].status, "status %d: %s", answer->status, answer->body);
        stored += rows[i].status == 303;
        check(redis_number("LLEN guestbook:entries") == stored, "not %d entries", stored);
    }
    const struct answer *page = ask("GET /guestbook HTTP/1.1\r\nHost: test\r\n"
                                    "Sec-Fetch-Site: cross-site\r\nConnection: close\r\n\r\n");
    check(page->status == 200, "no link may lead here: %d", page->status);
}

EVERY_SERVER(head_has_the_fields_of_get_and_no_body)
{
    static const char *const targets[] = {"/guestbook", "/", "/tux.png", "/not-there"};
    static const char *const names[] = {"Content-Type", "Content-Length", "Connection",
                                        "Content-Security-Policy", "Cache-Control"};
    start_redis();
    start_server();
    redis("SET guestbook:visitors 100"); /* and three digits it stays */
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        char request[128], *values[sizeof(names) / sizeof(names[0])];
        const struct answer *answer = get(targets[i]);
        int status = answer->status;
        for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
            values[n] = field(answer, names[n]) ? strdup(field(answer, names[n])) : NULL;
        snprintf(request, sizeof(request),
                 "HEAD %s HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n", targets[i]);
        answer = ask(request); /* which looks for the connection's end behind the head */
        check(answer->status == status, "%s: status %d", targets[i], answer->status);
        for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
            const char *value = field(answer, names[n]);
            check(!value == !values[n] && (!value || strcmp(value, values[n]) == 0), "%s: %s: %s",
                  targets[i], names[n], value ? value : "none");
            free(values[n]);
        }
    }
    check(redis_number("GET guestbook:visitors") == 102, "HEAD counts like GET");
}

EVERY_SERVER(forty_five_entries_make_three_pages)
{
    static const struct {
        const char *target, *first, *last, *newer, *older;
        int entries;
    } pages[] = {
        {"/guestbook", "entry 45.", "entry 26.", NULL, "?page=2\"", 20},
        {"/guestbook?page=1", "entry 45.", "entry 26.", NULL, "?page=2\"", 20},
        {"/guestbook?page=2", "entry 25.", "entry 6.", "?page=1\"", "?page=3\"", 20},
        {"/guestbook?page=3", "entry 5.", "entry 1.", "?page=2\"", NULL, 5},
        {"/guestbook?page=4", "Nobody", "Nobody", "?page=3\"", NULL, 0},
    };
    start_redis();
    start_server();
    for (int i = 1; i <= 45; i++) {
        char entry[64];
        snprintf(entry, sizeof(entry), "2026-11-21T02:45:37Z\nAda\nentry %d.", i);
        redis("RPUSH guestbook:entries %s", entry);
    }
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        const struct answer *page = get(pages[i].target);
        int entries = count_parts(page->body, "<article>");
        check_page(page, pages[i].first);
        check_page(page, pages[i].last);
        check(entries == pages[i].entries, "%s: %d entries", pages[i].target, entries);
        check(strstr(page->body, pages[i].first) <= strstr(page->body, pages[i].last), "%s",
              pages[i].target);
        check(body_has(page, "rel=\"prev\"") == (pages[i].newer != NULL) &&
                  (!pages[i].newer || body_has(page, pages[i].newer)),
              "%s: %s", pages[i].target, page->body);
        check(body_has(page, "rel=\"next\"") == (pages[i].older != NULL) &&
                  (!pages[i].older || body_has(page, pages[i].older)),
              "%s: %s", pages[i].target, page->body);
    }
    redis("LTRIM guestbook:entries 5 -1"); /* forty: the second page is full, and the last */
    check(!body_has(get("/guestbook?page=2"), "rel=\"next\""), "there is no third page");
}

static void say_post(struct client *c, int number)
{
    char request[512], form[64];
    snprintf(form, sizeof(form), "guest-name=Ada&guest-remarks=post+%02d", number);
    snprintf(request, sizeof(request),
             "POST /guestbook HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Type: "
             "application/x-www-form-urlencoded\r\nContent-Length: %zu\r\n\r\n%s",
             strlen(form), form);
    say(c, request);
}

enum { KEPT = 10000, AT_MOST = 10100 }; /* entries, as guestbook.h has it */

static const char fill[] =
    "for i = 1, ARGV[1] do "
    "  redis.call('RPUSH', KEYS[1], '2026-11-21T02:45:37Z\\nAda\\nentry ' .. i) "
    "end";

static long long count_trims(void)
{
    redisReply *stats = redis("INFO commandstats");
    const char *trims = strstr(stats->str, "cmdstat_ltrim:calls=");
    return trims ? strtoll(trims + strlen("cmdstat_ltrim:calls="), NULL, 10) : 0;
}

static void check_entry(int index, const char *remarks)
{
    redisReply *entry = redis("LINDEX guestbook:entries %d", index);
    check(entry->type == REDIS_REPLY_STRING, "there is no entry %d", index);
    const char *last_line = strrchr(entry->str, '\n');
    check(last_line && strcmp(last_line + 1, remarks) == 0, "entry %d is \"%s\"", index,
          entry->str);
}

EVERY_SERVER(the_newest_ten_thousand_entries_are_kept)
{
    start_redis();
    start_server();
    redis("EVAL %s 1 guestbook:entries %d", fill, AT_MOST - 1);
    check(post("guest-name=Bob&guest-remarks=the+last+that+fits")->status == 303, "not stored");
    check(redis_number("LLEN guestbook:entries") == AT_MOST, "%lld entries",
          redis_number("LLEN guestbook:entries"));
    check(count_trims() == 0, "a post is one command, as long as there is room");
    check(post("guest-name=Bob&guest-remarks=one+more")->status == 303, "not stored");
    check(redis_number("LLEN guestbook:entries") == KEPT, "%lld entries",
          redis_number("LLEN guestbook:entries"));
    check_entry(-1, "one more");
    check_entry(-2, "the last that fits");
    check_entry(-3, "entry 10099");
    check_entry(0, "entry 102"); /* 10,101 there were: the first 101 are gone */
    check(post("guest-name=Bob&guest-remarks=and+another")->status == 303, "not stored");
    check(redis_number("LLEN guestbook:entries") == KEPT + 1 && count_trims() == 1, "%lld trims",
          count_trims());
}

/* Several of them find the list too long at once, and each trims it. */
EVERY_SERVER(of_twenty_who_post_at_once_into_a_full_list_none_is_lost)
{
    enum { CLIENTS = 20 };
    struct client *clients[CLIENTS];
    start_redis();
    start_server();
    redis("EVAL %s 1 guestbook:entries %d", fill, AT_MOST - CLIENTS / 2);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = dial();
    for (int i = 0; i < CLIENTS; i++)
        say_post(clients[i], i);
    for (int i = 0; i < CLIENTS; i++) {
        check(hear(clients[i])->status == 303, "visitor %d: status %d", i,
              clients[i]->answer.status);
        hang_up(clients[i]);
    }
    long long length = redis_number("LLEN guestbook:entries");
    check(length >= KEPT && length <= AT_MOST, "%lld entries", length);
    redisReply *newest = redis("LRANGE guestbook:entries %d -1", -CLIENTS);
    for (int i = 0; i < CLIENTS; i++) {
        char remarks[32];
        int found = 0;
        snprintf(remarks, sizeof(remarks), "\npost %02d", i);
        for (size_t at = 0; at < newest->elements; at++)
            found += strstr(newest->element[at]->str, remarks) != NULL;
        check(found == 1, "visitor %d is there %d times", i, found);
    }
}

/* The longest page there is: every character of theirs takes five. */
EVERY_SERVER(a_page_of_twenty_entries_as_long_as_may_be_arrives_whole)
{
    enum { ENTRIES = 20, NAME = 64, REMARKS = 1000 };
    char form[4096] = "guest-name=";
    size_t len = strlen(form);
    start_redis();
    start_server(POOL_OF("1")); /* whose memory serves page after page */
    for (int i = 0; i < NAME; i++)
        len += (size_t)snprintf(form + len, sizeof(form) - len, "%%26");
    len += (size_t)snprintf(form + len, sizeof(form) - len, "&guest-remarks=");
    for (int i = 0; i < REMARKS; i++)
        len += (size_t)snprintf(form + len, sizeof(form) - len, "%%26");
    for (int i = 0; i < ENTRIES; i++)
        check(post(form)->status == 303, "entry %d is not stored", i);
    for (int i = 0; i < 5; i++) {
        const struct answer *page = get("/guestbook");
        int count = count_parts(page->body, "&amp;");
        check(page->status == 200 && count >= ENTRIES * (NAME + REMARKS), "%d: %d characters",
              page->status, count);
    }
}

EVERY_SERVER(every_page_names_the_server_that_made_it)
{
    char text[64];
    start_redis();
    start_server();
    snprintf(text, sizeof(text), "The %s server let you in.", server_says);
    check(body_has(get("/guestbook"), text), "no \"%s\"", text);
    snprintf(text, sizeof(text), "So says the %s server.", server_says);
    check(body_has(get("/not-there"), text), "no \"%s\"", text);
}
