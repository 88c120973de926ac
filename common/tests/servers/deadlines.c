/* Deadlines: how long a server waits for a client, at least and at most. The least is the time that
 * the client was promised; the most is a second more, which covers the tick of chapters 1 to 5.
 *
 * What follows --timeout is in net.h: a fresh connection that says nothing gets half of it,
 * lingering a tenth.
 */
#include "tests/harness/harness.h"

#define GET_HOME "GET / HTTP/1.1\r\nHost: test\r\n\r\n"

enum {
    EARLY_MS = 100, /* a byte on its way is in two sockets, and a server's clock is coarse */
    LATE_MS = 1000,
};

static void check_deadline(int64_t start, int64_t deadline_ms)
{
    check_took(start, deadline_ms - EARLY_MS, deadline_ms + patience(LATE_MS));
}

/* ---- a request ----------------------------------------------------------------------------- */

/* Says a request a byte at a time, and then the last byte of it again and again, never too late
 * for the gap between two to be noticed. Returns when there is an answer. */
static void drip(struct client *c, const char *request)
{
    int64_t limit = now_ms() + patience(SOON_MS);
    for (const char *at = request; !has_heard(c); poll(NULL, 0, 10)) {
        check(now_ms() < limit, "it was not cut off");
        say_bytes(c, at, 1);
        at += at[1] != '\0';
    }
}

static void check_cut_off(struct client *c, const char *request)
{
    int64_t start = now_ms();
    drip(c, request);
    check_deadline(start, 500);
    check(hear(c)->status == 408 && !c->answer.kept, "%d to %s", c->answer.status, request);
    hang_up(c);
}

EVERY_SERVER(a_request_that_takes_too_long_is_cut_off_by_its_total_with_408)
{
    static const char *const requests[] = {
        "GET /aaaa",
        "GET / HTTP/1.1\r\nHost: test\r\nX: a",
        "POST /guestbook HTTP/1.1\r\nHost: test\r\nContent-Length: 9999\r\n\r\na",
        "POST /guestbook HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\nff\r\na",
    };
    start_server("--timeout", "0.5");
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
        check_cut_off(dial(), requests[i]);
}

EVERY_SERVER(the_second_request_of_a_connection_has_the_same_time_as_the_first)
{
    start_server("--timeout", "0.5", "--keep-alive", "60");
    struct client *c = dial_and_say("HEAD / HTTP/1.1\r\nHost: test\r\n\r\n");
    check(hear_head(c)->kept, "not kept");
    check_cut_off(c, "GET / HTTP/1.1\r\nHost: test\r\nX: a"); /* its 408 has a body */
}

/* An empty line before a request is skipped (RFC 9112, 2.2), but not for ever: with its first byte
 * a request has begun, and is answered when its time is over. */
EVERY_SERVER(an_empty_line_is_the_first_byte_of_a_request)
{
    start_server("--timeout", "0.6", "--keep-alive", "60");
    for (int kept = 0; kept < 2; kept++) {
        struct client *c = dial();
        if (kept) {
            say(c, GET_HOME);
            check(hear(c)->kept, "not kept");
        }
        int64_t start = now_ms();
        say(c, "\r\n");
        check(hear(c)->status == 408, "status %d", c->answer.status);
        check_deadline(start, 600);
        hang_up(c);
    }
}

/* ---- silence ------------------------------------------------------------------------------- */

static void check_fresh(const char *keep_alive)
{
    start_server("--timeout", "1", "--keep-alive", keep_alive);
    int64_t start = now_ms();
    struct client *c = dial();
    hear_end(c);
    check_deadline(start, 500);
    hang_up(c);
    stop_server();
}

EVERY_SERVER(a_new_connection_that_says_nothing_is_closed_silently_whatever_keep_alive_is)
{
    check_fresh("0");
    check_fresh("60");
}

EVERY_SERVER(a_kept_connection_is_closed_silently_when_its_time_is_over)
{
    start_server("--timeout", "0.2", "--keep-alive", "0.8");
    struct client *c = dial();
    int64_t start = now_ms(); /* before: it idles as soon as it has sent its response */
    say(c, GET_HOME);
    check(hear(c)->kept, "not kept");
    hear_end(c);
    check_deadline(start, 800);
}

/* ---- clients that do not read -------------------------------------------------------------- */

/* As many responses as two sockets do not hold, asked for at once and never read. The time runs
 * from the last byte that fitted; while the client's kernel says that it has no room, the server's
 * makes some, for up to a few seconds. */
static void check_given_up(int64_t size, int requests)
{
    start_server("--timeout", "0.5", "--root", make_root_with_file(size));
    struct client *c = dial();
    for (int i = 0; i < requests; i++)
        say(c, "GET /file.bin HTTP/1.1\r\nHost: test\r\n\r\n");
    int64_t before = 0, written, limit = now_ms() + patience(3 * SOON_MS);
    int64_t looked = now_ms(), last_look, progress = looked; /* at the earliest */
    for (; !is_closed_by_server(c) && (written = count_written(c)) >= 0; poll(NULL, 0, 10)) {
        last_look = looked;
        looked = now_ms();
        check(looked < limit, "it still waits for its client to read");
        if (written != before)
            progress = last_look;
        before = written;
    }
    check_deadline(progress, 500);
    struct inet_diag_msg end;
    wait_until(!find_server_end(c, &end), 1000, "the kernel still offers %u bytes",
               end.idiag_wqueue);
    uint64_t got = hear_rest(c);
    check(got < (uint64_t)(size * requests), "all %llu bytes", (unsigned long long)got);
    hang_up(c);
}

EVERY_SERVER(a_client_that_never_reads_is_given_up)
{
    check_given_up(64 * 1024 * 1024, 1);
}

EVERY_SERVER(a_client_that_asks_on_and_on_and_never_reads_is_given_up)
{
    check_given_up(64 * 1024, 1000);
}

/* The time of the log's only line. */
static time_t time_of_log(void)
{
    struct tm utc = {0};
    const char *at = strchr(server_output(), '[');
    check(at && strptime(at, "[%d/%b/%Y:%H:%M:%S +0000]", &utc), "%s", server_output());
    return timegm(&utc);
}

EVERY_SERVER(the_log_tells_when_a_response_was_sent_whole)
{
    start_server("--verbose", "--root", make_root_with_file(64 * 1024 * 1024));
    struct client *c = dial();
    say(c, "GET /file.bin HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    wait_until(has_heard(c), SOON_MS, "no response has begun");
    for (time_t begun = time(NULL); time(NULL) <= begun;)
        poll(NULL, 0, 50); /* the clock is what this is about */
    time_t read_on = time(NULL);
    hear_rest(c);
    hang_up(c);
    stop_server();
    check(time_of_log() >= read_on, "%lld s before", (long long)(read_on - time_of_log()));
}

/* It takes 2 KB of its responses now and then: that is progress, which keeps a connection for as
 * long as nobody else needs its worker. */
static void check_slow_reader(int64_t size, int requests)
{
    enum { SOME_BYTES = 2000, EVERY_MS = 400, LIMIT_MS = 8000, MOST = 100 };
    static const char request[] = "GET /file.bin HTTP/1.1\r\nHost: test\r\n\r\n";
    char bytes[SOME_BYTES], all[MOST * sizeof(request)];
    const char *root = make_root_with_file(size);
    start_server("--timeout", "2", "--root", root, "--workers", "1");
    struct client *slow = dial_with_room(SOME_BYTES);
    for (int i = 0; i < requests; i++)
        memcpy(all + (size_t)i * strlen(request), request, strlen(request));
    say_bytes(slow, all, (size_t)requests * strlen(request));
    wait_until(has_heard(slow), SOON_MS, "it is not served");
    struct client *patient = dial_and_say("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    int64_t start = now_ms();
    for (struct pollfd served = {.fd = patient->fd, .events = POLLIN};
         poll(&served, 1, EVERY_MS) == 0;) {
        check(now_ms() - start < patience(LIMIT_MS), "the slow reader keeps the worker");
        if (recv(slow->fd, bytes, sizeof(bytes), MSG_DONTWAIT) < 0 && errno != EAGAIN)
            break; /* it was cut off */
    }
    check(hear(patient)->status == 200, "status %d", patient->answer.status);
    hang_up(patient);
    hang_up(slow);
}

BLOCKING_SERVERS(who_reads_too_slowly_makes_way)
{
    check_slow_reader(64 * 1024 * 1024, 1);
}

/* Each response by itself is taken within a second, but a hundred of them are not. */
BLOCKING_SERVERS(who_reads_small_responses_too_slowly_makes_way)
{
    check_slow_reader(4000, 99);
}

/* ---- lingering ----------------------------------------------------------------------------- */

/* Has a request refused whose body goes on and on, and says so much of it every 10 ms. */
static void check_lingering(size_t piece, int pause_ms)
{
    static char body[64 * 1024];
    struct client *c = dial();
    int64_t start = now_ms(); /* before: it lingers as soon as it has sent its response */
    say(c, "POST /guestbook HTTP/1.1\r\nHost: test\r\nContent-Length: 99999999\r\n\r\n");
    check(hear(c)->status == 413, "status %d", c->answer.status);
    while (try_to_say(c, body, piece)) {
        check(now_ms() - start < patience(SOON_MS), "it listens for ever to what it has refused");
        poll(NULL, 0, pause_ms);
    }
    check_deadline(start, 500);
    hang_up(c);
}

EVERY_SERVER(a_refused_client_that_goes_on_is_listened_to_for_its_time_and_no_longer)
{
    start_server("--timeout", "5");
    check_lingering(1, 10);
    check_lingering(64 * 1024, 0);
}

/* How many clients are listened to, though nothing is to be answered any more. */
static int count_lingering(void)
{
    const char *now = strstr(get("/status.json")->body, "\"now\""), *name = "\"lingering\": ";
    const char *count = now ? strstr(now, name) : NULL;
    check(count, "the status does not say who lingers");
    return atoi(count + strlen(name));
}

EVERY_SERVER(a_refused_client_that_leaves_is_listened_to_no_longer)
{
    let_it_look_at_itself();
    start_server("--timeout", "60"); /* six seconds for lingering */
    if (!server_is_ours() && get("/status.json")->status != 200)
        cr_skip_test("it has no /status.json, and need not have");
    struct client *c = dial();
    int64_t start = now_ms();
    say(c, "nonsense\r\n\r\n");
    check(hear(c)->status == 400, "status %d", c->answer.status);
    say_no_more(c);
    wait_until(count_lingering() == 0, 2000, "it is still listened to");
    check_took(start, 0, patience(2000));
}

/* Somebody is always behind it whose time is not over yet. */
CONCURRENT_SERVERS(a_deadline_is_kept_though_others_come_behind_it)
{
    enum { OTHERS = 24 };
    int count = 0;
    start_server("--timeout", "1", "--workers", "32");
    int64_t start = now_ms();
    struct client *first = dial();
    for (struct pollfd fd = {.fd = first->fd, .events = POLLIN};
         count < OTHERS && poll(&fd, 1, 150) == 0; count++)
        dial();
    hear_end(first);
    check_deadline(start, 500);
}

/* ---- nobody to serve ----------------------------------------------------------------------- */

/* How often the threads of a process have gone to sleep so far; adds their number to *threads. */
static int64_t count_sleeps(pid_t pid, int *threads)
{
    enum { ROOM = 64 };
    pid_t ids[ROOM];
    int64_t sleeps = 0;
    for (int i = list_threads(pid, ids, ROOM) - 1; i >= 0; i--) {
        sleeps += process_number(ids[i], "\nvoluntary_ctxt_switches:");
        *threads += *read_process(ids[i]) != '\0';
    }
    return sleeps;
}

/* The same for the server with all its processes. */
static int64_t count_all_sleeps(int *threads)
{
    pid_t children[64];
    *threads = 0;
    int64_t sleeps = count_sleeps(server_pid, threads);
    for (int i = list_children(server_pid, children, 64, NULL) - 1; i >= 0; i--)
        sleeps += count_sleeps(children[i], threads);
    return sleeps;
}

/* An event loop wakes once a second at most; who blocks, five times: once a tick. Who never sleeps
 * does not wake either, but uses the CPU. */
static void check_sleep(const char *with)
{
    enum { WATCHED_MS = 1500, CPU_MS = 150, TICKS_A_SECOND = 5 };
    int threads;
    int64_t start = now_ms(), before = count_all_sleeps(&threads), cpu_ms = server_cpu_ms();
    poll(NULL, 0, WATCHED_MS); /* not for something to happen, but for nothing to */
    int64_t sleeps = count_all_sleeps(&threads) - before, ms = now_ms() - start;
    int64_t most = server_is_loop() ? ms / 1000 : threads * (ms * TICKS_A_SECOND / 1000 + 1);
    check(sleeps <= patience(most), "%lld times in %lld ms, %d threads, with %s", (long long)sleeps,
          (long long)ms, threads, with);
    cpu_ms = server_cpu_ms() - cpu_ms;
    check(cpu_ms < patience(CPU_MS), "%lld ms of CPU in %lld ms, with %s", (long long)cpu_ms,
          (long long)ms, with);
}

EVERY_SERVER(a_server_without_anything_to_do_sleeps)
{
    enum { IDLE = 7 }; /* one less than chapters 3 and 5 have workers */
    struct client *idle[IDLE];
    int count = server_is("iterative") ? 1 : IDLE;
    if (getenv("WATCH_OPENS"))
        cr_skip_test("who is traced wakes more often");
    start_redis();
    start_server("--keep-alive", "60");
    check_sleep("nobody there");
    for (int i = 0; i < count; i++) {
        idle[i] = dial();
        say(idle[i], "GET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
        check(hear(idle[i])->status == 200 && idle[i]->answer.kept, "%d", idle[i]->answer.status);
    }
    check_sleep("kept clients");
}

/* tcp(7): a byte of urgent data is not among the others, and nobody here asks for it. poll() must
 * not report it again and again. */
EVERY_SERVER(urgent_data_is_no_part_of_a_request_and_wakes_nobody)
{
    if (getenv("WATCH_OPENS"))
        cr_skip_test("who is traced wakes more often");
    start_server("--keep-alive", "60");
    struct client *c = dial();
    for (int i = 0; i < 2; i++) {
        say(c, "GET / HT");
        check(send(c->fd, "!", 1, MSG_OOB) == 1, "%s", strerror(errno));
        say(c, "TP/1.1\r\nHost: test\r\n\r\n");
        check_file(hear(c), "public/index.html");
        check(send(c->fd, "!", 1, MSG_OOB) == 1, "%s", strerror(errno));
        check_sleep("urgent data");
    }
}
