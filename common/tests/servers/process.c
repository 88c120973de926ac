/* The server as a process: how it stops, what it leaves behind, and what it holds on to. */
#include "tests/harness/harness.h"

#include <sys/resource.h>

/* ---- stopping ------------------------------------------------------------------------------ */

EVERY_SERVER(sigterm_ends_it_with_the_statistics_of_the_run)
{
    start_redis();
    start_server();
    for (int i = 0; i < 3; i++)
        get("/guestbook");
    get("/not-there");
    ask("nonsense\r\n\r\n");
    struct client *c = dial();
    say(c, "GET / HTTP/1.1\r\nHost: test\r\n\r\nHEAD / HTTP/1.1\r\nHost: test\r\n\r\n");
    hear(c);
    hear_head(c);
    hang_up(c);
    struct statistics s = stop_server(); /* and status 0, and no child left */
    check(s.told, "the last line is no statistics: %s", server_output());
    check(s.requests == 7 && s.connections == 6, "%llu on %llu", s.requests, s.connections);
    check(count_lines(server_output()) == 2 || !server_is_ours(), "a log that nobody wants: %s",
          server_output());
}

/* A signal mask survives execve(2). So a program that blocks signals hands that down. */
EVERY_SERVER(sigterm_ends_it_though_its_parent_blocked_it)
{
    run_under("env", "--block-signal=INT,TERM");
    start_server();
    get("/");
    stop_server();
}

EVERY_SERVER(sigint_ends_it_too_whoever_of_the_group_it_reaches)
{
    start_server();
    get("/");
    check(kill(-server_pid, SIGINT) == 0, "it is gone"); /* as Ctrl-C does */
    check(has_counted(await_server(), 1, 1), "not one request");
}

EVERY_SERVER(idle_clients_do_not_keep_it_from_stopping)
{
    start_server();
    dial(); /* who says nothing */
    struct client *kept = dial_and_say("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    hear(kept);
    int64_t start = now_ms();
    stop_server();
    check_took(start, 0, patience(2000));
    hear_end(kept);
}

EVERY_SERVER(a_request_in_flight_is_finished_before_it_ends)
{
    start_redis();
    start_server("--timeout", "20"); /* 4 s for Redis */
    freeze_redis();
    struct client *c = dial_and_be_read("GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
    kill(server_pid, SIGTERM);
    wait_until(server_is_stopping(), 2000, "SIGTERM was not noticed");
    thaw_redis();
    check(hear(c)->status == 200 && body_has(&c->answer, "visitor number 1."), "%d: %s",
          c->answer.status, c->answer.body);
    check(!c->answer.kept, "kept, by a server that is about to end");
    hang_up(c);
    check(has_counted(await_server(), 1, 1), "not counted");
}

/* Does the kernel refuse a new client, since nothing listens on the port any more? */
static bool nothing_listens(void)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)server_port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool refused = connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0;
    close(fd);
    return refused;
}

/* Chapter 1's only process may be with its client. */
CONCURRENT_SERVERS(a_client_that_comes_while_it_stops_is_refused_at_once)
{
    start_redis();
    start_server("--timeout", "20"); /* 4 s for Redis */
    freeze_redis();
    struct client *c = dial_and_be_read("GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
    kill(server_pid, SIGTERM);
    wait_until(nothing_listens(), 2000, "it still listens");
    thaw_redis();
    check(hear(c)->status == 200, "%d", c->answer.status);
    hang_up(c);
    await_server();
}

/* With a page in flight that Redis does not answer. */
static void check_second_ends_it(int first, int second)
{
    start_redis();
    start_server("--timeout", "100");
    freeze_redis();
    struct client *c = dial_and_be_read("GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
    kill(server_pid, first);
    wait_until(server_is_stopping(), 2000, "%s was not noticed", strsignal(first));
    kill(server_pid, second);
    int status = await_exit(1000);
    check(WIFSIGNALED(status) && WTERMSIG(status) == second, "wait status 0x%x", (unsigned)status);
    hang_up(c);
}

EVERY_SERVER(a_second_sigterm_ends_it_at_once)
{
    check_second_ends_it(SIGTERM, SIGTERM);
}

EVERY_SERVER(a_second_signal_of_the_other_kind_ends_it_too)
{
    check_second_ends_it(SIGINT, SIGTERM);
}

/* So a shell's script starts what it does not wait for: `./epoll &`. */
EVERY_SERVER(a_second_signal_ends_it_though_its_parent_ignored_them)
{
    run_under("env", "--ignore-signal=INT,TERM");
    check_second_ends_it(SIGINT, SIGINT);
}

/* As after `./epoll | head -1`. */
EVERY_SERVER(a_server_whose_statistics_nobody_reads_ends_in_peace)
{
    start_server();
    get("/");
    stop_listening();
    kill(server_pid, SIGTERM);
    int status = await_exit(SOON_MS);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "wait status 0x%x", (unsigned)status);
}

/* A shell that ignores SIGCHLD hands that down to all it starts, and then there is nobody to wait
 * for. */
static void it_waits_for_its_children_though_its_parent_would_not(void)
{
    enum { MOST = 3 };
    run_under("env", "--ignore-signal=CHLD");
    start_server("--workers", "3");
    for (int i = 0; i < 2 * MOST; i++)
        check_file(get("/"), "public/index.html");
    stop_server();
}
AGAINST(forking, it_waits_for_its_children_though_its_parent_would_not)
AGAINST(preforking, it_waits_for_its_children_though_its_parent_would_not)

/* Ctrl-Z and fg, or a debugger: what the kernel has received meanwhile came in time. */
EVERY_SERVER(whoever_speaks_while_it_is_stopped_is_answered)
{
    enum { MANY = 400, FEW = 8, KEPT_MS = 2000 };
    static struct client *crowd[MANY];
    bool is_loop = server_is_loop(); /* more than there are in one round */
    int count = server_is("iterative") ? 1 : is_loop ? MANY : FEW;
    start_server("--keep-alive", "2");
    await_workers(FEW);
    for (int i = 0; i < count; i++) {
        crowd[i] = dial();
        say(crowd[i], "GET / HTTP/1.1\r\nHost: test\r\n\r\n");
        check(is_loop || hear(crowd[i])->kept, "it is not kept"); /* while nobody else waits */
    }
    for (int i = 0; i < count && is_loop; i++) /* all at once, for they are kept for 2 s only */
        check(hear(crowd[i])->kept, "it is not kept");
    check(kill(-server_pid, SIGSTOP) == 0, "it is gone");
    for (int i = 0; i < count; i++)
        say(crowd[i], "GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    poll(NULL, 0, KEPT_MS + 100); /* the clock is what this is about */
    kill(-server_pid, SIGCONT);
    for (int i = 0; i < count; i++) {
        check_file(hear(crowd[i]), "public/index.html");
        hang_up(crowd[i]);
    }
}

/* A page's questions to a Redis that answers each only just in time. */
ONLY_SERVER(iterative, when_its_time_to_stop_is_over_redis_is_asked_nothing_more)
{
    start_stand_in();
    start_server("--timeout", "20"); /* 4 s for Redis */
    stand_in((struct manner){.at = "INCR", .then = FREEZES});
    dial_and_say("GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
    wait_until(stand_in_is_frozen(), SOON_MS, "it asks nothing");
    kill(server_pid, SIGTERM);
    wait_until(server_is_stopping(), 2000, "SIGTERM was not noticed");
    int64_t start = now_ms();
    poll(NULL, 0, 2500);
    stand_in((struct manner){.at = "GET", .then = FREEZES});
    wait_until(stand_in_is_frozen(), SOON_MS, "it asks nothing more");
    poll(NULL, 0, (int)(start + 5200 - now_ms())); /* in both the clock is what this is about */
    stand_in((struct manner){.at = "LRANGE", .then = FREEZES});
    await_server();
    check(!stand_in_is_frozen(), "it asked on");
    check_took(start, 0, 5200 + patience(2000));
}

/* The last byte of a post comes just before the five seconds are over, and Redis takes its time. */
EVERY_SERVER(a_post_that_redis_was_asked_to_store_is_answered_though_time_is_up)
{
    static const char form[] = "guest-name=Ada&guest-remarks=late!";
    char head[256];
    start_redis();
    start_server();
    check(get("/guestbook")->status == 200, "not even before"); /* so Redis is connected */
    struct client *c = dial();
    snprintf(head, sizeof(head),
             "POST /guestbook HTTP/1.1\r\nHost: test\r\nContent-Length: %zu\r\n"
             "Content-Type: application/x-www-form-urlencoded\r\n\r\n",
             strlen(form));
    say_and_be_read(c, head);
    kill(server_pid, SIGTERM);
    wait_until(server_is_stopping(), 2000, "SIGTERM was not noticed");
    int64_t start = now_ms();
    poll(NULL, 0, 4300);
    freeze_redis();
    say(c, form);
    poll(NULL, 0, (int)(start + 5700 - now_ms())); /* in both the clock is what this is about */
    thaw_redis();
    check(hear(c)->status == 303, "status %d", c->answer.status);
    check(redis_number("LLEN guestbook:entries") == 1, "not stored");
    hang_up(c);
    await_server();
}

/* CPU time of the processes that this one has waited for. */
static long cpu_ms_of_children(void)
{
    struct rusage r;
    getrusage(RUSAGE_CHILDREN, &r);
    return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000 +
           (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1000;
}

EVERY_SERVER(a_client_that_never_finishes_delays_the_end_by_five_seconds_at_most)
{
    setenv("TSAN_OPTIONS", "report_thread_leaks=0", 1); /* chapter 5's thread ends with it */
    start_server();                                     /* whose clients have 10 s for a request */
    struct client *c = dial_and_be_read("GET / HTTP/1.1\r\n");
    int64_t start = now_ms();
    stop_server();
    check_took(start, 3000, 5000 + patience(1000));
    check(cpu_ms_of_children() < patience(1000), "whoever had nothing to do did not sleep");
    hear_end(c);
}

EVERY_SERVER(a_port_can_be_taken_again_at_once)
{
    start_server();
    struct client *c = dial_and_say("GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    hear(c); /* the server closes first, so its side stays behind in TIME_WAIT */
    hang_up(c);
    stop_server();
    start_server_again();
    check_file(get("/"), "public/index.html");
}

/* ---- children ------------------------------------------------------------------------------ */

enum { ROOM = 64 };

static int count_zombies(void)
{
    pid_t children[ROOM];
    char states[ROOM];
    int zombies = 0;
    for (int i = list_children(server_pid, children, ROOM, states) - 1; i >= 0; i--)
        zombies += states[i] == 'Z';
    return zombies;
}

/* They end together: a signal does not come for each of them. */
ONLY_SERVER(forking, fifty_children_leave_no_zombie)
{
    enum { CHILDREN = 50 };
    struct client *clients[CHILDREN];
    start_server();
    for (int i = 0; i < CHILDREN; i++)
        clients[i] = dial();
    wait_until(count_children() == CHILDREN, SOON_MS, "not fifty");
    for (int i = 0; i < CHILDREN; i++)
        hang_up(clients[i]);
    check_file(get("/"), "public/index.html");
    wait_until(count_zombies() == 0, 1000, "%d zombies", count_zombies());
    wait_until(count_children() == 0, 1000, "children stay");
}

/* Page faults of all children so far that have ended: cminflt of proc_pid_stat(5). */
static unsigned long faults_of_children(void)
{
    char path[40];
    unsigned long faults = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)server_pid);
    const char *fields = strrchr(read_whole(path, NULL), ')');
    check(sscanf(fields, ") %*c %*d %*d %*d %*d %*d %*u %*u %lu", &faults) == 1, "%s", fields);
    return faults;
}

/* Free memory that is left in the parent's heap must not be what each child works through. */
ONLY_SERVER(forking, a_crowd_that_has_gone_makes_no_child_dearer)
{
    enum { CROWD = 500, REQUESTS = 50, MORE = 5 };
    struct client *clients[CROWD];
    unsigned long faults[2];
    if (server_has_sanitizer())
        cr_skip_test("a sanitizer has pages of its own");
    start_server();
    for (int round = 0; round < 2; round++) {
        wait_until(count_children() == 0, SOON_MS, "some stay");
        unsigned long before = faults_of_children();
        for (int i = 0; i < REQUESTS; i++)
            check_file(get("/"), "public/index.html");
        wait_until(count_children() == 0, SOON_MS, "some stay");
        faults[round] = (faults_of_children() - before) / REQUESTS;
        for (int i = 0; i < CROWD; i++)
            clients[i] = dial();
        wait_until(count_children() == CROWD, SOON_MS, "fewer");
        for (int i = 0; i < CROWD; i++)
            hang_up(clients[i]);
    }
    check(faults[1] <= faults[0] + MORE, "%lu page faults a child, before it %lu", faults[1],
          faults[0]);
}

ONLY_SERVER(forking, a_child_outlives_its_parent_but_does_not_hold_the_port)
{
    start_server();
    struct client *c = dial();
    pid_t parent = server_pid;
    say_and_be_read(c, "GET / HTTP/1.1\r\n");
    kill(parent, SIGKILL);
    await_exit(1000);
    start_server_again();
    check_file(get("/"), "public/index.html");
    say(c, "Host: test\r\n\r\n");
    check_file(hear(c), "public/index.html");
    hang_up(c);
    wait_until(waitpid(-parent, NULL, WNOHANG) > 0, 2000, "the child stays without a client");
}

/* Nobody would ask it to stop later, and a client that asks now and then could keep it for ever. */
ONLY_SERVER(forking, a_child_whose_parent_is_killed_ends_with_its_request)
{
    start_server();
    struct client *kept = dial();
    pid_t parent = server_pid;
    say(kept, "GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    check(hear(kept)->kept, "not kept, though nobody waits");
    kill(parent, SIGKILL);
    await_exit(1000);
    wait_until(waitpid(-parent, NULL, WNOHANG) > 0, 2000, "the child stays with its client");
    hear_end(kept);
}

static void at_its_cap_idle_clients_make_way(void)
{
    struct client *silent[4];
    start_server("--workers", "4");
    for (int i = 0; i < 4; i++)
        silent[i] = dial();
    int64_t start = now_ms();
    check_file(get("/"), "public/index.html");
    check_took(start, 0, patience(2000));
    for (int i = 0; i < 4; i++)
        hang_up(silent[i]);
}
AGAINST(forking, at_its_cap_idle_clients_make_way)
AGAINST(threading, at_its_cap_idle_clients_make_way)

ONLY_SERVER(preforking, a_worker_that_dies_is_replaced_within_a_second)
{
    enum { WORKERS = 3 };
    pid_t before[ROOM];
    start_server("--workers", "3");
    wait_until(list_children(server_pid, before, ROOM, NULL) == WORKERS, 1000, "not 3 workers");
    kill(before[0], SIGKILL);
    wait_until(kill(before[0], 0) < 0, 1000, "it was not reaped");
    wait_until(count_children() == WORKERS, 1000, "not replaced");
    for (int i = 0; i < 2 * WORKERS; i++)
        check_file(get("/"), "public/index.html");
}

/* Kills every worker of the server that it sees, for so long; returns how many. */
static int kill_workers_as_they_come(int ms)
{
    pid_t workers[ROOM], killed[1024];
    int count = 0;
    for (int64_t end = now_ms() + ms; now_ms() < end; poll(NULL, 0, 1))
        for (int i = list_children(server_pid, workers, ROOM, NULL) - 1; i >= 0; i--) {
            int known = 0;
            while (known < count && killed[known] != workers[i])
                known++;
            check(count < 1024, "a storm of forks: more than 1,024 in %d ms", ms);
            if (known == count && kill(workers[i], SIGKILL) == 0)
                killed[count++] = workers[i];
        }
    return count;
}

/* 100, 200, 400, 800, 1600 ms: five rounds of forks in three seconds, after the first. */
ONLY_SERVER(preforking, workers_that_die_at_once_are_replaced_with_growing_patience)
{
    enum { WORKERS = 2, WATCHED_MS = 3000 };
    start_server("--workers", "2");
    int count = kill_workers_as_they_come(WATCHED_MS);
    check(count >= 3 * WORKERS && count <= 7 * WORKERS, "%d forks in %d ms", count, WATCHED_MS);
    wait_until(count_children() == WORKERS, 4000, "it gave up");
    check_file(get("/"), "public/index.html");
}

/* They share one reason, and one patience: 100 ms, whether it is one of them or all. */
ONLY_SERVER(preforking, young_workers_that_die_one_after_another_are_replaced_within_a_second)
{
    enum { WORKERS = 8 };
    pid_t before[ROOM], after[ROOM];
    start_server("--workers", "8");
    wait_until(list_children(server_pid, before, ROOM, NULL) == WORKERS, 1000, "not 8 workers");
    int64_t first = now_ms();
    for (int i = 0; i < WORKERS; i++) {
        kill(before[i], SIGKILL);
        wait_until(kill(before[i], 0) < 0, 1000, "it was not reaped");
    }
    wait_until(list_children(server_pid, after, ROOM, NULL) == WORKERS, 1000,
               "not replaced %lld ms after the first death", (long long)(now_ms() - first));
}

static void await_orphans(const pid_t *orphans, int count, int limit_ms)
{
    for (int i = 0; i < count; i++) /* orphans come to us */
        wait_until(waitpid(orphans[i], NULL, WNOHANG) == orphans[i], limit_ms, "one lives on");
}

ONLY_SERVER(preforking, no_worker_outlives_the_parent)
{
    pid_t workers[ROOM];
    start_server("--workers", "3");
    wait_until(list_children(server_pid, workers, ROOM, NULL) == 3, 1000, "not 3 workers");
    kill(server_pid, SIGKILL);
    await_exit(1000);
    await_orphans(workers, 3, 2000);
}

/* Not even for a client that it may serve for hours: the worker would hold the port as long. */
ONLY_SERVER(preforking, a_worker_in_the_middle_of_a_request_outlives_the_parent_by_five_seconds)
{
    pid_t workers[ROOM];
    start_server("--workers", "3", "--timeout", "100");
    wait_until(list_children(server_pid, workers, ROOM, NULL) == 3, 1000, "not 3 workers");
    struct client *c = dial_and_be_read("GET / HTTP/1.1\r\n");
    kill(server_pid, SIGKILL);
    await_exit(1000);
    await_orphans(workers, 3, 7000);
    hear_end(c);
    hang_up(c);
    start_server_again();
    check_file(get("/"), "public/index.html");
}

/* ---- crashes ------------------------------------------------------------------------------- */

/* Clients that have said half a request, and been read; the other half is theirs to say. */
static struct client **dial_and_say_half(int count)
{
    struct client **clients = calloc((size_t)count, sizeof(struct client *));
    for (int i = 0; i < count; i++) {
        clients[i] = dial_and_be_read("GET / HTTP/1.1\r\n");
    }
    return clients;
}

static void say_the_other_half(struct client *c)
{
    say(c, "Host: test\r\nConnection: close\r\n\r\n");
    check_file(hear(c), "public/index.html");
    hang_up(c);
}

/* A fault that is meant to be one: no file for its memory, and no sanitizer to explain it. */
static void expect_a_crash(void)
{
    const struct rlimit none = {0};
    setrlimit(RLIMIT_CORE, &none);
    setenv("ASAN_OPTIONS", "handle_segv=0", 1);
    setenv("TSAN_OPTIONS", "handle_segv=0", 1);
}

enum { HALF_DONE = 5 };

ONLY_SERVER(forking, a_child_that_crashes_costs_one_client)
{
    pid_t children[ROOM];
    expect_a_crash();
    start_server();
    struct client **clients = dial_and_say_half(HALF_DONE);
    int count = list_children(server_pid, children, ROOM, NULL), hit = -1;
    check(count == HALF_DONE, "%d children", count);
    kill(children[2], SIGSEGV);
    wait_until(kill(children[2], 0) < 0, 1000, "it was not reaped");
    for (int i = 0; i < HALF_DONE; i++) {
        if (!has_heard(clients[i])) {
            say_the_other_half(clients[i]);
            continue;
        }
        check(hit < 0, "clients %d and %d have lost their child", hit, i);
        hit = i;
        hear_end(clients[i]);
        hang_up(clients[i]);
    }
    check(hit >= 0, "nobody noticed");
    check_file(get("/"), "public/index.html");
}

ONLY_SERVER(threading, one_fault_ends_all_clients)
{
    expect_a_crash();
    start_server();
    struct client **clients = dial_and_say_half(HALF_DONE);
    kill(server_pid, SIGSEGV);
    int status = await_exit(2000);
    check(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "wait status 0x%x", (unsigned)status);
    for (int i = 0; i < HALF_DONE; i++) {
        hear_end(clients[i]);
        hang_up(clients[i]);
    }
}

/* ---- descriptors --------------------------------------------------------------------------- */

static void three_hundred_requests(void)
{
    for (int i = 0; i < 50; i++) {
        get("/");
        get("/guestbook");
        get("/not-there");
        check(ask("GET /tux.png HTTP/1.1\r\nHost: test\r\nIf-None-Match: *\r\n"
                  "Connection: close\r\n\r\n")
                      ->status == 304,
              "request %d", i);
        check(post("guest-name=&guest-remarks=")->status == 400, "request %d", i);
        get(i % 2 ? "/status" : "/status.json");
        struct client *c = dial_and_say("GET /tux.png HTTP/1.1\r\nHost: test\r\n\r\n");
        reset(c);
    }
}

/* Once there are threads, to enlarge the table they share stops all who open something. */
static void there_is_room_for_all_descriptors_before_the_first_client(void)
{
    start_server("--workers", "700");
    int size = (int)process_number(server_pid, "\nFDSize:");
    int needed = 700 + (server_is("prethreading") ? 700 : 64) + count_descriptors(server_pid);
    check(size >= needed, "room for %d, of %d", size, needed);
}
AGAINST(threading, there_is_room_for_all_descriptors_before_the_first_client)
AGAINST(prethreading, there_is_room_for_all_descriptors_before_the_first_client)

EVERY_SERVER(three_hundred_requests_leave_no_descriptor_behind)
{
    start_redis();
    let_it_look_at_itself();
    start_server(POOL_OF("1")); /* which has one Redis connection, like the others */
    pid_t pid = serving_process();
    get("/guestbook");
    get("/");
    int few = server_is_ours() ? 16 : 64; /* the runtime of a language has some of its own */
    wait_until(count_descriptors(pid) < few, 1000, "%d to begin with", count_descriptors(pid));
    int before = count_descriptors(pid);
    three_hundred_requests();
    wait_until(count_descriptors(pid) <= before, 2000, "%d at first, %d now", before,
               count_descriptors(pid));
}
