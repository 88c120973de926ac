/* public/: what is served, as it is, and that nothing else is. */
#include "tests/harness/harness.h"

static void check_type(const struct answer *answer, const char *expected)
{
    const char *type = field(answer, "Content-Type");
    check(type && strcmp(type, expected) == 0, "%s", type ? type : "no type");
    const char *sniff = field(answer, "X-Content-Type-Options"); /* rule 19 has its own case */
    check((sniff && strcmp(sniff, "nosniff") == 0) || !server_is_ours(), "%s",
          sniff ? sniff : "browsers may guess it");
}

EVERY_SERVER(the_home_page_is_index_html)
{
    start_server();
    check_file(get("/"), "public/index.html");
    check_file(get("/index.html?query"), "public/index.html");
    check_type(get("/"), "text/html; charset=utf-8");
}

EVERY_SERVER(a_file_says_what_it_is)
{
    start_server();
    check_type(get("/style.css"), "text/css; charset=utf-8");
    check_type(get("/favicon.svg"), "image/svg+xml");
    check_type(get("/server.js"), "text/javascript; charset=utf-8");
}

EVERY_SERVER(the_penguin_arrives_to_the_last_byte)
{
    start_server();
    const struct answer *penguin = get("/tux.png");
    check_file(penguin, "public/tux.png");
    check_type(penguin, "image/png");
    check_file(get("/tu%78.png"), "public/tux.png");
}

/* Of a file with holes, on a file system that can hold one so large. */
EVERY_SERVER(a_part_of_the_largest_file_names_its_whole_size)
{
    char root[] = "/dev/shm/zerohttpd-XXXXXX", make[200], unmake[100];
    if (!mkdtemp(root) || chmod(root, 0755) != 0)
        cr_skip_test("there is no /dev/shm");
    snprintf(make, sizeof(make),
             "cp -r public templates %s && truncate -s 9223372036854775807 %s/public/huge.bin",
             root, root);
    snprintf(unmake, sizeof(unmake), "rm -r %s", root);
    if (system(make) != 0) {
        check(system(unmake) == 0, "%s stays", root);
        cr_skip_test("no file may be so large here");
    }
    start_server("--root", root);
    const struct answer *part =
        ask("GET /huge.bin HTTP/1.1\r\nHost: test\r\nConnection: close\r\nRange: bytes=-9\r\n\r\n");
    check(system(unmake) == 0, "%s stays", root);
    const char *range = field(part, "Content-Range"), *tag = field(part, "ETag");
    check(range && strcmp(range, "bytes 9223372036854775798-9223372036854775806/"
                                 "9223372036854775807") == 0,
          "%s", range ? range : "no range");
    check(!tag || tag[strlen(tag) - 1] == '"', "half a tag: %s", tag);
}

EVERY_SERVER(a_mebibyte_and_an_empty_file_arrive_whole)
{
    enum { SIZE = 1024 * 1024 };
    const char *root = make_root();
    char *bytes = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 31 + i / 251);
    write_file("root/public/large.bin", bytes, SIZE);
    write_file("root/public/empty.txt", "", 0);
    free(bytes);
    start_server("--root", root);
    check_file(get("/large.bin"), place("root/public/large.bin"));
    check_type(get("/large.bin"), "application/octet-stream");
    check_file(get("/empty.txt"), place("root/public/empty.txt"));
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

EVERY_SERVER(a_browser_asks_each_time_whether_its_file_has_changed)
{
    start_server();
    struct client *c = dial();
    check_file(get_with(c, "/", "Accept", "*/*"), "public/index.html");
    for (int i = 0; i < 2; i++) { /* what a 200 says of the browser's copy, a 304 says again */
        const char *rule = field(&c->answer, "Cache-Control");
        check(rule && strcmp(rule, "no-cache") == 0, "%s", rule ? rule : "nothing");
        get_with(c, "/", "If-None-Match", "*");
    }
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

/* A small file may be kept in memory for a second, by each worker of chapter 3 for itself: so one
 * of them may know already what another one does not. */
EVERY_SERVER(a_file_that_has_changed_is_sent_as_it_is_now)
{
    const char *root = make_root();
    write_news("old", 784111777);
    start_server("--root", root);
    const char *tag = field(get("/news.txt"), "ETag");
    write_news("new", 784111777); /* as long, and of the same time */
    char request[256];
    snprintf(request, sizeof(request),
             "GET /news.txt HTTP/1.1\r\nHost: test\r\nConnection: close\r\n"
             "If-None-Match: %s\r\n\r\n",
             tag);
    const struct answer *a;
    wait_until((a = ask(request))->status == 200, 2000, "it is as it was");
    check_file(a, place("root/public/news.txt"));
}

/* RFC 9110, 8.8.2.1: a clock that is wrong on another machine must not keep anybody from asking. */
EVERY_SERVER(no_file_was_modified_in_the_future)
{
    const char *root = make_root();
    write_news("now", time(NULL) + 86400);
    start_server("--root", root);
    struct tm date = {0}, modified = {0};
    const struct answer *answer = get("/news.txt");
    strptime(field(answer, "Date"), "%a, %d %b %Y %H:%M:%S GMT", &date);
    strptime(field(answer, "Last-Modified"), "%a, %d %b %Y %H:%M:%S GMT", &modified);
    check(timegm(&modified) <= timegm(&date), "%s", field(answer, "Last-Modified"));
}

#define PART_IF "Range: bytes=0-0\r\nIf-Range" /* the first byte, if the file is what is known */

/* RFC 9110, 13.1.5 and 8.8.2.2: a file may be written twice in a second, and its date does not say
 * which of the two the client has. */
EVERY_SERVER(a_part_by_a_date_needs_a_date_that_is_over)
{
    static const char large[20000]; /* bytes: it is not kept in memory */
    char now[64];
    const char *root = make_root();
    write_news("old", 784111777);
    write_file("root/public/large.bin", large, sizeof(large));
    start_server("--root", root);
    struct client *c = dial();
    check(get_with(c, "/news.txt", PART_IF, "Sun, 06 Nov 1994 08:49:37 GMT")->status == 206, "%d",
          c->answer.status);
    check(get_with(c, "/news.txt", PART_IF, "Sun, 06 Nov 1994 08:49:36 GMT")->status == 200, "%d",
          c->answer.status);
    write_news("new", time(NULL) + 86400); /* Last-Modified is the time of the response */
    wait_until(memcmp(get_with(c, "/news.txt", PART_IF, "none")->body, "new", 3) == 0, 3000,
               "it is as it was");
    snprintf(now, sizeof(now), "%s", field(&c->answer, "Last-Modified"));
    check(get_with(c, "/news.txt", PART_IF, now)->status == 200, "%d for %s", c->answer.status,
          now);
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

static bool is_date(const char *text)
{
    struct tm date = {0};
    const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &date);
    return strlen(text) == 29 && end && !*end;
}

/* A date of HTTP has a year of four digits. File systems have other limits: this one may make
 * another time of some of these. Before 1970 there is no date. */
EVERY_SERVER(a_file_of_any_time_has_whole_fields)
{
    static const time_t times[] = {
        -1,           -2,           -2147483648,  -62135596801,     -62167219201,  0,
        253402300799, 253402300800, 999999999999, 1000000000000000, -377705116801,
    };
    enum { TIMES = sizeof(times) / sizeof(times[0]) };
    char path[64];
    const char *root = make_root();
    for (int i = 0; i < TIMES; i++) {
        snprintf(path, sizeof(path), "root/public/%d.txt", i);
        write_file(path, "news", 4);
        set_time(path, times[i], 999999999);
    }
    start_server("--root", root);
    struct client *c = dial();
    for (int i = 0; i < TIMES; i++) {
        snprintf(path, sizeof(path), "/%d.txt", i);
        const struct answer *answer = get_with(c, path, PART_IF, "yesterday");
        const char *date = field(answer, "Last-Modified"), *tag = field(answer, "ETag");
        check(answer->status == 200, "%s: status %d", path, answer->status);
        check(times[i] < 0 ? !date : date && is_date(date), "%s: %s", path, date);
        check(tag && strlen(tag) > 2 && tag[0] == '"' &&
                  strchr(tag + 1, '"') == strrchr(tag, '"') && tag[strlen(tag) - 1] == '"',
              "%s: %s", path, tag);
        if (times[i] > 0)
            continue;
        check(get_with(c, path, "If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT")->status ==
                  (times[i] < 0 ? 200 : 304),
              "%s: status %d", path, c->answer.status);
        check(get_with(c, path, "If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:00 GMT")->status ==
                  200,
              "%s: status %d", path, c->answer.status);
        check(get_with(c, path, PART_IF, "Wed, 31 Dec 1969 23:59:59 GMT")->status == 200,
              "%s: status %d", path, c->answer.status);
    }
}

EVERY_SERVER(what_is_not_there_gets_a_page_that_says_so)
{
    start_server();
    const struct answer *answer = get("/not-there.html");
    check(answer->status == 404, "status %d", answer->status);
    check_type(answer, "text/html; charset=utf-8");
    check(body_has(answer, "404") && body_has(answer, "There is nothing under this address"), "%s",
          answer->body);
    check(get("/index.html/")->status == 404, "a file is no folder");
}

/* A browser sends more than a URI reference may hold, which is what Location is (RFC 9110, 10.2.2).
 * And "//elsewhere/..." is an address of another host, to whoever is sent there. */
EVERY_SERVER(a_folder_without_its_slash_moves_nobody_to_another_host)
{
    static const struct {
        const char *target, *location;
    } rows[] = {
        {"//sub", "/sub/"},
        {"///sub", "/sub/"},
        {"//elsewhere.example/../sub", "/sub/"},
        {"//elsewhere.example/..%2fsub", "/sub/"},
        {"http://test//elsewhere.example/../sub", "/sub/"},
        {"/sub[1]", "/sub%5B1%5D/"},
        {"/sub%5b1%5d?a[]=1", "/sub%5B1%5D/?a%5B%5D=1"},
        {"/sub[1]?q=a|b{c}^`'", "/sub%5B1%5D/?q=a%7Cb%7Bc%7D%5E%60'"},
        {"/sub[1]?100%&%zz=%4&%41%e4?/:@", "/sub%5B1%5D/?100%25&%25zz=%254&%41%e4?/:@"},
        {"/sub[1]?", "/sub%5B1%5D/?"},
    };
    const char *root = make_root();
    check(mkdir(place("root/public/sub"), 0755) == 0 &&
              mkdir(place("root/public/sub[1]"), 0755) == 0,
          "%s", strerror(errno));
    start_server("--root", root);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct answer *answer = get(rows[i].target);
        const char *location = field(answer, "Location");
        check(answer->status == 301 && location && strcmp(location, rows[i].location) == 0,
              "%s: %d to %s", rows[i].target, answer->status, location ? location : "nowhere");
    }
}

/* By links, or by the end of a name that C sees. What else a path may try is in special_files.c. */
EVERY_SERVER(no_path_leads_out_of_public)
{
    static const char *const targets[] = {
        "/secret%00.html",     "/index.html%00.txt", "/link",
        "/folder-link/secret", "/absolute-link",     "/process/cwd/Makefile",
    };
    const char *root = make_root();
    check(mkdir(place("root/public/sub"), 0755) == 0 &&
              symlink("../secret", place("root/public/link")) == 0 &&
              symlink("..", place("root/public/folder-link")) == 0 &&
              symlink(place("root/secret"), place("root/public/absolute-link")) == 0 &&
              symlink("/proc/self", place("root/public/process")) == 0,
          "%s", strerror(errno));
    start_server("--root", root);
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        const struct answer *answer = get(targets[i]);
        check(answer->status == 400 || answer->status == 404, "%s: status %d", targets[i],
              answer->status);
        check(!body_has(answer, SECRET) && !body_has(answer, "root:"), "%s: %s", targets[i],
              answer->body);
    }
    check_file(get("/sub/../index.html"), place("root/public/index.html"));
}
