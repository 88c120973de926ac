/* The server as a process: how it stops, what it leaves behind, and what it holds on to. */
#include "servers.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
    check(s.requests == 7 && s.connections == 6, "%llu on %llu", s.requests, s.connections);
}

EVERY_SERVER(sigint_ends_it_too_whoever_of_the_group_it_reaches)
{
    start_server();
    get("/");
    check(kill(-server_pid, SIGINT) == 0, "it is gone"); /* as Ctrl-C does */
    check(await_server().requests == 1, "not one request");
}

EVERY_SERVER(idle_clients_do_not_keep_it_from_stopping)
{
    start_server();
    struct client *silent = dial(), *kept = dial();
    say(kept, "GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    hear(kept);
    int64_t start = now_ms();
    stop_server();
    check(now_ms() - start < patience(2000), "after %lld ms", (long long)(now_ms() - start));
    hear_end(kept);
    hang_up(silent);
    hang_up(kept);
}

EVERY_SERVER(a_request_in_flight_is_finished_before_it_ends)
{
    start_redis();
    start_server("--timeout", "20"); /* 4 s for Redis */
    freeze_redis();
    struct client *c = dial();
    say(c, "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
    wait_until(is_read(c), SOON_MS, "it was not read");
    kill(server_pid, SIGTERM);
    wait_until(server_is_stopping(), 2000, "SIGTERM was not noticed");
    thaw_redis();
    check(hear(c)->status == 200 && body_has(&c->answer, "visitor number 1."), "%d: %s",
          c->answer.status, c->answer.body);
    check(!c->answer.kept, "kept, by a server that is about to end");
    hang_up(c);
    check(await_server().requests == 1, "not counted");
}

EVERY_SERVER(a_second_sigterm_ends_it_at_once)
{
    start_redis();
    start_server("--timeout", "100");
    freeze_redis();
    struct client *c = dial();
    say(c, "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
    wait_until(is_read(c), SOON_MS, "it was not read");
    kill(server_pid, SIGTERM);
    wait_until(server_is_stopping(), 2000, "SIGTERM was not noticed");
    kill(server_pid, SIGTERM);
    int status = await_exit(1000);
    check(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "wait status 0x%x", (unsigned)status);
    hang_up(c);
}

EVERY_SERVER(a_port_can_be_taken_again_at_once)
{
    char port[16];
    start_server();
    struct client *c = dial();
    say(c, "GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    hear(c); /* the server closes first, so its side stays behind in TIME_WAIT */
    hang_up(c);
    snprintf(port, sizeof(port), "%d", server_port);
    stop_server();
    start_server("--port", port);
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

ONLY_SERVER(forking, fifty_children_leave_no_zombie)
{
    pid_t children[ROOM];
    char states[ROOM];
    start_server();
    for (int i = 0; i < 50; i++)
        hang_up(dial());
    check_file(get("/"), "public/index.html");
    wait_until(count_zombies() == 0, 1000, "%d zombies", count_zombies());
    wait_until(list_children(server_pid, children, ROOM, states) == 0, 1000, "children stay");
}

ONLY_SERVER(forking, a_child_outlives_its_parent_but_does_not_hold_the_port)
{
    char port[16];
    start_server();
    struct client *c = dial();
    pid_t parent = server_pid;
    say(c, "GET / HTTP/1.1\r\n");
    wait_until(is_read(c), SOON_MS, "it was not read");
    kill(parent, SIGKILL);
    await_exit(1000);
    snprintf(port, sizeof(port), "%d", server_port);
    start_server("--port", port);
    check_file(get("/"), "public/index.html");
    say(c, "Host: test\r\n\r\n");
    check_file(hear(c), "public/index.html");
    hang_up(c);
    wait_until(waitpid(-parent, NULL, WNOHANG) > 0, 2000, "the child stays without a client");
}

ONLY_SERVER(forking, at_its_cap_idle_children_make_way)
{
    struct client *silent[4];
    start_server("--workers", "4");
    for (int i = 0; i < 4; i++)
        silent[i] = dial();
    int64_t start = now_ms();
    check_file(get("/"), "public/index.html");
    check(now_ms() - start < patience(2000), "after %lld ms", (long long)(now_ms() - start));
    for (int i = 0; i < 4; i++)
        hang_up(silent[i]);
}

ONLY_SERVER(threading, at_its_cap_idle_threads_make_way)
{
    struct client *silent[4];
    start_server("--workers", "4");
    for (int i = 0; i < 4; i++)
        silent[i] = dial();
    int64_t start = now_ms();
    check_file(get("/"), "public/index.html");
    check(now_ms() - start < patience(2000), "after %lld ms", (long long)(now_ms() - start));
    for (int i = 0; i < 4; i++)
        hang_up(silent[i]);
}

ONLY_SERVER(preforking, a_worker_that_dies_is_replaced_within_a_second)
{
    enum { WORKERS = 3 };
    pid_t before[ROOM], after[ROOM];
    char states[ROOM];
    start_server("--workers", "3");
    wait_until(list_children(server_pid, before, ROOM, states) == WORKERS, 1000, "not 3 workers");
    kill(before[0], SIGKILL);
    wait_until(kill(before[0], 0) < 0, 1000, "it was not reaped");
    wait_until(list_children(server_pid, after, ROOM, states) == WORKERS, 1000, "not replaced");
    for (int i = 0; i < 2 * WORKERS; i++)
        check_file(get("/"), "public/index.html");
}

ONLY_SERVER(preforking, no_worker_outlives_the_parent)
{
    pid_t workers[ROOM];
    char states[ROOM];
    start_server("--workers", "3");
    wait_until(list_children(server_pid, workers, ROOM, states) == 3, 1000, "not 3 workers");
    kill(server_pid, SIGKILL);
    await_exit(1000);
    for (int i = 0; i < 3; i++) /* orphans come to us */
        wait_until(waitpid(workers[i], NULL, WNOHANG) == workers[i], 2000, "one lives on");
}

/* ---- descriptors --------------------------------------------------------------------------- */

/* The process that accepts and serves; or accepts only, in chapter 2. */
static pid_t serving_process(void)
{
    pid_t children[ROOM];
    char states[ROOM];
    if (!server_is("preforking"))
        return server_pid;
    wait_until(list_children(server_pid, children, ROOM, states) == 1, 1000, "not one worker");
    return children[0];
}

static void three_hundred_requests(void)
{
    for (int i = 0; i < 60; i++) {
        get("/");
        get("/guestbook");
        get("/not-there");
        check(post("guest-name=&guest-remarks=")->status == 400, "request %d", i);
        struct client *c = dial();
        say(c, "GET /tux.png HTTP/1.1\r\nHost: test\r\n\r\n");
        reset(c);
    }
}

EVERY_SERVER(three_hundred_requests_leave_no_descriptor_behind)
{
    start_redis();
    if (server_is("preforking") || server_is("prethreading"))
        start_server("--workers", "1"); /* which has one Redis connection, like the others */
    else
        start_server();
    pid_t pid = serving_process();
    get("/guestbook");
    get("/");
    wait_until(count_descriptors(pid) < 16, 1000, "%d to begin with", count_descriptors(pid));
    int before = count_descriptors(pid);
    three_hundred_requests();
    wait_until(count_descriptors(pid) <= before, 2000, "%d at first, %d now", before,
               count_descriptors(pid));
}
