/* public/: what is served, as it is, and that nothing else is. */
#include "tests/harness/harness.h"

static void check_type(const struct answer *answer, const char *expected)
{
    const char *type = field(answer, "Content-Type");
    check(type && strcmp(type, expected) == 0, "%s", type ? type : "no type");
}

EVERY_SERVER(a_file_says_what_it_is)
{
    start_server();
    check_type(get("/"), "text/html; charset=utf-8");
    check_type(get("/style.css"), "text/css; charset=utf-8");
    check_type(get("/favicon.svg"), "image/svg+xml");
    check_type(get("/server.js"), "text/javascript; charset=utf-8");
    check_type(get("/tux.png"), "image/png");
}

/* GET with one more field, on a connection that is kept. */
static const struct answer *get_with(struct client *c, const char *path, const char *name,
                                     const char *value)
{
    char request[256];
    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: test\r\n%s: %s\r\n\r\n", path,
             name, value);
    say(c, request);
    return hear(c);
}

/* Gives a file a time of our choice, as tar(1) does. */
static void set_time(const char *name, time_t seconds, long nanoseconds)
{
    const struct timespec when = {.tv_sec = seconds, .tv_nsec = nanoseconds};
    check(utimensat(AT_FDCWD, place(name), (struct timespec[]){when, when}, 0) == 0, "%s",
          strerror(errno));
}

/* Writes a file in place. */
static void write_news(const char *three_bytes, time_t seconds)
{
    write_file("root/public/news.txt", three_bytes, 3);
    set_time("root/public/news.txt", seconds, 0);
}

/* A small file is kept in memory for a second, by each worker of chapter 3 for itself, and so is
 * one that is there no more. On a machine that stands still in between, it is tried once more. */
EVERY_SERVER(a_file_that_has_changed_is_sent_as_it_is_now)
{
    const char *root = make_root();
    char tag[128];
    int64_t start;
    bool kept;
    start_server("--root", root);
    struct client *c = dial();
    do {
        write_news("old", 784111777);
        wait_until(body_has(get_with(c, "/news.txt", "X", "y"), "old"), SOON_MS, "not old");
        snprintf(tag, sizeof(tag), "%s", field(&c->answer, "ETag"));
        start = now_ms();
        write_news("new", 784111777); /* as long, and of the same time */
        kept = get_with(c, "/news.txt", "If-None-Match", tag)->status == 304;
    } while (now_ms() - start > 500);
    check(kept || !server_is_ours(), "it is read each time");
    wait_until(get_with(c, "/news.txt", "If-None-Match", tag)->status == 200, SOON_MS,
               "it is as it was");
    check_file(&c->answer, place("root/public/news.txt"));
    check(unlink(place("root/public/news.txt")) == 0, "%s", strerror(errno));
    wait_until(get_with(c, "/news.txt", "X", "y")->status == 404, SOON_MS, "it is there");
    check_took(start, 0, patience(4000)); /* a second for each of the two */
}

#define PART_IF "Range: bytes=0-0\r\nIf-Range" /* the first byte, if the file is what is known */

/* RFC 9110, 13.1.5 and 8.8.2.2: a file may be written twice in a second, and its date does not say
 * which of the two the client has. */
EVERY_SERVER(a_part_by_a_date_needs_a_date_that_is_over)
{
    static const char large[20000]; /* bytes: it is not kept in memory */
    char now[64];
    const char *root = make_root();
    write_file("root/public/large.bin", large, sizeof(large));
    start_server("--root", root);
    struct client *c = dial();
    time_t second;
    do {
        second = time(NULL);
        set_time("root/public/large.bin", second, 0);
        strftime(now, sizeof(now), "%a, %d %b %Y %H:%M:%S GMT", gmtime(&second));
        get_with(c, "/large.bin", PART_IF, now);
    } while (time(NULL) != second);
    check(c->answer.status == 200, "%d in the same second", c->answer.status);
    wait_until(time(NULL) > second, 2000, "time stands still");
    check(get_with(c, "/large.bin", PART_IF, now)->status == 206, "%d later", c->answer.status);
}

/* -1: it is no date as it has to be sent. */
static time_t seconds_of(const char *text)
{
    struct tm date = {0};
    const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &date);
    return strlen(text) == 29 && end && !*end ? timegm(&date) : -1;
}

/* A date of HTTP has a year of four digits. File systems have other limits: this one may make
 * another time of some of these. Before 1970 there is no date, and none is in the future (RFC 9110,
 * 8.8.2.1): a clock that is wrong on another machine must not keep anybody from asking. */
EVERY_SERVER(a_file_of_any_time_has_whole_fields)
{
    static const time_t times[] = {-1, -62167219201, 0, 253402300800, 1000000000000000};
    enum { TIMES = sizeof(times) / sizeof(times[0]) };
    char path[64];
    const char *root = make_root();
    for (int i = 0; i < TIMES; i++) {
        snprintf(path, sizeof(path), "root/public/%d.txt", i);
        write_file(path, "news", 4);
        set_time(path, times[i], 999999999);
    }
    start_server("--root", root);
    for (int i = 0; i < TIMES; i++) {
        snprintf(path, sizeof(path), "/%d.txt", i);
        const struct answer *answer = get(path);
        const char *date = field(answer, "Last-Modified"), *tag = field(answer, "ETag");
        check(answer->status == 200 && tag && strlen(tag) > 2, "%s: status %d", path,
              answer->status);
        check(times[i] < 0 ? !date
                           : date && seconds_of(date) >= 0 &&
                                 seconds_of(date) <= seconds_of(field(answer, "Date")),
              "%s: %s", path, date);
    }
}

/* "//elsewhere/..." is an address of another host, to whoever is sent there. The query comes back
 * as it was sent. */
EVERY_SERVER(a_folder_without_its_slash_moves_nobody_to_another_host)
{
    static const struct {
        const char *target, *location;
    } rows[] = {
        {"///sub", "/sub/"},
        {"//elsewhere.example/..%2fsub", "/sub/"},
        {"http://test//elsewhere.example/../sub", "/sub/"},
        {"/sub%5b1%5d?a[]=1", "/sub%5B1%5D/?a%5B%5D=1"},
        {"/sub[1]?100%&%zz=%4&%41%e4?/:@", "/sub%5B1%5D/?100%25&%25zz=%254&%41%e4?/:@"},
        {"/sub[1]?", "/sub%5B1%5D/?"},
        {"/a%20b%25%3f%23%22%3c%3e%5c%5e%60%7b%7c%7d%c3%a4!$&'()*+,;=:@-_.~",
         "/a%20b%25%3F%23%22%3C%3E%5C%5E%60%7B%7C%7D%C3%A4!$&'()*+,;=:@-_.~/"},
    };
    const char *root = make_root();
    check(mkdir(place("root/public/sub"), 0755) == 0 &&
              mkdir(place("root/public/sub[1]"), 0755) == 0 &&
              mkdir(place("root/public/a b%?#\"<>\\^`{|}\xc3\xa4!$&'()*+,;=:@-_.~"), 0755) == 0,
          "%s", strerror(errno));
    start_server("--root", root);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct answer *answer = get(rows[i].target);
        const char *location = field(answer, "Location");
        check(answer->status == 301 && location && strcmp(location, rows[i].location) == 0,
              "%s: %d to %s", rows[i].target, answer->status, location ? location : "nowhere");
    }
}
