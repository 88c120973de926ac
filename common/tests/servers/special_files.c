/* Files that are not like others: that lead out, that would make a server wait,
 * that nobody may read, that have odd names, that are huge, or that change
 * while they are sent.
 */
#include "tests/harness/harness.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include <linux/capability.h>

static void make_folder_in_public(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "root/public/%s", name);
    check(mkdir(place(path), 0755) == 0, "%s: %s", name, strerror(errno));
}

static void write_in_public(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "root/public/%s", name);
    write_file(path, text, strlen(text));
}

static void check_status(const char *target, int status)
{
    const struct answer *answer = get(target);
    check(answer->status == status, "%s: %d and not %d", target, answer->status, status);
}

static void check_body(const char *target, const char *text)
{
    const struct answer *answer = get(target);
    check(answer->status == 200, "%s: status %d", target, answer->status);
    check(answer->body_len == strlen(text) && body_has(answer, text), "%s: %s", target,
          answer->body);
}

/* ---- ways out ------------------------------------------------------------------------------ */

/* Every spelling of ".." with every spelling of "/", to what lies beside public/ and to what every
 * Linux has. */
EVERY_SERVER(no_spelling_of_a_path_leads_out)
{
    static const char *const dots[] = {
        "..",
        "%2e%2e",
        ".%2e",
        "%2E.",
        "%252e%252e",
        "....",
        "..;",
        "..%00",
        "%c0%ae%c0%ae",
        "..%20",
        "%u002e%u002e",
        "%e0%80%ae%2e",
        "..%0a",
        "%2e%2e.",
        "%EF%BC%8E%EF%BC%8E",
        "%%32%65%%32%65",
        "\\..",
    };
    static const char *const slashes[] = {
        "/",  "%2f", "%2F",    "%252f",     "\\",     "%5c",
        "//", "/./", "%c0%af", "%e0%80%af", "%2f%2f", "/%2f",
    };
    static const char *const prefixes[] = {"/", "/sub/", "//", "/%2f", "http://test/"};
    static const char *const goals[] = {"secret", "etc/passwd"};
    const char *root = make_root();
    int tried = 0;
    make_folder_in_public("sub");
    start_server("--root", root);
    for (size_t d = 0; d < sizeof(dots) / sizeof(dots[0]); d++)
        for (size_t s = 0; s < sizeof(slashes) / sizeof(slashes[0]); s++)
            for (size_t p = 0; p < sizeof(prefixes) / sizeof(prefixes[0]); p++)
                for (size_t g = 0; g < sizeof(goals) / sizeof(goals[0]); g++) {
                    char target[512];
                    int n = snprintf(target, sizeof(target), "%s", prefixes[p]);
                    for (int up = 0; up < (g ? 9 : 1 + (p == 1)); up++)
                        n += snprintf(target + n, sizeof(target) - (size_t)n, "%s%s", dots[d],
                                      slashes[s]);
                    snprintf(target + n, sizeof(target) - (size_t)n, "%s", goals[g]);
                    const struct answer *answer = get(target);
                    check(answer->status == 400 || answer->status == 404, "%s: status %d", target,
                          answer->status);
                    check(!body_has(answer, SECRET) && !body_has(answer, "root:"), "%s: %s", target,
                          answer->body);
                    tried++;
                }
    check(tried > 2000, "only %d", tried);
}

/* ---- what is no regular file --------------------------------------------------------------- */

EVERY_SERVER(what_is_no_regular_file_is_not_waited_for)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *root = make_root();
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", place("root/public/socket"));
    check(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
              listen(listener, 1) == 0,
          "%s", strerror(errno));
    check(mkfifo(place("root/public/fifo"), 0644) == 0 &&
              mkfifo(place("root/public/fifo-with-a-writer"), 0644) == 0,
          "%s", strerror(errno));
    int writer = open(place("root/public/fifo-with-a-writer"), O_RDWR | O_CLOEXEC);
    check(write(writer, SECRET, strlen(SECRET)) > 0, "%s", strerror(errno));
    bool has_devices = /* which only root may make, and not everywhere; nor open (mount's nodev) */
        mknod(place("root/public/zero"), S_IFCHR | 0644, makedev(1, 5)) == 0 &&
        close(open(place("root/public/zero"), O_RDONLY | O_CLOEXEC)) == 0;

    start_server("--root", root);
    int64_t start = now_ms();
    for (int i = 0; i < 20; i++) { /* more than there are workers */
        check_status("/fifo", 404);
        check_status("/fifo-with-a-writer", 404);
        check_status("/socket", 404);
        check_status("/fifo/", 404);
        if (has_devices)
            check_status("/zero", 404);
    }
    check_took(start, 0, patience(5000));
    check_body("/", "home");
    close(listener);
    close(writer);
}

static bool sleeps(pid_t child)
{
    enum { ROOM = 8 };
    pid_t children[ROOM];
    char states[ROOM];
    for (int i = list_children(getpid(), children, ROOM, states) - 1; i >= 0; i--)
        if (children[i] == child)
            return states[i] == 'S';
    return false;
}

/* Else its open(2) would succeed, and it would be ended by SIGPIPE when it wrote. */
EVERY_SERVER(a_get_does_not_wake_a_fifos_writer)
{
    const char *root = make_root();
    const char *fifo = place("root/public/fifo");
    check(mkfifo(fifo, 0644) == 0, "%s", strerror(errno));
    start_server("--root", root);
    pid_t writer = fork();
    if (writer == 0) {
        open(fifo, O_WRONLY | O_CLOEXEC);
        _exit(0);
    }
    wait_until(sleeps(writer), SOON_MS, "the writer does not wait for a reader");
    check_status("/fifo", 404);
    check_status("/fifo", 404);
    check(sleeps(writer), "the writer was woken");
    kill(writer, SIGKILL);
}

EVERY_SERVER(folders_are_never_listed)
{
    const char *root = make_root();
    make_folder_in_public("empty");
    make_folder_in_public("full");
    make_folder_in_public("odd");
    make_folder_in_public("odd/index.html");
    write_in_public("full/index.html", "inside");
    write_in_public("full/.htaccess", SECRET);
    make_folder_in_public(".well-known");
    write_in_public(".well-known/x", SECRET);
    start_server("--root", root);
    check_status("/empty/", 404);
    check_status("/empty", 301);
    check_status("/odd/", 404);
    check_body("/full/", "inside");
    check_body("/full/.", "inside");
    check_body("/full/../full/", "inside");
    check_status("/full/.htaccess", 404);
    check_status("/full/%2ehtaccess", 404);
    check_status("/.well-known/x", 404);
    check_status("/.well-known/", 404);
    check_status("/.well-known", 404);
    check_status("/full/index.html/", 404);
    check_status("/full/index.html/x", 404);
}

/* Root may read everything; a server without these two capabilities may not, though it is root's.
 */
static void renounce_privileges(void)
{
    if (geteuid() == 0)
        check(prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE) == 0 &&
                  prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH) == 0,
              "%s", strerror(errno));
}

EVERY_SERVER(what_may_not_be_read_is_403)
{
    const char *root = make_root();
    make_folder_in_public("closed");
    write_in_public("closed/index.html", SECRET);
    write_in_public("unreadable.html", SECRET);
    check(chmod(place("root/public/unreadable.html"), 0) == 0 &&
              chmod(place("root/public/closed"), 0) == 0,
          "%s", strerror(errno));
    renounce_privileges();
    start_server("--root", root);
    check_status("/unreadable.html", 403);
    check_status("/closed/index.html", 403);
    check_status("/closed/", 403);
    check(!body_has(get("/unreadable.html"), SECRET), "it was shown");
    check_body("/", "home");
    chmod(place("root/public/closed"), 0700); /* so that it can be removed */
}

/* ---- names --------------------------------------------------------------------------------- */

EVERY_SERVER(names_may_hold_what_paths_may_not)
{
    static const struct {
        const char *name, *target;
    } files[] = {
        {"a b.txt", "/a%20b.txt"},
        {"\xc3\xa9t\xc3\xa9.txt", "/%C3%A9t%C3%A9.txt"},
        {"\xf0\x9f\x90\xa7.png", "/%F0%9F%90%A7.png"},
        {"\xff\xfe", "/%ff%fe"},
        {"100%.txt", "/100%25.txt"},
        {"a+b.txt", "/a+b.txt"},
        {"what?.txt", "/what%3F.txt"},
        {"no#1.txt", "/no%231.txt"},
        {"\"quoted\".txt", "/%22quoted%22.txt"},
        {"back\\slash", "/back%5Cslash"},
        {"<b>", "/%3cb%3e"},
        {"a&b;c=d,e", "/a&b;c=d,e"},
        {"trailing.", "/trailing."},
        {"%2e%2e", "/%252e%252e"},
        {"a[1].txt", "/a[1].txt"},
        {"{a}|b^c`d'e", "/{a}|b^c`d'e"},
        {"a[2].txt", "/a%5b2%5D.txt"},
        {"..a", NULL}, /* begins with a dot */
    };
    const char *root = make_root();
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        write_in_public(files[i].name, files[i].name);
    make_folder_in_public("my \xc3\xa9t\xc3\xa9?");
    write_in_public("my \xc3\xa9t\xc3\xa9?/index.html", "inside");
    start_server("--root", root);
    for (size_t i = 0; files[i].target; i++)
        check_body(files[i].target, files[i].name);
    check_status("/..a", 404);
    check_body("/my%20%c3%a9t%c3%a9%3f/", "inside");
    const char *location = field(get("/my%20%c3%a9t%c3%a9%3f"), "Location");
    check(location && strcmp(location, "/my%20%C3%A9t%C3%A9%3F/") == 0, "to %s", location);
}

EVERY_SERVER(an_empty_file_is_a_file)
{
    const char *root = make_root();
    write_in_public("empty.txt", "");
    start_server("--root", root);
    check_body("/empty.txt", "");
    const struct answer *answer =
        ask("HEAD /empty.txt HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    check(answer->status == 200 && strcmp(field(answer, "Content-Length"), "0") == 0, "status %d",
          answer->status);
    answer = ask("GET /empty.txt HTTP/1.1\r\nHost: test\r\nRange: bytes=0-0\r\n"
                 "Connection: close\r\n\r\n");
    check(answer->status == 416 && strcmp(field(answer, "Content-Range"), "bytes */0") == 0,
          "status %d", answer->status);
}

/* ---- a huge one ---------------------------------------------------------------------------- */

#define GIB 1073741824ULL

/* 3 GiB of holes, with a few bytes at three places. */
static void make_huge_file(void)
{
    int fd = open(place("root/public/huge.bin"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    check(fd >= 0 && ftruncate(fd, (off_t)(3 * GIB)) == 0 && pwrite(fd, "begin", 5, 0) == 5 &&
              pwrite(fd, "middle", 6, (off_t)(2 * GIB - 3)) == 6 &&
              pwrite(fd, "end", 3, (off_t)(3 * GIB - 3)) == 3,
          "%s", strerror(errno));
    close(fd);
}

/* The most memory that the server or one of its children has ever used. */
static long server_peak_kib(void)
{
    enum { ROOM = 64 };
    pid_t children[ROOM];
    long most = process_number(server_pid, "\nVmHWM:");
    int count = list_children(server_pid, children, ROOM, NULL);
    for (int i = 0; i < count; i++) {
        long peak = process_number(children[i], "\nVmHWM:");
        most = peak > most ? peak : most;
    }
    return most;
}

static void check_range(struct client *c, const char *range, const char *said, const char *text)
{
    char request[256];
    snprintf(request, sizeof(request),
             "GET /huge.bin HTTP/1.1\r\nHost: test\r\nRange: bytes=%s\r\n\r\n", range);
    say(c, request);
    const struct answer *answer = hear(c);
    const char *part = field(answer, "Content-Range");
    check(answer->status == 206 && part && strcmp(part, said) == 0, "%s: status %d, %s", range,
          answer->status, part);
    check(answer->body_len == strlen(text) && memcmp(answer->body, text, strlen(text)) == 0,
          "%s: %zu bytes", range, answer->body_len);
}

EVERY_SERVER(parts_of_three_gibibytes_are_the_right_ones)
{
    const char *root = make_root();
    make_huge_file();
    start_server("--root", root);
    struct client *c = dial();
    check_range(c, "0-4", "bytes 0-4/3221225472", "begin");
    check_range(c, "2147483645-2147483650", "bytes 2147483645-2147483650/3221225472", "middle");
    check_range(c, "3221225469-", "bytes 3221225469-3221225471/3221225472", "end");
    check_range(c, "-3", "bytes 3221225469-3221225471/3221225472", "end");
    check_range(c, "3221225471-9999999999", "bytes 3221225471-3221225471/3221225472", "d");
    say(c, "HEAD /huge.bin HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    const char *length = field(hear_head(c), "Content-Length");
    check(length && strcmp(length, "3221225472") == 0, "Content-Length: %s", length);
}

/* Throws away what comes, without copying it (tcp(7)), up to the connection's end, and has the
 * kernel forget what it has read of the file: else seven tests would fill the machine's memory with
 * it. */
static uint64_t hear_and_forget(struct client *c, const char *path)
{
    enum { PIECE = 16 * 1024 * 1024 };
    uint64_t count = c->len - c->used, forgotten = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t n = 1; n > 0; count += n > 0 ? (uint64_t)n : 0) {
        struct pollfd ready = {.fd = c->fd, .events = POLLIN};
        check(poll(&ready, 1, (int)patience(SOON_MS)) > 0, "after %llu bytes nothing comes",
              (unsigned long long)count);
        n = recv(c->fd, NULL, PIECE, MSG_TRUNC);
        check(n >= 0, "%s after %llu bytes", strerror(errno), (unsigned long long)count);
        if (count - forgotten > PIECE) {
            posix_fadvise(fd, (off_t)forgotten, (off_t)(count - forgotten), POSIX_FADV_DONTNEED);
            forgotten = count;
        }
    }
    close(fd);
    return count;
}

EVERY_SERVER(three_gibibytes_arrive_whole_and_cost_no_memory)
{
    enum { ROOM_KIB = 4096 };
    const char *root = make_root();
    make_huge_file();
    start_server("--root", root);
    check_body("/", "home");
    long before = server_peak_kib();
    struct client *c = dial_and_say("GET /huge.bin HTTP/1.1\r\nHost: test\r\n\r\n");
    wait_until(has_heard(c), SOON_MS, "no response");
    long after_the_first = server_peak_kib(); /* now its child, too, is there */
    say(c, "HEAD / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    uint64_t count = hear_and_forget(c, place("root/public/huge.bin"));
    long after = server_peak_kib();
    check(count > 3 * GIB && count < 3 * GIB + 4096, "%llu bytes", (unsigned long long)count);
    check(after < before + ROOM_KIB && after_the_first < before + ROOM_KIB,
          "%ld KiB before, %ld at first, %ld KiB after", before, after_the_first, after);
}

/* ---- files that change while they are sent -------------------------------------------------- */

enum { LARGE = 24 * 1024 * 1024 }; /* bytes: more than two sockets hold */

/* Asks for a large file of the letter "a", and does not read on before the server is in the middle
 * of it. */
static struct client *dial_for_a_large_file(void)
{
    const char *root = make_root();
    char *bytes = malloc(LARGE);
    memset(bytes, 'a', LARGE);
    write_file("root/public/large.bin", bytes, LARGE);
    free(bytes);
    start_server("--root", root, "--timeout", "60"); /* no deadline is to end it */
    struct client *c = dial();
    say(c, "GET /large.bin HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    wait_until(has_heard(c), SOON_MS, "no response");
    return c;
}

static size_t count_letters(const struct answer *a, char letter)
{
    size_t count = 0;
    for (size_t i = 0; i < a->body_len; i++)
        count += a->body[i] == letter;
    return count;
}

EVERY_SERVER(a_file_replaced_while_it_is_sent_is_sent_as_it_was)
{
    struct client *c = dial_for_a_large_file();
    write_file("root/public/new.bin", "new", 3);
    check(rename(place("root/public/new.bin"), place("root/public/large.bin")) == 0, "%s",
          strerror(errno));
    check(hear(c)->body_len == LARGE && count_letters(&c->answer, 'a') == LARGE,
          "%zu bytes, %zu of them the old", c->answer.body_len, count_letters(&c->answer, 'a'));
    hang_up(c);
    check_body("/large.bin", "new");
}

EVERY_SERVER(a_file_that_grows_while_it_is_sent_is_sent_as_long_as_it_was_said)
{
    struct client *c = dial_for_a_large_file();
    check(truncate(place("root/public/large.bin"), 2L * LARGE) == 0, "%s", strerror(errno));
    check(hear(c)->body_len == LARGE, "%zu bytes",
          c->answer.body_len); /* and nothing behind them */
}

EVERY_SERVER(a_file_truncated_while_it_is_sent_ends_the_connection_short)
{
    struct client *c = dial_for_a_large_file();
    check(truncate(place("root/public/large.bin"), 0) == 0, "%s", strerror(errno));
    uint64_t count = hear_rest(c);
    check(count < LARGE, "%llu bytes of a file that has none", (unsigned long long)count);
    hang_up(c);
    check_body("/large.bin", "");
    check_body("/", "home");
}
