/* What clients cost a server of memory, as a control group (cgroups(7)) counts it: that of its
 * processes, what the kernel keeps for them, and what is in the sockets. The figures that are
 * printed are those of common/OPERATING.md.
 */
#include "around.h"
#include "tests/harness/harness.h"

enum { MIB = 1024 * 1024, LITTLE = 256 * MIB };

/* ---- a control group ----------------------------------------------------------------------- */

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
    run_under("sh", "-c", "echo $$ >\"$0\"/cgroup.procs && exec \"$@\"", group);
}

static long usage_mib(void)
{
    const char *usage = read_whole(group_file(version->usage, ""), NULL);
    const char *sockets =
        version->sockets ? read_whole(group_file(version->sockets, ".usage_in_bytes"), NULL) : "0";
    check(usage && sockets, "the group is gone");
    return (strtol(usage, NULL, 10) + strtol(sockets, NULL, 10)) / MIB;
}

/* ---- clients ------------------------------------------------------------------------------- */

#define PAGE      "GET /guestbook?page=2 HTTP/1.1\r\nHost: test\r\n\r\n"
#define LONG_PAGE "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n"

enum kind { IDLE, POST, ASKING, SLOW, KINDS };
static const char *const names[KINDS] = {"idle", "post", "asking", "slow"};

static struct client **clients;

static void prepare(void)
{
    if (server_has_sanitizer())
        cr_skip_test("what a sanitizer needs is not the server's");
    start_redis("--tcp-backlog", "4096", "--maxclients", "8000");
    fill_guestbook_with_quotes();
}

static void begin_post(struct client *c)
{
    static char bytes[60 * 1024];
    memset(bytes, 'x', sizeof(bytes));
    static const char head[] = "POST /guestbook HTTP/1.1\r\nHost: test\r\nContent-Length: 65000\r\n"
                               "Content-Type: application/x-www-form-urlencoded\r\n\r\n";
    memcpy(bytes, head, strlen(head));
    try_to_say(c, bytes, sizeof(bytes));
}

static void begin(enum kind kind, struct client *c)
{
    if (kind == POST)
        begin_post(c);
    else
        say(c, kind == SLOW ? LONG_PAGE LONG_PAGE LONG_PAGE LONG_PAGE : PAGE);
    if (kind == IDLE)
        check(hear(c)->status == 200, "status %d", c->answer.status);
}

/* Until the server waits for this client, or has refused it. */
static void await_begun(enum kind kind, const struct client *c)
{
    wait_until(has_heard(c) || (kind != SLOW && is_read(c)), SOON_MS, "a client is not noticed");
}

static void gather_clients(enum kind kind, int count)
{
    if (kind == ASKING)
        freeze_redis();
    clients = calloc((size_t)count, sizeof(*clients));
    for (int i = 0; i < count; i++)
        begin(kind, clients[i] = dial());
    for (int i = 0; i < count; i++)
        await_begun(kind, clients[i]);
    for (long before = -1; before != usage_mib(); poll(NULL, 0, 500))
        before = usage_mib(); /* until nobody's socket takes any more */
}

static void scatter_clients(enum kind kind, int count)
{
    for (int i = 0; i < count; i++)
        reset(clients[i]);
    free(clients);
    if (kind == ASKING)
        thaw_redis();
}

static void start_in_group(int workers)
{
    char number[16];
    snprintf(number, sizeof(number), "%d", workers);
    start_server("--keep-alive", "600", "--timeout", "600", workers > 0 ? "--workers" : NULL,
                 number);
}

/* ---- what they cost ------------------------------------------------------------------------ */

/* What common/OPERATING.md states, in MiB. As much again by half is not a failure. */
static const struct {
    const char *server;
    long each[KINDS];
} stated[] = {
    {"forking", {176, 202, 151, 554}}, {"preforking", {171, 202, 149, 547}},
    {"threading", {52, 96, 41, 330}},  {"prethreading", {59, 100, 56, 365}},
    {"poll", {10, 68, 7, 130}},        {"epoll", {11, 68, 7, 130}},
};

CONCURRENT_SERVERS(a_thousand_clients_need_the_memory_that_is_stated)
{
    enum { CLIENTS = 1000 };
    size_t which = 0;
    need_threads(CLIENTS);
    prepare();
    while (!server_is(stated[which].server))
        which++;
    for (enum kind kind = 0; kind < KINDS; kind++) {
        enter_group(1LL << 40);
        start_in_group(server_has_workers() ? CLIENTS : 0);
        need_descriptors(CLIENTS);
        gather_clients(kind, CLIENTS);
        long mib = usage_mib(), most = stated[which].each[kind] * 3 / 2;
        cr_log_info("%s: %d clients, %s: %ld MiB", server_name, CLIENTS, names[kind], mib);
        check(mib <= most, "%s: %ld MiB", names[kind], mib);
        scatter_clients(kind, CLIENTS);
        stop_server();
        rmdir(group);
    }
}

/* ---- more of them than there is memory for -------------------------------------------------- */

/* These have all clients in one process. */
static void three_thousand_clients_that_want_too_much_do_not_end_it(void)
{
    enum { CLIENTS = 3000 };
    need_threads(CLIENTS);
    prepare();
    for (enum kind kind = POST; kind < KINDS; kind += SLOW - POST) {
        enter_group(LITTLE);
        start_in_group(0);
        need_descriptors(CLIENTS);
        gather_clients(kind, CLIENTS);
        long mib = usage_mib();
        check(mib <= LITTLE / MIB, "%s: %ld MiB, with what is in the sockets", names[kind], mib);
        int64_t start = now_ms();
        check(get("/style.css")->status == 200, "no file");
        check(get("/guestbook?page=2")->status == 200, "no page");
        cr_log_info("%s: %d clients, %s: %ld of %d MiB; a file and a page after %lld ms",
                    server_name, CLIENTS, names[kind], mib, LITTLE / MIB,
                    (long long)(now_ms() - start));
        scatter_clients(kind, CLIENTS);
        wait_until(get("/guestbook")->status == 200, SOON_MS, "no long page when they are gone");
        stop_server();
        rmdir(group);
    }
}
AGAINST(threading, three_thousand_clients_that_want_too_much_do_not_end_it)
AGAINST(poll, three_thousand_clients_that_want_too_much_do_not_end_it)
AGAINST(epoll, three_thousand_clients_that_want_too_much_do_not_end_it)
