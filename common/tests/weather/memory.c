/* Memory: what a connection that idles costs, that nothing grows, and what happens when it ends.
 *
 * Measured as proportional set size (PSS), which counts a page that several processes share once.
 * The kernel's part, sockets and page tables, is not in it. What was measured is reported, and
 * stands in the documentation; what is asserted leaves some room.
 */
#include "tests/harness/harness.h"

#include <sys/resource.h>

static void skip_with_sanitizers(void)
{
    const char *servers = getenv("SERVERS");
    if (servers && strstr(servers, "build/san-"))
        cr_skip_test("what a sanitizer needs is not the server's");
}

/* ---- an idle connection -------------------------------------------------------------------- */

/* What one more kept client costs at most, for whom a page was made. */
static const struct {
    const char *server;
    int clients;
    double most_kib;
} costs[] = {
    {"iterative", 1, 64}, /* it has no more than one */
    {"forking", 200, 130},     {"preforking", 100, 130}, {"threading", 200, 36},
    {"prethreading", 100, 40}, {"poll", 1000, 10},       {"epoll", 1000, 10},
};

static void fill_guestbook(void)
{
    start_redis();
    for (int i = 0; i < 50; i++)
        redis("RPUSH guestbook:entries %s", "1700000000\nAda Lovelace\nThe engine might compose.");
}

static struct client *keep_client(void)
{
    struct client *c = dial_and_say("GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
    check(hear(c)->status == 200 && c->answer.kept, "status %d", c->answer.status);
    return c;
}

/* A server of so many workers, if it has them from the start, with so many kept clients. */
static long measure_with(int clients)
{
    char workers[16];
    snprintf(workers, sizeof(workers), "%d", clients);
    start_server("--keep-alive", "600", POOL_OF(workers));
    struct client **kept = calloc((size_t)clients, sizeof(struct client *));
    for (int i = 0; i < clients; i++)
        kept[i] = keep_client();
    long kib = server_pss_kib();
    for (int i = 0; i < clients; i++)
        hang_up(kept[i]);
    free(kept);
    stop_server();
    return kib;
}

EVERY_SERVER(an_idle_connection_costs_what_is_stated)
{
    size_t which = 0;
    struct rlimit limit;
    skip_with_sanitizers();
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit); /* the clients are ours */
    fill_guestbook();
    while (!server_is(costs[which].server))
        which++;
    int clients = costs[which].clients;
    start_server();
    long alone = server_pss_kib();
    stop_server();
    bool one = clients == 1;
    long few = one ? alone : measure_with(1), many = measure_with(one ? 1 : 1 + clients);
    double each = (double)(many - few) / clients;
    cr_log_info("%s: %ld KiB alone, %ld with %d more clients than %ld KiB: %.1f KiB each\n",
                server_name, alone, many, clients, few, each);
    check(each <= costs[which].most_kib, "%.1f KiB", each);
}

/* ---- nothing grows ------------------------------------------------------------------------- */

enum {
    AT_ONCE = 4, /* clients, who ask for ten things each */
    A_ROUND = 10 * AT_ONCE + 4,
};

#define THREE                                                                                      \
    "GET / HTTP/1.1\r\nHost: test\r\n\r\n"                                                         \
    "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n"                                                \
    "GET /not-there HTTP/1.1\r\nHost: test\r\n\r\n"
#define LAST "GET /style.css HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"

/* A request of every kind: kept, closed, answered, refused, asked and not waited for. */
static void one_round(void)
{
    struct client *clients[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) {
        clients[i] = dial();
        say(clients[i], THREE THREE THREE LAST); /* in one piece: who waits cuts off what is late */
    }
    for (int i = 0; i < AT_ONCE; i++) {
        static const int statuses[] = {200, 200, 404};
        for (int j = 0; j < 9; j++)
            check(hear(clients[i])->status == statuses[j % 3], "%d", clients[i]->answer.status);
        check(hear(clients[i])->status == 200, "%d", clients[i]->answer.status);
        hang_up(clients[i]);
    }
    check(get("/tux.png")->status == 200, "no file");
    check(post("guest-name=Ada&guest-remarks=hello")->status == 303, "not posted");
    clients[0] = dial();
    say(clients[0], "nonsense\r\n\r\n");
    check(hear(clients[0])->status == 400, "understood");
    hang_up(clients[0]); /* or chapter 1 would listen on, for a tick */
    clients[0] = dial();
    say(clients[0], "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
    reset(clients[0]);
}

/* Descriptors of the server and its children. */
static int count_all_descriptors(void)
{
    enum { ROOM = 64 };
    pid_t children[ROOM];
    int count = count_descriptors(server_pid);
    for (int i = list_children(server_pid, children, ROOM, NULL) - 1; i >= 0; i--)
        count += count_descriptors(children[i]);
    return count;
}

/* All clients are gone: what a server has then is what it holds on to. */
static int await_descriptors(int most)
{
    wait_until(count_all_descriptors() <= most, SOON_MS, "%d descriptors and not %d",
               count_all_descriptors(), most);
    return count_all_descriptors();
}

/* Small files are kept in memory, but no more of them than a mebibyte in each process. */
EVERY_SERVER(a_thousand_small_files_are_not_all_kept_in_memory)
{
    enum { FILES = 1000, BYTES = 16 * 1024, WORKERS = 4, MOST_KIB = WORKERS * 1024 * 2 };
    static char bytes[BYTES];
    char name[64];
    skip_with_sanitizers();
    const char *root = make_root();
    write_file("root/public/file", bytes, BYTES);
    start_server("--root", root, "--workers", "4");
    check(get("/file")->body_len == BYTES, "%zu bytes", get("/file")->body_len);
    long before = server_pss_kib();
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "root/public/%d", i);
        check(link(place("root/public/file"), place(name)) == 0, "no link");
        check(get(strrchr(name, '/'))->body_len == BYTES, "%s", name);
    }
    long after = server_pss_kib();
    check(after - before <= MOST_KIB, "%ld KiB at first, %ld now", before, after);
}

EVERY_SERVER(twenty_thousand_requests_of_all_kinds_leave_nothing_behind)
{
    /* a block of the smallest size lost with each request would be twice the slack */
    enum { REQUESTS = 20000, WARM_UP = 4000, SLACK_KIB = 192 };
    skip_with_sanitizers();
    fill_guestbook();
    /* the slots of those without a pool are soon all touched once */
    start_server("--workers", server_has_pool() ? "4" : "64");
    await_workers(4); /* or a late one's connection to Redis comes after the warm-up */
    for (int i = 0; i < WARM_UP; i += A_ROUND)
        one_round();
    int descriptors = await_descriptors(64);
    long before = server_pss_kib();
    for (int i = 0; i < REQUESTS; i += A_ROUND)
        one_round();
    /* chapter 4's pool may have opened a connection to Redis for each of those who ask at once */
    await_descriptors(descriptors + (server_is("threading") ? AT_ONCE : 0));
    long after = server_pss_kib();
    cr_log_info("%s: %ld KiB, and %ld after %d requests\n", server_name, before, after, REQUESTS);
    check(after - before <= SLACK_KIB, "%ld KiB at first, %ld now", before, after);
}

/* ---- when memory ends ---------------------------------------------------------------------- */

static long oom_score_adj(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
    const char *text = read_whole(path, NULL);
    return text ? strtol(text, NULL, 10) : -1;
}

/* The kernel ends the process with the highest score. A child costs one client, its parent all. */
static void check_children_die_first(int count)
{
    enum { ROOM = 64, MOST = 1000 };
    pid_t children[ROOM];
    wait_until(list_children(server_pid, children, ROOM, NULL) == count, SOON_MS, "not %d children",
               count);
    for (int i = 0; i < count; i++)
        wait_until(oom_score_adj(children[i]) == MOST, SOON_MS, "child %d of %d: %ld", i, count,
                   oom_score_adj(children[i]));
    check(oom_score_adj(server_pid) == oom_score_adj(getpid()), "the parent: %ld",
          oom_score_adj(server_pid));
}

ONLY_SERVER(forking, when_memory_ends_a_child_dies_before_its_parent)
{
    start_server();
    struct client *clients[] = {dial(), dial()};
    check_children_die_first(2);
    hang_up(clients[0]);
    hang_up(clients[1]);
}

ONLY_SERVER(preforking, when_memory_ends_a_worker_dies_before_its_parent)
{
    start_server("--workers", "4");
    check_children_die_first(4);
}

/* ---- many large requests -------------------------------------------------------------------- */

enum {
    MEMORY = 64 * 1024 * 1024, /* bytes, as the server sees it */
    POSTS = 400,
    BODY = 65000, /* bytes; so many of them are kept back: */
    UNSAID = 5000,
    MOST = MEMORY / 4 / BODY, /* so many posts fit into a quarter of the memory, */
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
    check(limit_of(server_pid, RLIMIT_AS, NULL, &limit) == 0, "no limit to look at");
    limit.rlim_cur = limit.rlim_max;
    check(limit_of(server_pid, RLIMIT_AS, &limit, NULL) == 0, "the limit stays");
}

/* Says a large post but for its end, and waits until the server has read that. True: it waits for
 * the rest. False: it has refused it, as it should. */
static bool begin_post(struct client *c)
{
    static char bytes[BODY + 1024];
    int head = snprintf(bytes, sizeof(bytes),
                        "POST /guestbook HTTP/1.1\r\nHost: test\r\n"
                        "Content-Type: application/x-www-form-urlencoded\r\n"
                        "Content-Length: %d\r\n\r\n",
                        BODY);
    memset(bytes + head, 'x', BODY);
    static const char form[] = "guest-name=Ada&guest-remarks=hello&rest=";
    memcpy(bytes + head, form, strlen(form));
    try_to_say(c, bytes, (size_t)head + BODY - UNSAID);
    wait_until(is_read(c) || has_heard(c), SOON_MS, "nobody reads");
    if (!has_heard(c))
        return true;
    check(hear(c)->status == 503 && body_has(&c->answer, "short of memory") &&
              says_when_to_come_again(&c->answer) && !c->answer.kept,
          "status %d", c->answer.status);
    return false;
}

static void end_post(struct client *c)
{
    static char rest[UNSAID];
    memset(rest, 'x', UNSAID);
    say_bytes(c, rest, UNSAID);
    check(hear(c)->status == 303, "status %d", c->answer.status);
}

/* Begins so many posts. Returns how many the server takes, which come first. */
static int begin_posts(struct client **posts, int count)
{
    int taken = 0;
    for (int i = 0; i < count; i++) {
        struct client *c = dial();
        if (begin_post(c))
            posts[taken++] = c;
        else
            hang_up(c);
    }
    return taken;
}

/* Ends so many posts, or leaves in their middle, and waits until the server has noticed. */
static void end_posts(struct client **posts, int count, bool leave)
{
    for (int i = 0; i < count; i++) {
        if (leave) {
            say_no_more(posts[i]);
            hear_end(posts[i]);
        } else {
            end_post(posts[i]);
        }
        hang_up(posts[i]);
    }
}

static void what_does_not_fit_into_memory_is_503_and_all_others_are_served(void)
{
    struct client *posts[POSTS];
    start_with_little_memory();
    struct client *idle = keep_client();
    int taken = begin_posts(posts, POSTS);
    check(taken >= LEAST && taken <= MOST, "%d of %d", taken, POSTS);
    hear_end(idle); /* it makes way before anybody is refused */
    check(get("/guestbook")->status == 200, "no page");
    check(post("guest-name=Bob&guest-remarks=short")->status == 303, "a small post is refused");
    end_posts(posts, taken, false);

    for (int i = 0; i < 2; i++) { /* what was taken is given back, also by those who leave */
        taken = begin_posts(posts, LEAST);
        check(taken == LEAST, "%d of %d", taken, LEAST);
        end_posts(posts, taken, true);
    }
}
AGAINST(threading, what_does_not_fit_into_memory_is_503_and_all_others_are_served)
AGAINST(poll, what_does_not_fit_into_memory_is_503_and_all_others_are_served)
AGAINST(epoll, what_does_not_fit_into_memory_is_503_and_all_others_are_served)

/* ---- many clients that do not read ----------------------------------------------------------- */

enum { READERS = 400 };

/* Asks for six long pages and reads none of them. Returns the first one's status. */
static int ask_and_not_read(struct client *c)
{
#define ONE "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n"
    char line[] = "HTTP/1.1 200";
    say(c, ONE ONE ONE ONE ONE ONE);
    wait_until(recv(c->fd, line, strlen(line), MSG_PEEK | MSG_DONTWAIT) == (ssize_t)strlen(line),
               SOON_MS, "no answer");
    return atoi(strrchr(line, ' '));
}

/* Returns how many of these clients got a page. The others got a 503. */
static int begin_pages(struct client **readers)
{
    int pages = 0;
    for (int i = 0; i < READERS; i++) {
        readers[i] = dial();
        int status = ask_and_not_read(readers[i]);
        check(status == 200 || status == 503, "status %d", status);
        pages += status == 200;
    }
    return pages;
}

static void pages_that_nobody_reads_are_limited_and_all_others_are_served(void)
{
    struct client *readers[READERS];
    start_with_little_memory();
    fill_guestbook_with_quotes();
    int most = MEMORY / 4 / (int)get("/guestbook")->body_len;
    for (int round = 0; round < 2; round++) { /* what was taken is given back */
        int pages = begin_pages(readers);
        cr_log_info("%s: %d of %d clients got the beginning of a page", server_name, pages,
                    READERS);
        check(pages >= most / 5 && pages <= most, "%d, and not %d", pages, most);
        check(get("/guestbook?page=2")->status == 200, "a short page");
        check(get("/style.css")->status == 200, "a file");
        for (int i = 0; i < READERS; i++)
            reset(readers[i]);
        wait_until(get("/guestbook")->status == 200, SOON_MS, "nothing is given back");
    }
}
AGAINST(threading, pages_that_nobody_reads_are_limited_and_all_others_are_served)
AGAINST(poll, pages_that_nobody_reads_are_limited_and_all_others_are_served)
AGAINST(epoll, pages_that_nobody_reads_are_limited_and_all_others_are_served)
