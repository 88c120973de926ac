/* Attacks by slowness: a thousand clients, each of which sends a head or a body, or takes a
 * file, a few bytes each second. While they hold a server, another client is
 * answered; and it is rid of them when the deadline says so, however busy they
 * keep looking.
 *
 *  - In 06 and 07 an attacker costs a descriptor, in 04 a thread, in 02 a process.
 *  - In 03 and 05 an attacker costs one of the workers, so that there are more
 *    of these here than attackers. With fewer the others have to wait: A
 *    attackers hold W workers for A / W times the deadline. At the defaults
 *    1,000 hold 100 for 100 s.
 */
#include "around.h"
#include "tests/harness/harness.h"

#include <netinet/tcp.h>

enum {
    TIMEOUT_MS = 3000, /* --timeout: for a whole request, and for a response without progress */
    PIECE_MS = 1000,   /* between an attacker's pieces */
    PAUSE_MS = 20,     /* between the questions of a polite client */
    EARLY_MS = 20,     /* by a clock with a coarse hand */
    MOST = 1000,
};

static const struct attack {
    const char *begin, *more; /* or, without more, takes a few bytes */
} attacks[] = {
    {"GET /guestbook HTTP/1.1\r\nHost: test\r\n", "X: y\r\n"},
    {"POST /guestbook HTTP/1.1\r\nHost: test\r\nContent-Length: 4096\r\n"
     "Content-Type: application/x-www-form-urlencoded\r\n\r\n",
     "a=b&"},
    {"GET /file.bin HTTP/1.1\r\nHost: test\r\n\r\n", NULL},
};

static struct client *attackers[MOST];
static int count;

/* More workers than attackers, and a file that no socket's buffer has room for. */
static void start_target(void)
{
    enum { BIG_BYTES = 8 * 1024 * 1024 };
    char workers[16], seconds[16];
    count = as_many_as(MOST, MOST / 5);
    need_descriptors(count);
    snprintf(workers, sizeof(workers), "%d", count + 100);
    snprintf(seconds, sizeof(seconds), "%d", TIMEOUT_MS / 1000);
    start_redis();
    start_server("--root", make_root_with_file(BIG_BYTES), "--timeout", seconds, POOL_OF(workers));
    if (server_has_pool())
        wait_until(count_workers() == count + 100, SOON_MS, "workers: %d", count_workers());
}

/* What the server has closed is closed for good, and says so here again and again. */
static void go_on(void)
{
    char bytes[16];
    for (int i = 0; i < count; i++) {
        const char *more = attacks[i % 3].more;
        if (more)
            send(attackers[i]->fd, more, strlen(more), MSG_NOSIGNAL | MSG_DONTWAIT);
        else
            recv(attackers[i]->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    }
}

/* Asks for the home page and the guestbook by turns. Whoever had to wait for an attacker would wait
 * for its deadline. */
static void ask_politely(void)
{
    static int asked;
    const char *target = asked++ % 2 ? "/guestbook" : "/";
    int64_t start = now_ms();
    check(get(target)->status == 200, "%s is not served", target);
    check_took(start, 0, patience(TIMEOUT_MS / 2));
    poll(NULL, 0, PAUSE_MS);
}

/* Goes on asking and attacking until so many are left. */
static void hold_out(int left)
{
    int64_t limit = now_ms() + 2 * TIMEOUT_MS + patience(SOON_MS), next = now_ms();
    while (count_clients() > left) {
        check(now_ms() < limit, "%d stay", count_clients());
        if (now_ms() >= next) {
            go_on();
            next += PIECE_MS;
        }
        ask_politely();
    }
}

/* Nothing of them stays: no socket, no worker, and nothing they did not take. */
CONCURRENT_SERVERS(slow_clients_hold_it_until_their_deadline_and_disturb_nobody)
{
    unsigned left_over = 1U << TCP_FIN_WAIT1 | 1U << TCP_CLOSING | 1U << TCP_LAST_ACK;
    start_target();
    int workers = count_workers();
    int64_t start = now_ms();
    for (int i = 0; i < count; i++) {
        attackers[i] = attacks[i % 3].more ? dial() : dial_with_room(4096);
        say(attackers[i], attacks[i % 3].begin);
    }
    wait_until(count_clients() == count, TIMEOUT_MS / 2, "%d of %d are in", count_clients(), count);
    hold_out(count - 1);
    check(now_ms() - start >= TIMEOUT_MS - EARLY_MS, "one is cut off after %lld ms",
          (long long)(now_ms() - start));
    hold_out(0);
    wait_until(count_sockets(left_over, false) == 0, SOON_MS, "the kernel keeps some");
    wait_until(count_workers() == workers, SOON_MS, "workers: %d", count_workers());
    struct statistics s = stop_server();
    check(s.connections >= (unsigned)count, "%llu connections", s.connections);
    check(s.peak_kib < as_many_as(64, 1024) * 1024L, "%ld KiB", s.peak_kib);
}
