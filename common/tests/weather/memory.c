/* Memory: nothing grows; what clients cost; and what happens when there is no more.
 *
 *  - What a server's processes hold is measured as proportional set size (PSS), which counts a page
 *    that several processes share once. The kernel's part, sockets and page tables, is not in it.
 *  - What a crowd needs, a control group counts (cgroups(7)): processes, what the kernel keeps for
 *    them, and what is in the sockets. Those figures are in common/book/OPERATING.md.
 */
#include "around.h"
#include "tests/harness/harness.h"

#include <criterion/hooks.h>

enum { MIB = 1024 * 1024 };

static void skip_with_sanitizers(void)
{
    if (server_has_sanitizer())
        cr_skip_test("what a sanitizer needs is not the server's");
}

/* ---- nothing grows ------------------------------------------------------------------------- */

enum {
    WORKERS = 16, /* of chapters 3 and 5: nobody waits, so nobody has to make way */
    MANY = 4,     /* clients, who ask for ten things each */
    A_ROUND = 10 * MANY + 4,
};

#define THREE                                                                                      \
    "GET / HTTP/1.1\r\nHost: test\r\n\r\n"                                                         \
    "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n"                                                \
    "GET /tux.png HTTP/1.1\r\nHost: test\r\nIf-None-Match: *\r\n\r\n"
#define LAST "GET /not-there HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"

static void hear_ten(struct client *c)
{
    static const int statuses[] = {200, 200, 304};
    for (int i = 0; i < 9; i++)
        check(hear(c)->status == statuses[i % 3], "%d", c->answer.status);
    check(hear(c)->status == 404, "%d", c->answer.status);
    hang_up(c);
}

/* A request of every kind: kept, closed, answered, refused, asked and not waited for. Many ask at
 * once, but chapter 1's clients, who would have to make way. */
static void one_round(void)
{
    struct client *c[MANY];
    for (int i = 0; i < MANY; i++) {
        c[i] = dial_and_say(THREE THREE THREE LAST);
        if (server_is("iterative"))
            hear_ten(c[i]);
    }
    for (int i = 0; i < MANY && !server_is("iterative"); i++)
        hear_ten(c[i]);
    check(get("/status.json")->status == 200, "no status");
    check(post("guest-name=Ada&guest-remarks=hello")->status == 303, "not posted");
    c[0] = dial_and_say("nonsense\r\n\r\n");
    check(hear(c[0])->status == 400, "understood");
    hang_up(c[0]); /* or chapter 1 would listen on, for a tick */
    reset(dial_and_say("GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n"));
    reset(dial_and_say("GET /tux.png HTTP/1.1\r\nHost: test\r\n\r\n"));
}

static int soak_ms(void)
{
    const char *seconds = getenv("SOAK_SECONDS"); /* `make soak` gives it more time, */
    return seconds ? atoi(seconds) * 1000 : 0;
}

ReportHook(PRE_SUITE)(struct criterion_suite_set *set)
{
    set->suite.data->timeout += 2 * soak_ms() / 1000; /* which it may take */
}

static void work_for(long requests, int64_t ms)
{
    int64_t end = now_ms() + ms;
    for (long i = 0; i < requests || now_ms() < end; i += A_ROUND)
        one_round();
}

/* Descriptors of the server and its children, when all clients are gone, and their processes and
 * threads with them. */
static int count_what_stays_open(void)
{
    pid_t workers[WORKERS];
    int count = count_descriptors(server_pid), there = server_has_pool() ? WORKERS : 0;
    wait_until(count_clients() == 0 && count_workers() == there, SOON_MS, "%d clients, %d workers",
               count_clients(), count_workers());
    for (int i = list_children(server_pid, workers, WORKERS, NULL) - 1; i >= 0; i--)
        count += count_descriptors(workers[i]);
    return count;
}

EVERY_SERVER(twenty_thousand_requests_of_all_kinds_leave_nothing_behind)
{
    /* a block of the smallest size lost with each request would be twice the slack */
    enum { REQUESTS = 20000, WARM_UP = 4000, SLACK_KIB = 192 };
    skip_with_sanitizers();
    start_redis();
    fill_guestbook_with_quotes();
    /* the slots of those without a pool are soon all touched once */
    start_server("--workers", server_has_pool() ? "16" : "64");
    work_for(WARM_UP, soak_ms() / 4);
    int open = count_what_stays_open();
    long kib = server_pss_kib();
    work_for(REQUESTS, soak_ms());
    /* 04's pool has as many connections to Redis as were ever asked at once */
    wait_until(count_what_stays_open() <= open + (server_is("threading") ? MANY : 0), SOON_MS,
               "%d descriptors at first, and then %d", open, count_what_stays_open());
    long more_kib = server_pss_kib() - kib;
    cr_log_info("%s: %d descriptors, %ld KiB, and %ld more\n", server_name, open, kib, more_kib);
    check(more_kib <= SLACK_KIB, "%ld KiB at first, and then %ld more", kib, more_kib);
}

/* ---- large requests, in a process that may have few addresses ---------------------------------
 */

enum {
    MEMORY = 64 * MIB, /* as the server sees it */
    POSTS = 400,
    BODY = 65000, /* bytes; so many of them are kept back: */
    UNSAID = 5000,
    MOST = MEMORY / 8 / BODY, /* so many posts fit into an eighth of the memory, */
    LEAST = MOST * 9 / 10,    /* or a few less: each has a head, too */
};

/* A server that starts with so many addresses takes them for all the memory there is. Then the
 * limit is lifted, since the stacks of that many threads need more of them. */
static void start_with_little_memory(void)
{
    struct rlimit limit;
    char as[32];
    skip_with_sanitizers();
    start_redis();
    snprintf(as, sizeof(as), "--as=%d:", MEMORY);
    run_under("prlimit", as);
    start_server("--timeout", "60", "--keep-alive", "600");
    check(prlimit(server_pid, RLIMIT_AS, NULL, &limit) == 0, "no limit to look at");
    limit.rlim_cur = limit.rlim_max;
    check(prlimit(server_pid, RLIMIT_AS, &limit, NULL) == 0, "the limit stays");
}

#define POST_HEAD                                                                                  \
    "POST /guestbook HTTP/1.1\r\nHost: test\r\nContent-Length: 65000\r\n"                          \
    "Content-Type: application/x-www-form-urlencoded\r\n\r\n"
#define FORM "guest-name=Ada&guest-remarks=hello&rest="

/* Says a large post, but for its end. */
static void begin_post(struct client *c)
{
    static char bytes[sizeof(POST_HEAD) + BODY];
    memset(bytes, 'x', sizeof(bytes));
    memcpy(bytes, POST_HEAD FORM, strlen(POST_HEAD FORM));
    try_to_say(c, bytes, strlen(POST_HEAD) + BODY - UNSAID);
}

/* Begins so many posts. Returns how many the server takes, which come first; it refuses the others,
 * as it should. */
static int begin_posts(struct client **posts, int count)
{
    int taken = 0;
    for (int i = 0; i < count; i++) {
        struct client *c = dial();
        begin_post(c);
        wait_until(is_read(c) || has_heard(c), SOON_MS, "nobody reads");
        if (!has_heard(c)) {
            posts[taken++] = c;
            continue;
        }
        check(hear(c)->status == 503 && body_has(&c->answer, "memory is left") &&
                  says_when_to_come_again(&c->answer) && !c->answer.kept,
              "status %d", c->answer.status);
        hang_up(c);
    }
    return taken;
}

static void what_does_not_fit_into_memory_is_503_and_all_others_are_served(void)
{
    static const char rest[UNSAID] = "the end";
    struct client *posts[POSTS];
    start_with_little_memory();
    struct client *idle = dial_and_say("GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
    check(hear(idle)->status == 200, "status %d", idle->answer.status);
    for (int i = 0; i < POSTS; i++)
        dial_and_be_read(
            POST_HEAD); /* it announces 65,000 bytes, and that is all: this costs nothing */
    for (int round = 0; round < 2; round++) { /* what was taken is given back */
        int taken = begin_posts(posts, POSTS);
        check(taken >= LEAST && taken <= MOST, "%d of %d", taken, POSTS);
        check(get("/guestbook")->status == 200, "no page");
        check(post("guest-name=Bob&guest-remarks=short")->status == 303, "a small post is refused");
        for (int i = 0; i < taken; i++, hang_up(posts[i - 1])) {
            if (i % 2) { /* also by those who leave */
                say_no_more(posts[i]);
                hear_end(posts[i]);
                continue;
            }
            say_bytes(posts[i], rest, UNSAID);
            check(hear(posts[i])->status == 303, "status %d", posts[i]->answer.status);
        }
    }
    say(idle, "GET /style.css HTTP/1.1\r\nHost: test\r\n\r\n");
    check(hear(idle)->status == 200, "an idle client, which has no part in it: %d",
          idle->answer.status);
}
AGAINST(threading, what_does_not_fit_into_memory_is_503_and_all_others_are_served)
AGAINST_LOOPS(what_does_not_fit_into_memory_is_503_and_all_others_are_served)

/* Of a whole post nothing stays when it is answered, even if the next request has begun. */
static void a_request_that_is_answered_leaves_room_for_others(void)
{
    static char bytes[sizeof(POST_HEAD) + BODY];
    memset(bytes, 'x', sizeof(bytes));
    memcpy(bytes, POST_HEAD FORM, strlen(POST_HEAD FORM));
    bytes[strlen(POST_HEAD) + BODY] = 'G';
    start_with_little_memory();
    for (int i = 0; i < POSTS; i++) {
        struct client *c = dial();
        say_bytes(c, bytes, strlen(POST_HEAD) + BODY + 1);
        check(hear(c)->status == 303, "post %d: status %d", i, c->answer.status);
    }
    check(post("guest-name=Bob&guest-remarks=short")->status == 303, "a small post is refused");
    check(get("/guestbook")->status == 200, "no page");
}
AGAINST(threading, a_request_that_is_answered_leaves_room_for_others)
AGAINST_LOOPS(a_request_that_is_answered_leaves_room_for_others)

/* ---- crowds, in a control group ---------------------------------------------------------------
 */

static const struct version {
    const char *top, *limit, *usage, *sockets; /* sockets: if `usage` does not count them */
} versions[] = {
    {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "memory.kmem.tcp"},
    {"/sys/fs/cgroup", "memory.max", "memory.current", NULL},
};
static const struct version *version;
static char group[128];

static const char *group_file(const char *name, const char *more)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s%s", group, name, more);
    return path;
}

static bool set_limit(const char *name, const char *more, long long bytes)
{
    FILE *file = fopen(group_file(name, more), "we");
    bool done = file && fprintf(file, "%lld", bytes) > 0;
    return file && fclose(file) == 0 && done;
}

/* The next server runs in a group of its own, with so much memory. Skips the test if this machine
 * lets nobody make one. */
static void enter_group(long long limit)
{
    enum { VERSIONS = sizeof(versions) / sizeof(versions[0]) };
    for (version = versions; version < versions + VERSIONS; version++) {
        snprintf(group, sizeof(group), "%s/zerohttpd-%d", version->top, (int)getpid());
        if ((mkdir(group, 0755) == 0 || errno == EEXIST) && set_limit(version->limit, "", limit))
            break;
        rmdir(group);
    }
    if (version == versions + VERSIONS)
        cr_skip_test("no control group with a limit can be made here (root can, as a rule)");
    if (version->sockets) /* they are counted if there is a limit */
        set_limit(version->sockets, ".limit_in_bytes", 1LL << 40);
    /* The servers read the files of version 2 only. Where the machine has version 1, they see a
     * folder of their own with such a file. */
    static char script[400]; /* run_under() keeps it */
    snprintf(script, sizeof(script),
             "echo $$ >\"$0\"/cgroup.procs && "
             "exec unshare --mount sh -c 'test -e /sys/fs/cgroup/cgroup.procs || "
             "{ mount -t tmpfs none /sys/fs/cgroup && echo %lld >/sys/fs/cgroup/memory.max; }; "
             "exec \"$@\"' sh \"$@\"",
             limit);
    run_under("sh", "-c", script, group);
}

static long usage_mib(void)
{
    const char *usage = read_whole(group_file(version->usage, ""), NULL);
    const char *sockets =
        version->sockets ? read_whole(group_file(version->sockets, ".usage_in_bytes"), NULL) : "0";
    check(usage && sockets, "the group is gone");
    return (strtol(usage, NULL, 10) + strtol(sockets, NULL, 10)) / MIB;
}

#define PAGE      "GET /guestbook?page=2 HTTP/1.1\r\nHost: test\r\n\r\n"
#define LONG_PAGE "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n"

enum kind { IDLE, POST, ASKING, SLOW, KINDS };
static const char *const names[KINDS] = {"idle", "post", "asking", "slow"};
static struct client **crowd;

/* Starts a server with so much memory, and so many clients of a kind, which it waits for, or has
 * refused. Returns how much they need, as soon as nobody's socket takes any more. */
static long gather(enum kind kind, int count, long long limit)
{
    char workers[16];
    snprintf(workers, sizeof(workers), "%d", count);
    enter_group(limit);
    start_server("--keep-alive", "600", "--timeout", "600",
                 server_has_workers() ? "--workers" : NULL, workers);
    need_descriptors(count);
    if (kind == ASKING)
        freeze_redis();
    crowd = calloc((size_t)count, sizeof(struct client *));
    for (int i = 0; i < count; i++) {
        crowd[i] = dial();
        if (kind == POST)
            begin_post(crowd[i]);
        else
            say(crowd[i], kind == SLOW ? LONG_PAGE LONG_PAGE LONG_PAGE LONG_PAGE : PAGE);
        if (kind == IDLE)
            check(hear(crowd[i])->status == 200, "status %d", crowd[i]->answer.status);
    }
    for (int i = 0; i < count; i++)
        wait_until(has_heard(crowd[i]) || (kind != SLOW && is_read(crowd[i])), SOON_MS,
                   "client %d is not noticed", i);
    long mib = -1;
    for (; mib != usage_mib(); poll(NULL, 0, 500))
        mib = usage_mib();
    cr_log_info("%s: %d clients, %s: %ld MiB", server_name, count, names[kind], mib);
    return mib;
}

static void scatter(enum kind kind, int count)
{
    for (int i = 0; i < count; i++)
        reset(crowd[i]);
    free(crowd);
    if (kind == ASKING)
        thaw_redis();
}

static void prepare(void)
{
    skip_with_sanitizers();
    start_redis("--tcp-backlog", "4096", "--maxclients", "8000");
    fill_guestbook_with_quotes();
}

/* What common/book/OPERATING.md states, in MiB. As much again by a third is not a failure. */
static const struct {
    const char *server;
    long each[KINDS];
} stated[] = {
    {"forking", {171, 198, 153, 498}}, {"preforking", {166, 202, 153, 436}},
    {"threading", {54, 98, 46, 274}},  {"prethreading", {61, 102, 57, 245}},
    {"a loop", {11, 69, 7, 222}},
};

CONCURRENT_SERVERS(a_thousand_clients_need_the_memory_that_is_stated)
{
    enum { CLIENTS = 1000 };
    size_t which = 0, most_known = sizeof(stated) / sizeof(stated[0]);
    prepare();
    while (which < most_known &&
           strcmp(stated[which].server, server_is_loop() ? "a loop" : server_name) != 0)
        which++;
    check(which < most_known, "what is stated of %s?", server_name);
    for (enum kind kind = 0; kind < KINDS; kind++) {
        long mib = gather(kind, CLIENTS, 1LL << 40), most = stated[which].each[kind] * 4 / 3;
        check(mib <= most, "%s: %ld MiB", names[kind], mib);
        scatter(kind, CLIENTS);
        stop_server();
        rmdir(group);
    }
}

/* These have all clients in one process. */
static void three_thousand_clients_that_want_too_much_do_not_end_it(void)
{
    enum { CLIENTS = 3000 };
    prepare();
    for (enum kind kind = POST; kind < KINDS; kind += SLOW - POST) {
        gather(kind, CLIENTS, 256 * MIB);
        check(get("/style.css")->status == 200, "no file");
        wait_until(get("/guestbook?page=2")->status == 200, SOON_MS, "no short page");
        scatter(kind, CLIENTS);
        wait_until(get("/guestbook")->status == 200, SOON_MS, "no long page when they are gone");
        stop_server();
        rmdir(group);
    }
}
AGAINST(threading, three_thousand_clients_that_want_too_much_do_not_end_it)
AGAINST_LOOPS(three_thousand_clients_that_want_too_much_do_not_end_it)
