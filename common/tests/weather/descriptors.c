/* The machine has nothing left to give: no descriptor, no process, no thread, no memory. The
 * server does not end and does not spin, and serves on as soon as it can.
 *
 *  - What is real here is injected by servers/faults.c too; but only so does it last, and is the
 *    server's use of the CPU what it would be.
 *  - All descriptors of the machine (ENFILE) are injected only: to run out of them is no test's
 *    right.
 */
#include "tests/harness/harness.h"

#include <sys/resource.h>

enum {
    ROOM = 64,
    WINDOW_MS = 1000, /* in which the server is out of something, and its use of the CPU */
    CPU_MS = 100,     /* is at most a tenth */
    RECOVERED_MS = 1000,
};

#define ASK "OPTIONS * HTTP/1.1\r\nHost: test\r\nConnection: close\r\n" /* needs no file */

/* ---- limits, of a server that runs --------------------------------------------------------- */

/* Of the server and its children; the soft limit, which may be raised again. */
static void limit(enum __rlimit_resource resource, rlim_t most)
{
    pid_t all[ROOM + 1] = {server_pid};
    for (int i = list_children(server_pid, all + 1, ROOM, NULL); i >= 0; i--) {
        struct rlimit now;
        check(limit_of(all[i], resource, NULL, &now) == 0, "%s", strerror(errno));
        now.rlim_cur = most < now.rlim_max ? most : now.rlim_max;
        check(limit_of(all[i], resource, &now, NULL) == 0, "%s", strerror(errno));
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

/* How much the server works while nothing can be done for anybody. */
static void check_it_sleeps(void)
{
    int64_t before = server_cpu_ms();
    poll(NULL, 0, WINDOW_MS);
    int64_t used = server_cpu_ms() - before;
    check(used < patience(CPU_MS), "%lld ms of CPU in %d", (long long)used, WINDOW_MS);
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
        wait_until(count_children() == 8, 2000, "not 8 workers");
    limit(RLIMIT_NOFILE, next_descriptor());
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = dial();
        say(crowd[i], ASK "\r\n");
    }
    check_it_sleeps();
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

/* Here the clients themselves hold all there are: those servers in which many share a table. */
static void clients_who_hold_every_descriptor_keep_the_others_waiting_and_nothing_else(void)
{
    enum { CROWD = 40, DESCRIPTORS = 24 };
    struct client *crowd[CROWD];
    run_under("prlimit", "--nofile=24");
    start_server("--timeout", "60", POOL_OF("30"));
    int inside = DESCRIPTORS - count_descriptors(server_pid); /* the first so many */
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = dial();
        say(crowd[i], ASK);
    }
    wait_until(count_descriptors(server_pid) == DESCRIPTORS, 2000, "it holds %d",
               count_descriptors(server_pid));
    check_it_sleeps();

    int64_t start = now_ms();
    for (int i = inside; i < CROWD; i++)
        say(crowd[i], "\r\n");
    for (int i = 0; i < inside; i++)
        hang_up(crowd[i]);
    for (int i = inside; i < CROWD; i++) {
        check(hear(crowd[i])->status == 204, "status %d", crowd[i]->answer.status);
        hang_up(crowd[i]);
    }
    check_took(start, 0, patience(RECOVERED_MS));
    /* Each thread that sleeps in accept4() has a number reserved: chapter 5's leave none for a
     * file. */
    int status = get("/")->status;
    check(status == 200 || (status == 503 && server_is("prethreading")), "the next: %d", status);
}
AGAINST(threading, clients_who_hold_every_descriptor_keep_the_others_waiting_and_nothing_else)
AGAINST(prethreading, clients_who_hold_every_descriptor_keep_the_others_waiting_and_nothing_else)
AGAINST(poll, clients_who_hold_every_descriptor_keep_the_others_waiting_and_nothing_else)
AGAINST(epoll, clients_who_hold_every_descriptor_keep_the_others_waiting_and_nothing_else)

/* ---- processes and threads ----------------------------------------------------------------- */

/* A user of whom the machine has no other process, not even one of another test. */
static const char *nobody_else(void)
{
    static char option[32];
    snprintf(option, sizeof(option), "--reuid=%d", 20000 + (int)getpid() % 40000);
    return option;
}

/* The superuser may have as many processes as he likes: the server then has to be another's. */
static void give_up_rights(void)
{
    if (geteuid() != 0)
        return;
    run_under("setpriv", nobody_else(), "--clear-groups");
    if (run_server("--version") != 0)
        cr_skip_test("another user may not start the server here");
    run_under("setpriv", nobody_else(), "--clear-groups");
}

/* Or to be allowed more again, by 0. Only a process of the same user may do that to the server. */
static void limit_processes(rlim_t count)
{
    char pid[24], most[48];
    int status, null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct rlimit own;
    getrlimit(RLIMIT_NPROC, &own);
    snprintf(pid, sizeof(pid), "--pid=%d", (int)server_pid);
    if (count > 0 || own.rlim_max != RLIM_INFINITY)
        snprintf(most, sizeof(most),
                 "--nproc=%llu:", (unsigned long long)(count > 0 ? count : own.rlim_max));
    else
        snprintf(most, sizeof(most), "--nproc=unlimited:");
    const char *const words[] = {"setpriv", nobody_else(), "--clear-groups", "prlimit", pid,
                                 most,      NULL};
    pid_t prlimit_pid = spawn(words + (geteuid() == 0 ? 0 : 3), null, null);
    close(null);
    wait_until(waitpid(prlimit_pid, &status, WNOHANG) == prlimit_pid, SOON_MS, "it hangs");
    check(status == 0, "prlimit: wait status 0x%x", (unsigned)status);
}

/* 503 for the client for whom there is none; the server lives, and gives nobody more than a moment,
 * since it says so itself. */
static void without_a_process_or_a_thread_for_a_client_it_is_503(void)
{
    give_up_rights();
    start_server();
    check_file(get("/"), "public/index.html");
    wait_until(count_children() == 0, 2000, "a child stays");
    limit_processes(1);
    struct client *silent = dial();
    for (int i = 0; i < 10; i++) {
        const struct answer *answer = get("/");
        check(answer->status == 503 && says_when_to_come_again(answer), "status %d",
              answer->status);
        check(body_has(answer, "no process or thread"), "it says: %s", answer->body);
    }
    limit_processes(0);
    check_file(get("/"), "public/index.html");
    hang_up(silent);
}
AGAINST(forking, without_a_process_or_a_thread_for_a_client_it_is_503)
AGAINST(threading, without_a_process_or_a_thread_for_a_client_it_is_503)

/* One that idles, or has been answered, makes way for the next, as at the limit of --workers. */
static void at_the_machines_limit_idle_clients_make_way(void)
{
    enum { IDLE = 4, ALL = 3 * IDLE };
    struct client *clients[ALL];
    if (geteuid() != 0)
        cr_skip_test("only the superuser can start it as a user without other processes");
    give_up_rights();
    start_server();
    for (int i = 0; i < ALL; i++) {
        int64_t start = now_ms();
        clients[i] = dial();
        say(clients[i], "GET / HTTP/1.1\r\nHost: test\r\n\r\n");
        check_file(hear(clients[i]), "public/index.html");
        check_took(start, 0, patience(2000));
        if (i == IDLE - 1)
            limit_processes(1 + IDLE);
    }
    for (int i = 0; i < ALL; i++)
        hang_up(clients[i]);
}
AGAINST(forking, at_the_machines_limit_idle_clients_make_way)
AGAINST(threading, at_the_machines_limit_idle_clients_make_way)

/* The others serve meanwhile, and it is replaced when there are processes again. */
ONLY_SERVER(preforking, a_worker_that_cannot_be_replaced_is_replaced_later)
{
    pid_t workers[ROOM];
    give_up_rights();
    start_server();
    wait_until(count_children() == 8, 2000, "not 8 workers");
    list_children(server_pid, workers, ROOM, NULL);
    limit_processes(1);
    kill(workers[0], SIGKILL);
    wait_until(count_children() == 7, 2000, "it was not reaped");
    check_it_sleeps();
    check(count_children() == 7, "it has %d workers", count_children());
    check_file(get("/"), "public/index.html");
    limit_processes(0);
    wait_until(count_children() == 8, RECOVERED_MS, "it is not replaced");
}

/* A fixed set of threads that cannot be had: better to say so than to serve with fewer. */
ONLY_SERVER(prethreading, with_too_few_threads_to_be_had_it_does_not_start)
{
    if (geteuid() == 0)
        run_under("prlimit", "--nproc=4", "setpriv", nobody_else(), "--clear-groups");
    else
        run_under("prlimit", "--nproc=4");
    int status = run_server();
    if (status == 126 || status == 127)
        cr_skip_test("another user may not start the server here");
    const char *says = server_is_ours() ? "cannot create 8 threads" : "thread";
    check(status == 1 && strstr(server_errors(), says), "status %d", status);
}

/* ---- memory -------------------------------------------------------------------------------- */

static rlim_t address_space(void)
{
    char path[64];
    unsigned long long pages = 0;
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)server_pid);
    const char *statm = read_whole(path, NULL);
    check(statm && sscanf(statm, "%llu", &pages) == 1, "%s", path);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static int count_refused(struct client *const *crowd, int size)
{
    int count = 0;
    for (int i = 0; i < size; i++)
        count += has_heard(crowd[i]);
    return count;
}

/* A crowd asks for more memory than there is: some are sent away or cut off, and when they are
 * gone the server is well, with as little memory as before. */
static void without_memory_for_everybody_it_lives_on(void)
{
    enum { CROWD = 60, BODY = 50000, SPARE = 1024 * 1024 };
    static char body[BODY];
    struct client *crowd[CROWD];
    start_redis();
    if (server_is("threading")) /* there a client without a thread waits until another has ended */
        start_server("--timeout", "2");
    else
        start_server();
    check(get("/guestbook")->status == 200, "not even before");
    if (address_space() >> 40)
        cr_skip_test("a sanitizer's own memory is counted too");
    int descriptors = count_descriptors(server_pid);
    limit(RLIMIT_AS, address_space() + SPARE);
    memset(body, 'x', sizeof(body));
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = dial();
        say(crowd[i], "POST /guestbook HTTP/1.1\r\nHost: test\r\nContent-Length: 60000\r\n\r\n");
        try_to_say(crowd[i], body, sizeof(body));
    }
    wait_until(count_refused(crowd, CROWD) > 0, SOON_MS, "there was memory for everybody");
    for (int i = 0; i < CROWD; i++)
        hang_up(crowd[i]);
    wait_until(count_descriptors(server_pid) <= descriptors, 2000, "%d descriptors, once %d",
               count_descriptors(server_pid), descriptors);
    /* a thread has closed its client before it gives back its stack */
    wait_until(get("/")->status == 200, RECOVERED_MS, "it is not well");
    check_file(get("/"), "public/index.html");
    check(get("/guestbook")->status == 200, "the page: %d", get("/guestbook")->status);
}
AGAINST(threading, without_memory_for_everybody_it_lives_on)
AGAINST(poll, without_memory_for_everybody_it_lives_on)
AGAINST(epoll, without_memory_for_everybody_it_lives_on)
