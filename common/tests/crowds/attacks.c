/* The four attacks of slowhttptest, with 1,000 connections each. While a server
 * is held by them, another client is answered; and it is rid of them when the
 * deadline says so, however busy they keep looking.
 *
 *  - In 06 and 07 an attacker costs a descriptor, in 04 a thread, in 02 a
 *    process: others hardly notice. 02 has a second to answer, not a tenth: its
 *    answer begins with a fork among a thousand others.
 *  - In 03 and 05 an attacker costs one of the workers, so that there are more
 *    of these here than attackers. With fewer the others have to wait: A
 *    attackers hold W workers for A / W times the deadline. At the defaults
 *    1,000 hold 100 for 100 s.
 */
#include "around.h"
#include "tests/harness/harness.h"

enum {
    SHORTEST_MS = 2500, /* --timeout: for a whole request, and for a response without progress; */
    LONGEST_MS = 20000, /* more of it where it takes long to let all attackers in */
    LATE_MS = 2000,     /* how late a deadline may be kept by a machine that has others to serve */
    EARLY_MS = 20,      /* how early, by a clock with a coarse hand */
    PAUSE_MS = 20,      /* between the questions of a polite client: */
    QUESTIONS = 20,     /* that many, */
    MOST = 2000,        /* or as many as an attack gives time for */
};

static int attackers, workers;
static int timeout_ms;
static int64_t attacked_at;
static pid_t slowhttptest;
static int64_t times[MOST]; /* ms that a polite client's questions have taken */
static int asked;

/* ---- the attack ---------------------------------------------------------------------------- */

/* Prepares a Redis, and a folder with a file no socket's buffer has room for. */
static void prepare(void)
{
    enum { BIG_BYTES = 8 * 1024 * 1024 };
    if (!is_installed("slowhttptest"))
        cr_skip_test("slowhttptest is not installed");
    attackers = as_many_as(1000, 200);
    need_descriptors(attackers);
    make_root();
    write_file("root/public/big.bin", calloc(1, BIG_BYTES), BIG_BYTES);
    start_redis();
}

static void start_target(int timeout)
{
    char count[16], seconds[16];
    timeout_ms = timeout;
    workers = server_has_pool() ? attackers + 100 : 0;
    snprintf(count, sizeof(count), "%d", workers);
    snprintf(seconds, sizeof(seconds), "%.1f", timeout / 1000.0);
    start_server("--root", place("root"), "--timeout", seconds, POOL_OF(count));
    wait_until(count_workers() == workers, SOON_MS, "workers: %d", count_workers());
}

/* Begins an attack of a kind (-H, -B, -R, -X) with so many connections a second, each of which has
 * something to say, or takes something, in every second. It would go on for a minute. */
static void attack(const char *kind, int each_second, const char *target)
{
    char url[128], connections[16], rate[16];
    snprintf(url, sizeof(url), "http://%s:%d%s", server_host, server_port, target);
    snprintf(connections, sizeof(connections), "%d", attackers);
    snprintf(rate, sizeof(rate), "%d", each_second);
    const char *const words[] = {"slowhttptest", kind, "-c", connections, "-r", rate, "-u", url,
                                 "-i",           "1",  "-l", "60",        NULL};
    int log = open(place("attack"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    check(log >= 0, "%s", strerror(errno));
    attacked_at = now_ms();
    slowhttptest = spawn(words, log, log);
    close(log);
}

static bool is_over(void)
{
    int status;
    return waitpid(slowhttptest, &status, WNOHANG) == slowhttptest;
}

/* ---- the polite client --------------------------------------------------------------------- */

/* Asks for the home page and the guestbook by turns. */
static void ask_politely(void)
{
    const char *target = asked % 2 ? "/guestbook" : "/";
    int64_t start = now_ms();
    const struct answer *a = get(target);
    check(a->status == 200 && asked < MOST, "%s: status %d", target, a->status);
    times[asked++] = now_ms() - start;
    poll(NULL, 0, PAUSE_MS);
}

static int by_size(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* Nine answers in ten have to come in time. The others may meet with what else the machine does,
 * but none with a deadline of the attackers'. */
static void check_answers(void)
{
    int64_t limit = patience(server_is("forking") ? 1000 : 100);
    check(asked >= QUESTIONS, "%d were asked", asked);
    qsort(times, (size_t)asked, sizeof(times[0]), by_size);
    long long median = times[asked / 2], late = times[asked * 9 / 10], latest = times[asked - 1];
    cr_log_info("%s: %d questions, answered after %lld ms; nine in ten after %lld, all after %lld",
                server_name, asked, median, late, latest);
    check(late <= limit && latest <= 10 * limit,
          "answered after %lld ms; nine in ten after %lld, all after %lld", median, late, latest);
}

/* ---- and the end --------------------------------------------------------------------------- */

/* The largest process has stayed small: no attacker makes it allocate more than a connection does.
 */
static void check_memory(void)
{
    struct statistics s = stop_server();
    check(s.connections >= (unsigned)attackers, "%llu connections", s.connections);
    check(s.peak_kib > 0 && s.peak_kib < as_many_as(64, 1024) * 1024L, "%ld KiB", s.peak_kib);
}

/* All of them, before the first one's time is over? */
static bool all_get_in(const char *kind, const char *target)
{
    attack(kind, 10 * attackers, target);
    while (count_clients() < attackers) {
        if (now_ms() - attacked_at >= timeout_ms - EARLY_MS)
            return false;
        poll(NULL, 0, 3);
    }
    return true;
}

static void ask_until_there_are(int left, int64_t limit_ms)
{
    for (int64_t limit = now_ms() + patience(limit_ms); count_clients() > left; ask_politely())
        check(now_ms() < limit, "%d stay", count_clients());
}

/* All attackers are in; they are cut off in time, and nothing of them stays: no socket, no worker,
 * and nothing they did not take. */
static void hold_out(const char *kind, const char *target)
{
    prepare();
    start_target(SHORTEST_MS);
    while (!all_get_in(kind, target)) { /* a machine with others to serve: once more, with time */
        check(2 * timeout_ms <= LONGEST_MS, "only %d of %d are in", count_clients(), attackers);
        kill_group(&slowhttptest);
        stop_server();
        start_target(2 * timeout_ms);
    }
    int64_t all_in = now_ms();
    ask_until_there_are(attackers - 1, timeout_ms + SOON_MS);
    check(now_ms() - attacked_at >= timeout_ms - EARLY_MS, "one is cut off after %lld ms",
          (long long)(now_ms() - attacked_at));
    ask_until_there_are(0, SOON_MS);
    check(now_ms() - all_in <= timeout_ms + timeout_ms / 10 + patience(LATE_MS), /* lingering */
          "the last one is cut off after %lld ms", (long long)(now_ms() - all_in));
    check_answers();
    wait_until(count_leftovers() == 0, LATE_MS, "the kernel keeps %d", count_leftovers());
    wait_until(count_workers() == workers, LATE_MS, "workers: %d", count_workers());
    kill_group(&slowhttptest);
    check_memory();
}

CONCURRENT_SERVERS(slow_heads_hold_it_until_their_deadline_and_disturb_nobody)
{
    hold_out("-H", "/guestbook");
}

CONCURRENT_SERVERS(slow_bodies_hold_it_until_their_deadline_and_disturb_nobody)
{
    hold_out("-B", "/guestbook");
}

CONCURRENT_SERVERS(slow_readers_hold_it_until_their_deadline_and_disturb_nobody)
{
    hold_out("-X", "/big.bin");
}

/* 2,000 ranges in a request, which would make a naive server assemble 2,000 parts. Here one range
 * is honoured, or none: such a request is answered at once, and the attack is over soon. */
CONCURRENT_SERVERS(thousands_of_ranges_in_each_request_disturb_nobody)
{
    prepare();
    start_target(SHORTEST_MS);
    attack("-R", as_many_as(1000, 50), "/big.bin");
    while (!is_over())
        ask_politely();
    check_answers();
    wait_until(count_clients() == 0, LATE_MS, "%d stay", count_clients());
    check_memory();
}
