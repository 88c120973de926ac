/* Records what the processes and sockets do when a client has waited for two seconds. So a failure
 * that comes once in a thousand runs can be explained. A record only reads what the kernel shows.
 * Redis is asked only after the case has failed. So a record changes no case.
 */
#include "harness.h"

#include <netinet/tcp.h>
#include <stdatomic.h>

enum {
    LONG_MS = 2000, /* a wait that is worth a record */
    SLICE_MS = 100, /* a wait is made of slices; */
    GAP_MS = 200,   /* if one takes so much longer, the machine was late */
    MOST = 16,      /* processes, and threads of each */
};

static struct wait {
    int64_t began, longest_gap, asleep; /* asleep: how long the machine was, when this wait began */
} current;
static _Atomic(const char *) record = "";

const char *last_record(void)
{
    return record;
}

/* How long the machine has been suspended since it was started. */
static int64_t suspended_ms(void)
{
    struct timespec boot;
    clock_gettime(CLOCK_BOOTTIME, &boot);
    return (int64_t)boot.tv_sec * 1000 + boot.tv_nsec / 1000000 - now_ms();
}

/* The first line of a file, or the first one that begins with `with`. */
static void print_line(FILE *out, const char *path, const char *with)
{
    char line[512];
    FILE *file = fopen(path, "re");
    bool found = false;
    while (file && !found && fgets(line, sizeof(line), file))
        found = strncmp(line, with, strlen(with)) == 0;
    if (found)
        fprintf(out, "  %s: %.*s\n", path, (int)strcspn(line, "\n"), line);
    if (file)
        fclose(file);
}

void record_process(FILE *out, pid_t pid)
{
    static const char *const files[] = {"wchan", "syscall", "stack"};
    pid_t threads[MOST];
    char path[64];
    for (int i = 0, count = list_threads(pid, threads, MOST); i < count; i++) {
        snprintf(path, sizeof(path), "/proc/%d/stat", (int)threads[i]);
        const char *text = read_whole(path, NULL);
        if (text) /* number, name, state */
            fprintf(out, "  %.*s\n", (int)strcspn(text, ")") + 3, text);
        for (size_t j = 0; text && j < sizeof(files) / sizeof(files[0]); j++) {
            snprintf(path, sizeof(path), "/proc/%d/%s", (int)threads[i], files[j]);
            text = read_whole(path, NULL); /* the last needs a privilege */
            if (text && *text)
                fprintf(out, "    %s: %.300s%s", files[j], text, strchr(text, '\n') ? "" : "\n");
        }
    }
}

/* Both ends of the connection, and the listener's queue. Inode 0: nobody has accepted it. */
static void record_sockets(FILE *out, const struct client *c)
{
    struct inet_diag_msg end;
    struct tcp_info own = {0};
    socklen_t size = sizeof(own);
    getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &own, &size);
    fprintf(out, "  the client: state %d, %u unacknowledged, %u retransmitted, now after %u us\n",
            own.tcpi_state, own.tcpi_unacked, own.tcpi_total_retrans, own.tcpi_rto);
    if (find_server_end(c, &end))
        fprintf(out, "  the server's end: state %d, inode %u, %u to read, %u to send\n",
                end.idiag_state, end.idiag_inode, end.idiag_rqueue, end.idiag_wqueue);
    fprintf(out, "  connections: %d accepted, %d not yet, %d half-open\n",
            count_sockets(1U << TCP_ESTABLISHED, true), count_sockets(1U << TCP_ESTABLISHED, false),
            count_sockets(1U << TCP_SYN_RECV, false));
}

static void take_record(const struct client *c, bool has_failed)
{
    pid_t children[MOST];
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return;
    fprintf(out, "%s\nAfter %lld ms of waiting:\n", record, (long long)(now_ms() - current.began));
    fprintf(out, "  the client was late by %lld ms at most, the machine asleep for %lld ms\n",
            (long long)current.longest_gap, (long long)(suspended_ms() - current.asleep));
    print_line(out, "/proc/loadavg", "");
    print_line(out, "/proc/pressure/cpu", "");
    print_line(out, "/proc/pressure/io", "");
    print_line(out, "/proc/pressure/memory", "");
    print_line(out, "/proc/net/sockstat", "TCP:");
    record_sockets(out, c);
    record_process(out, server_pid);
    for (int i = list_children(server_pid, children, MOST, NULL) - 1; i >= 0; i--)
        record_process(out, children[i]);
    record_redis(out, has_failed);
    if (fclose(out) == 0)
        record = text;
}

bool wait_for(const struct client *c, short events, int64_t limit)
{
    struct pollfd fd = {.fd = c->fd, .events = events};
    int64_t now = now_ms();
    bool is_long = false;
    current = (struct wait){.began = now, .asleep = suspended_ms()};
    while (now < limit) {
        int64_t slice = limit - now < SLICE_MS ? limit - now : SLICE_MS, before = now;
        if (poll(&fd, 1, (int)slice) > 0)
            return true;
        now = now_ms();
        int64_t gap = now - before - slice;
        if (gap > GAP_MS && gap > current.longest_gap)
            current.longest_gap = gap;
        if (!is_long && now - current.began >= LONG_MS) {
            record = "";
            take_record(c, false);
            is_long = true;
        }
    }
    record = is_long ? record : "";
    take_record(c, true);
    return false;
}
