/* Files that are not like others: that would make a server wait, that are huge, or that change
 * while they are sent.
 */
#include "tests/harness/harness.h"

/* ---- what is no regular file --------------------------------------------------------------- */

EVERY_SERVER(what_is_no_regular_file_is_not_waited_for)
{
    static const char *const targets[] = {"/fifo", "/fifo-with-a-writer", "/fifo/"};
    const char *root = make_root();
    check(mkfifo(place("root/public/fifo"), 0644) == 0 &&
              mkfifo(place("root/public/fifo-with-a-writer"), 0644) == 0,
          "%s", strerror(errno));
    int writer = open(place("root/public/fifo-with-a-writer"), O_RDWR | O_CLOEXEC);
    check(write(writer, SECRET, strlen(SECRET)) > 0, "%s", strerror(errno));
    start_server("--root", root);
    for (int i = 0; i < 60; i++) /* of each more than there are workers */
        check(get(targets[i % 3])->status == 404, "%s is there", targets[i % 3]);
    check_file(get("/"), place("root/public/index.html"));
    close(writer);
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

/* ---- files that change while they are sent -------------------------------------------------- */

enum { LARGE = 24 * 1024 * 1024 }; /* bytes: more than two sockets hold */

static char large[LARGE];

/* Asks for a large file, and does not read on before the server is in the middle of it. */
static struct client *dial_for_a_large_file(void)
{
    const char *root = make_root();
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (char)(i * 31 + i / 251);
    write_file("root/public/large.bin", large, LARGE);
    start_server("--root", root, "--timeout", "60"); /* no deadline is to end it */
    struct client *c =
        dial_and_say("GET /large.bin HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    wait_until(has_heard(c), SOON_MS, "no response");
    return c;
}

EVERY_SERVER(a_file_replaced_while_it_is_sent_is_sent_as_it_was)
{
    struct client *c = dial_for_a_large_file();
    write_file("root/public/new.bin", "new", 3);
    check(rename(place("root/public/new.bin"), place("root/public/large.bin")) == 0, "%s",
          strerror(errno));
    check(hear(c)->body_len == LARGE && memcmp(c->answer.body, large, LARGE) == 0, "%zu bytes",
          c->answer.body_len);
    check(strcmp(field(&c->answer, "Content-Type"), "application/octet-stream") == 0, "a type");
    hang_up(c);
    check_file(get("/large.bin"), place("root/public/large.bin"));
}

EVERY_SERVER(a_file_truncated_while_it_is_sent_ends_the_connection_short)
{
    struct client *c = dial_for_a_large_file();
    check(truncate(place("root/public/large.bin"), 0) == 0, "%s", strerror(errno));
    uint64_t count = hear_rest(c);
    check(count < LARGE, "%llu bytes of a file that has none", (unsigned long long)count);
    hang_up(c);
    check_file(get("/large.bin"), place("root/public/large.bin")); /* an empty file */
}
