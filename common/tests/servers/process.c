/* The server as a process: how it stops, what it leaves behind, and what it holds on to. */
#include "tests/harness/harness.h"

/* ---- stopping ------------------------------------------------------------------------------ */

/* A signal mask survives execve(2). So a program that blocks signals hands that down. */
EVERY_SERVER(sigint_ends_it_whoever_of_the_group_it_reaches_though_its_parent_blocked_it)
{
    run_under("env", "--block-signal=INT,TERM");
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
    check_took(start, 0, patience(4000)); /* who is in the middle of a request has five seconds */
    hear_end(kept);
}

/* Has the server taken notice of a first SIGTERM? Then the next one would be the default one,
 * neither caught nor blocked. */
static bool server_is_stopping(void)
{
    unsigned long long blocked = 0, caught = 0;
    const char *status = read_process(server_pid, "status"), *mask = strstr(status, "\nSigBlk:");
    const char *handled = strstr(status, "\nSigCgt:");
    return mask && handled && sscanf(mask, "\nSigBlk: %llx", &blocked) == 1 &&
           sscanf(handled, "\nSigCgt: %llx", &caught) == 1 &&
           !((blocked | caught) & 1ULL << (SIGTERM - 1));
}

/* A post that Redis sits on, and the server has heard of this signal. */
static struct client *signal_in_flight(int signal)
{
    start_redis();
    start_server("--timeout", "100"); /* 20 s for Redis */
    freeze_redis();
    struct client *c =
        dial_and_be_read("POST /guestbook HTTP/1.1\r\nHost: test\r\nContent-Length: 29\r\n"
                         "Content-Type: application/x-www-form-urlencoded\r\n\r\n"
                         "guest-name=a&guest-remarks=in");
    kill(server_pid, signal);
    wait_until(server_is_stopping(), SOON_MS, "%s was not noticed", strsignal(signal));
    return c;
}

/* Even when the five seconds are over, if Redis takes its time. And who comes meanwhile is refused
 * at once, though chapter 1's only process may be with its client. */
EVERY_SERVER(a_request_in_flight_is_finished_before_it_ends)
{
    enum { LATE_MS = 5300 };
    struct client *c = signal_in_flight(SIGTERM);
    int64_t start = now_ms();
    if (!server_is("iterative"))
        wait_until(!is_reached_at("127.0.0.1"), SOON_MS, "it still listens");
    poll(NULL, 0, (int)(start + LATE_MS - now_ms())); /* the clock is what this is about */
    thaw_redis();
    check(hear(c)->status == 303, "status %d", c->answer.status);
    check(!c->answer.kept, "kept, by a server that is about to end");
    check(redis_number("LLEN guestbook:entries") == 1, "not stored");
    hang_up(c);
    check(await_server().requests == 1 || !server_is_ours(), "not counted");
}

/* So a shell's script starts what it does not wait for: `./epoll &`. */
EVERY_SERVER(a_second_signal_ends_it_at_once_though_its_parent_ignored_them)
{
    run_under("env", "--ignore-signal=INT,TERM");
    struct client *c = signal_in_flight(SIGINT);
    kill(server_pid, SIGTERM);
    int status = await_exit(SOON_MS);
    check(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "wait status 0x%x", (unsigned)status);
    hang_up(c);
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

EVERY_SERVER(a_client_that_never_finishes_delays_the_end_by_five_seconds_at_most)
{
    setenv("TSAN_OPTIONS", "report_thread_leaks=0", 1); /* chapter 5's thread ends with it */
    start_server();                                     /* whose clients have 10 s for a request */
    struct client *c = dial_and_be_read("GET / HTTP/1.1\r\n");
    int64_t start = now_ms();
    struct statistics s = stop_server();
    check_took(start, 3000, patience(8000)); /* and not the 10 s of a request */
    check(s.cpu_s < (double)patience(1), "whoever had nothing to do did not sleep");
    hear_end(c);
}

/* Somebody may set it back an hour just then. strace tells which clock ends a wait (futex(2)). */
static void a_stop_does_not_ask_the_wall_clock(void)
{
    if (server_has_sanitizer() || system("strace -qqo /dev/null true 2>/dev/null") != 0)
        cr_skip_test("a sanitizer has waits of its own, or strace is not installed");
    run_under("strace", "-DD", "-fqo", place("waits"), "-e", "trace=futex");
    start_server();
    struct client *c = dial_and_be_read("GET / HTTP/1.1\r\n");
    check(kill(server_pid, SIGTERM) == 0, "%s", strerror(errno));
    wait_until(!is_reached_at("127.0.0.1"), SOON_MS, "it listens on");
    say(c, "Host: test\r\n\r\n");
    check_file(hear(c), "public/index.html");
    await_server();
    for (const char *at = read_whole(place("waits"), NULL); (at = strstr(at, "_REALTIME, ")); at++)
        check(at[strcspn(at, "{\n")] != '{', "%.90s", at);
}
AGAINST(threading, a_stop_does_not_ask_the_wall_clock)
AGAINST(prethreading, a_stop_does_not_ask_the_wall_clock)

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
    wait_until(count_zombies() == 0, 3000, "%d zombies", count_zombies());
    wait_until(count_children() == 0, SOON_MS, "children stay");
}

/* It ends with its request: nobody would ask it to stop later, and a client that asks now and then
 * could keep it for ever. */
ONLY_SERVER(forking, a_child_outlives_its_parent_but_does_not_hold_the_port)
{
    start_server("--keep-alive", "60");
    struct client *kept = dial_and_say("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    check(hear(kept)->kept, "not kept, though nobody waits");
    struct client *c = dial_and_be_read("GET / HTTP/1.1\r\n");
    pid_t parent = server_pid;
    kill(parent, SIGKILL);
    await_exit(SOON_MS);
    hear_end(kept);
    start_server_again();
    check_file(get("/"), "public/index.html");
    say(c, "Host: test\r\n\r\n");
    check_file(hear(c), "public/index.html");
    hang_up(c);
    for (int i = 0; i < 2; i++)
        wait_until(waitpid(-parent, NULL, WNOHANG) > 0, SOON_MS, "a child stays");
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
    wait_until(count_children() == WORKERS, SOON_MS, "it gave up");
    check_file(get("/"), "public/index.html");
}

ONLY_SERVER(preforking, no_worker_outlives_the_parent)
{
    pid_t workers[ROOM];
    start_server("--workers", "3");
    wait_until(list_children(server_pid, workers, ROOM, NULL) == 3, SOON_MS, "not 3 workers");
    kill(server_pid, SIGKILL);
    await_exit(SOON_MS);
    for (int i = 0; i < 3; i++) /* orphans come to us */
        wait_until(waitpid(workers[i], NULL, WNOHANG) == workers[i], SOON_MS, "one lives on");
}
