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
    redis("SET guestbook:visitors 999");
    check_page(get("/guestbook"), "visitor number 1,000.");
    redis("SET guestbook:visitors 9223372036854775806");
    check_page(get("/guestbook"), "visitor number 9,223,372,036,854,775,807.");
    check(get("/guestbook")->status == 503, "there is no number for another visitor");
    check(post("guest-name=Ada&guest-remarks=hello")->status == 303, "an entry needs none");
}

/* With its time in UTC, wherever the server stands. */
EVERY_SERVER(a_post_is_stored_and_sends_the_visitor_back)
{
    static const struct {
        const char *form, *stored;
    } rows[] = {
        {"guest-name=Ada&guest-remarks=Hello%2C+all%0D%0Aof+you", "\nAda\nHello, all\nof you"},
        {"a=b&&guest-%72emarks=+hi+&c&guest%2Dname=+Ada+&=&d=%41&", "\n Ada \n hi "},
        {"guest-name=A=\xc3\x84&guest-remarks==", "\nA=\xc3\x84\n="},
    };
    struct tm utc = {0};
    setenv("TZ", "FAR-9", 1); /* nine hours east */
    start_redis();
    start_server();
    time_t before = time(NULL);
    for (int i = 0; i < 3; i++) {
        const struct answer *answer = post(rows[i].form);
        check(answer->status == 303, "status %d: %s", answer->status, answer->body);
        const char *location = field(answer, "Location");
        check(location && strcmp(location, "/guestbook") == 0, "Location: %s", location);
        redisReply *entry = redis("LINDEX guestbook:entries -1");
        const char *behind = strptime(entry->str, "%Y-%m-%dT%H:%M:%SZ", &utc);
        check(behind && strcmp(behind, rows[i].stored) == 0, "%s", entry->str);
        check(timegm(&utc) >= before && timegm(&utc) <= time(NULL), "%s", entry->str);
        check(redis_number("LLEN guestbook:entries") == i + 1, "stored more than once");
    }
}

EVERY_SERVER(an_invalid_post_keeps_what_was_typed_and_stores_nothing)
{
    static const struct {
        const char *form, *kept;
    } cases[] = {
        {"guest-name=&guest-remarks=all+I+typed", "all I typed</textarea>"},
        {"guest-name=Ada+Byron&guest-remarks=+%0A", "value=\"Ada Byron\""},
        {"guest-name=%22%3E%3Cb%3E&guest-remarks=", "value=\"&quot;&gt;&lt;b&gt;\""},
        {"guest-name=A%0AB&guest-remarks=all+I+typed", "all I typed</textarea>"},
        {"guest-name=1234567890123456789012345678901234567890123456789012345678901234x"
         "&guest-remarks=all+I+typed",
         "all I typed</textarea>"},
        {"guest-name=&guest-remarks=%0D%0Athe+second+line", ">\n\nthe second line</textarea>"},
        {"guest-name=Z%FCrich&guest-remarks=all+I+typed", "all I typed</textarea>"},
        {"guest-name=Ada+Byron&guest-remarks=%1B%5B31mred", "value=\"Ada Byron\""},
        {"guest-name=Ada+Byron&guest-remarks=%E2%80%A9", "value=\"Ada Byron\""},
        {"guest-name=Ada&guest-remarks=all+I+typed&guest%2Dname=Eve", "all I typed</textarea>"},
        {"guest-remarks=all+I+typed&guest-name=A%4", "all I typed</textarea>"},
        {"guest-name=Ada+Byron&guest-remarks=hi&%zz=1", "value=\"Ada Byron\""},
        {"Guest-Name=Ada&guest-remarks=all+I+typed", "all I typed</textarea>"},
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
        check(!strpbrk(answer->body, "\033\374"), "what is no text is shown: %s", answer->body);
    }
    check(redis_number("LLEN guestbook:entries") == 0, "something was stored");
}

/* A quotation mark is six bytes of the page. The name ends in the middle of a character. */
EVERY_SERVER(a_form_that_is_far_too_long_comes_back_in_part_and_that_is_said)
{
    enum { LONG = 60000, MOST = 32 * 1024 };
    static const char head[] = "POST /guestbook HTTP/1.1\r\nHost: test\r\nConnection: close\r\n"
                               "Content-Type: application/x-www-form-urlencoded\r\n"
                               "Content-Length: 60029\r\n\r\n";
    static char request[sizeof(head) + LONG + 100];
    start_server();
    for (int of_name = 0; of_name < 2; of_name++) {
        char *end = stpcpy(request, head);
        end = stpcpy(end,
                     of_name ? "guest-remarks=%2&guest-name=x" : "guest-name=%2&guest-remarks=x");
        for (int i = 0; i < LONG; i += 2)
            end = stpcpy(end, of_name ? "\xc3\xa9" : "\"\"");
        const struct answer *answer = ask(request);
        check(answer->status == 400 && answer->body_len < MOST, "%d, %zu bytes", answer->status,
              answer->body_len);
        check(body_has(answer, "only the beginning"), "%s", answer->body);
        check(body_has(answer, of_name ? "\xc3\xa9\"" : "&quot;</textarea>"), "%s", answer->body);
    }
}

static const struct answer *post_as(const char *name, const char *remarks)
{
    const char *const texts[] = {name, "&guest-remarks=", remarks};
    char form[4096] = "guest-name=", *end = form + strlen(form);
    for (int i = 0; i < 3; i++)
        for (const char *at = texts[i]; *at; at++)
            end += sprintf(end, i == 1 ? "%c" : "%%%02X", (unsigned char)*at);
    return post(form);
}

static int count_any(const struct answer *a, const char *characters)
{
    int count = 0;
    for (const char *at = a->body; (at = strpbrk(at, characters)); at++)
        count++;
    return count;
}

/* The page with an entry, and the one that gives a name or remarks back, are made of as many tags
 * as with a harmless text, and that of a name in quotation marks, of as many of these. A text that
 * needs no escape is there as it is. How one is written is the template's business
 * (unit/template.c). */
EVERY_SERVER(injections_come_back_as_text_and_nothing_else)
{
    static const char *const texts[] = {
        "harmless",
        "</bdi></article></textarea>-->]]><script>alert(1)</script>",
        "\" onfocus=alert(1) autofocus x=\"",
        "'><svg/onload=alert(1)>",
        "<!-- <![CDATA[ <b </ <<b>>",
        "&lt;b&gt; &#60;b&#62; &#x3c",
        "{{/entries}}{{{name}}} %s%n %3Cb%3E",
        "\xd7\xa2\xd7\x91 \xe2\x80\xae\xe2\x81\xa6 never closed \xef\xbb\xbf",
        "x\n2026-11-21T02:45:37Z\nEve\nI was never here",
        "x\r\nRPUSH guestbook:entries forged\r\n<b>",
    };
    int tags[3] = {0};
    start_redis();
    start_server();
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        bool is_name = !strchr(texts[i], '\n');
        redis("DEL guestbook:entries");
        check(post_as(is_name ? texts[i] : "Ada", texts[i])->status == 303, "%s", texts[i]);
        check(redis_number("LLEN guestbook:entries") == 1, "not one entry");
        for (int j = 0; j < (is_name ? 3 : 2); j++) {
            const struct answer *page = j == 0   ? get("/guestbook")
                                        : j == 1 ? post_as("", texts[i])
                                                 : post_as(texts[i], "");
            int count = count_any(page, j == 2 ? "<>\"" : "<>");
            tags[j] = i == 0 ? count : tags[j];
            check(page->status == (j ? 400 : 200) && count == tags[j], "%s: %s", texts[i],
                  page->body);
            check(strpbrk(texts[i], "<>&\"'\r") || body_has(page, texts[i]), "%s", page->body);
        }
    }
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
        {"test:80", "Origin: HTTP://Test\r\n", 303},
        {"[::1]:8007", "Origin: http://[::1]:8007\r\n", 303},
        {"rebound.example:8000", /* which may lead here: rule 23 says that nobody checks it */
         "Origin: http://rebound.example:8000\r\nSec-Fetch-Site: same-origin\r\n", 303},
        {"test", "Sec-Fetch-Site: cross-site\r\n", 403},
        {"test", "Origin: http://test\r\nSec-Fetch-Site: cross-site\r\n", 403},
        {"test", "Origin: null\r\n", 403},
        {"test", "Origin: http://evil.example\r\nSec-Fetch-Site: same-origin\r\n", 403},
        {"test", "Origin: http://test.example\r\n", 403},
        {"test", "Origin: http://test/\r\n", 403},
        {"test", "Origin: http://test:8007\r\n", 403},
        {"test:8007", "Origin: http://test\r\n", 403},
        {"[::1]", "Origin: http://[::2]\r\n", 403},
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
    start_redis();
    start_server();
    redis("SET guestbook:visitors 100"); /* and three digits it stays */
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        char request[128];
        snprintf(request, sizeof(request),
                 "GET %s HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n", targets[i]);
        const struct answer *full = hear(dial_and_say(request));
        snprintf(request, sizeof(request),
                 "HEAD %s HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n", targets[i]);
        const struct answer *answer = ask(request); /* behind which the connection has to end */
        check(answer->status == full->status, "%s: status %d", targets[i], answer->status);
        for (const char *at = full->fields; *at; at += strlen(at) + 1) {
            char name[64];
            snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, ":"), at);
            const char *value = field(answer, name);
            check(value && (strcmp(name, "Date") == 0 || strcmp(value, field(full, name)) == 0),
                  "%s: %s, and not %s", targets[i], value ? value : "none", at);
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
        {"/guestbook?&xpage=8&page=0002&page=1", "entry 25.", "entry 6.", "?page=1\"", "?page=3\"",
         20},
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
        int links = (pages[i].newer != NULL) + (pages[i].older != NULL);
        check(count_parts(page->body, "rel=\"prev\"") + count_parts(page->body, "rel=\"next\"") ==
                      links &&
                  (!pages[i].newer || body_has(page, pages[i].newer)) &&
                  (!pages[i].older || body_has(page, pages[i].older)),
              "%s: %s", pages[i].target, page->body);
    }
    check_page(get("/guestbook"), "<time datetime=\"2026-11-21T02:45:37Z\">2026-11-21 02:45 UTC<");
    redis("LTRIM guestbook:entries 5 -1"); /* forty: the second page is full, and the last */
    check(!body_has(get("/guestbook?page=2"), "rel=\"next\""), "there is no third page");
}

/* All of it is shown as remarks, on the same page as what a visitor has written. */
EVERY_SERVER(an_entry_of_another_program_is_shown_however_long_it_is)
{
    enum { LONG = 20000 };
    static char entry[LONG + 1];
    static const char *const entries[] = {
        entry,
        "",
        "a\nb",
        "2026-11-21T02:45:37Z",
        "2026-11-21T02:45:37Z\n",
        "2026-11-21T02:45:37Z\nAda",
        "2026-11-21T02:45:37Z\n\nhello",
        "2026-11-21 02:45:37Z\nAda\nhello",
        "12345678901234567890\nAda\nhello",
    };
    memset(entry, 'x', LONG);
    start_redis();
    start_server();
    check(post("guest-name=Bob&guest-remarks=before+that")->status == 303, "not stored");
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        redis("RPUSH guestbook:entries %s", entries[i]);
        const struct answer *page = get("/guestbook");
        check_page(page, entries[i]);
        check_page(page, "before that");
        check(count_parts(page->body, "<h3>") == 1, "signed: %s", page->body);
    }
    redis("RPUSH guestbook:entries %s", "\xff");
    check_page(get("/guestbook"), "Another program has written this");
}

/* A post is one command, as long as there is room for a hundred more. */
EVERY_SERVER(the_newest_ten_thousand_entries_are_kept)
{
    enum { KEPT = 10000, AT_MOST = 10100 }; /* entries, as guestbook.h has it */
    static const int there[] = {AT_MOST, KEPT, KEPT + 1};
    start_redis();
    start_server();
    redis("EVAL %s 0", "for i = 1, 10099 do redis.call('RPUSH', 'guestbook:entries', i) end");
    for (int i = 0; i < 3; i++) {
        check(post("guest-name=Bob&guest-remarks=one+more")->status == 303, "not stored");
        check(redis_number("LLEN guestbook:entries") == there[i], "%lld entries",
              redis_number("LLEN guestbook:entries"));
    }
    check(redis_number("LINDEX guestbook:entries 0") == 102, "not the oldest are gone");
    check(redis_number("LINDEX guestbook:entries -4") == 10099, "not one entry a post");
}

/* And though its reader is slow: the server's kernel has no room for the whole of it. */
EVERY_SERVER(a_page_of_twenty_entries_as_long_as_may_be_arrives_whole)
{
    start_redis();
    fill_guestbook_with_quotes();
    start_server(POOL_OF("1")); /* whose memory serves page after page */
    for (int i = 0; i < 5; i++) {
        struct client *c = dial_with_room(4096);
        say(c, "GET /guestbook HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        poll(NULL, 0, 300); /* that is how slow it is: longer than a tick */
        const struct answer *page = hear(c);
        int count = count_parts(page->body, "&quot;");
        check(page->status == 200 && count >= 20 * 1000, "%d: %d characters", page->status, count);
        hang_up(c);
    }
}
