/* No descriptor is left. The server does not end and does not spin, and serves on as soon as it
 * can. What is real here is injected by servers/faults.c too; but only so does it last, and is the
 * server's use of the CPU what it would be.
 */
#include "tests/harness/harness.h"

enum {
    ROOM = 64,
    RECOVERED_MS = 3000,
};

#define ASK "OPTIONS * HTTP/1.1\r\nHost: test\r\nConnection: close\r\n" /* needs no file */

/* ---- limits, of a server that runs --------------------------------------------------------- */

/* Of the server and its children; the soft limit, which may be raised again. */
static void limit(enum __rlimit_resource resource, rlim_t most)
{
    pid_t all[ROOM + 1] = {server_pid};
    for (int i = list_children(server_pid, all + 1, ROOM, NULL); i >= 0; i--) {
        struct rlimit now;
        check(prlimit(all[i], resource, NULL, &now) == 0, "%s", strerror(errno));
        now.rlim_cur = most < now.rlim_max ? most : now.rlim_max;
        check(prlimit(all[i], resource, &now, NULL) == 0, "%s", strerror(errno));
    }
}

/* The number that the next descriptor would get. */
static rlim_t next_descriptor(void)
{
    char path[64], file[4096];
    ssize_t n = 1;
    rlim_t fd = 0;
    for (; n >= 0; fd += n >= 0) {
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)server_pid, (int)fd);
        n = readlink(path, file, sizeof(file));
    }
    return fd;
}

/* ---- descriptors --------------------------------------------------------------------------- */

/* Those who come meanwhile stand in the listener's queue. This is all seven: chapter 2's parent has
 * each client's descriptor for a moment only, chapter 3's workers and chapter 1 one each, so that
 * no crowd can use theirs up; but whoever starts them can leave them too few. */
EVERY_SERVER(without_a_descriptor_for_a_client_it_sleeps_and_then_serves_everybody)
{
    enum { CROWD = 60 };
    struct client *crowd[CROWD];
    int early = 0; /* whoever slept in accept4() already had a number for its client, once */
    start_server();
    if (server_is("preforking"))
        wait_until(count_children() == 8, SOON_MS, "not 8 workers");
    limit(RLIMIT_NOFILE, next_descriptor());
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = dial();
        say(crowd[i], ASK "\r\n");
    }
    check_it_sleeps(1000, "out of descriptors");
    for (int i = 0; i < CROWD; i++)
        early += has_heard(crowd[i]);
    check(early <= 8, "%d were served", early);
    int64_t start = now_ms();
    limit(RLIMIT_NOFILE, RLIM_INFINITY);
    for (int i = 0; i < CROWD; i++) {
        check(hear(crowd[i])->status == 204, "status %d", crowd[i]->answer.status);
        hang_up(crowd[i]);
    }
    check_took(start, 0, patience(RECOVERED_MS));
    check_file(get("/"), "public/index.html");
}
