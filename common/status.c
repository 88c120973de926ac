#include "status.h"

#include "process.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the server: set at start, read afterwards --------------------------------------------- */

static const struct options *options;
static const struct board *board;
static const char *architecture;
static pid_t main_pid;
static int64_t started; /* clock_now_ms() */

void status_start(const struct options *o, const struct board *b, const char *words)
{
    options = o;
    board = b;
    architecture = words;
    main_pid = getpid();
    started = clock_now_ms();
}

typedef unsigned long long number;

/* Whose slot is it? Returns 0 if there is no worker. Sets *state to the state of the worker's one
 * connection: the one that has a count, or CONN_DONE. While it moves from one state to another,
 * both may have one. Then the first is as true as the second. */
static pid_t find_worker(const struct board_slot *slot, int *state)
{
    pid_t owner = slot->owner;
    for (*state = CONN_FRESH; *state < CONN_DONE; ++*state)
        if (slot->connections_by_state[*state] > 0)
            break;
    /* the main process claims slots for workers that are not yet there */
    return owner == main_pid && *state == CONN_DONE && !slot->is_loop ? 0 : owner;
}

/* ---- what the processes cost (proc(5)) ----------------------------------------------------- */

struct costs {
    number user_ms, system_ms, processes, threads, pss_kib;
};

/* Reads /proc/PID/NAME as a string. It is empty if the process has ended. */
static void read_proc(pid_t pid, const char *name, char text[4096])
{
    snprintf(text, 4096, "/proc/%d/%s", (int)pid, name);
    int fd = open(text, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, 4095) : 0;
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

/* Adds one process, and its children that have ended. */
static void add_process(struct costs *costs, pid_t pid)
{
    static const char pss[] = "\nPss:";
    char text[4096];
    unsigned long user, system, ended_user, ended_system, threads;
    read_proc(pid, "stat", text);
    const char *at = strrchr(text, ')'); /* the end of field 2, the name; then 14 to 17, and 20 */
    /* NOLINTNEXTLINE(cert-err34-c): the kernel has written these numbers */
    if (!at || sscanf(at, ") %*c%*d%*d%*d%*d%*d%*u%*u%*u%*u%*u%lu%lu%lu%lu%*d%*d%lu", &user,
                      &system, &ended_user, &ended_system, &threads) != 5)
        return;
    unsigned long ticks = (unsigned long)sysconf(_SC_CLK_TCK); /* a second */
    costs->processes++;
    costs->threads += threads;
    costs->user_ms += (user + ended_user) * 1000 / ticks;
    costs->system_ms += (system + ended_system) * 1000 / ticks;
    read_proc(pid, "smaps_rollup", text);
    at = strstr(text, pss);
    costs->pss_kib += at ? strtoull(at + strlen(pss), NULL, 10) : 0;
}

/* The main process, and its children if it has some: then one of them asks. */
static struct costs read_costs(void)
{
    struct costs costs = {0};
    int state;
    add_process(&costs, main_pid);
    for (int i = 0; getpid() != main_pid && i < board->used; i++) {
        pid_t child = find_worker(&board->slots[i], &state);
        if (child != 0 && child != main_pid)
            add_process(&costs, child);
    }
    return costs;
}

/* ---- the JSON (RFC 8259) ------------------------------------------------------------------- */

/* The result must fit in 512 bytes. */
__attribute__((format(printf, 2, 3))) static void put(struct buffer *out, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    buffer_append(out, text, (size_t)len);
}

/* In ASCII, whatever bytes a client has sent. */
static void put_string(struct buffer *out, const char *string)
{
    for (; *string; string++) {
        unsigned char byte = (unsigned char)*string;
        bool plain = byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\';
        put(out, plain ? "%c" : "\\u%04x", byte);
    }
}

static const char *const states[] = {"fresh",   "idle",      "reading", "asking",
                                     "writing", "lingering", "waiting"};

static void put_slot(struct buffer *out, const struct board_slot *slot, pid_t owner, int state)
{
    char request[BOARD_REQUEST + 1];
    number requests = 0;
    int64_t since_ms = clock_now_ms() - slot->since; /* it may just have changed: then it is < 0 */
    for (int kind = 0; kind < BOARD_CLASSES; kind++)
        requests += slot->responses[kind];
    board_read_request(slot, request);
    put(out, "  {\"slot\": %d, \"id\": %d, ", (int)(slot - board->slots), (int)owner);
    put(out, "\"state\": \"%s\", \"request\": \"", slot->is_loop ? "loop" : states[state]);
    put_string(out, request);
    if (slot->is_loop)
        put(out, "\", \"since_ms\": null, ");
    else
        put(out, "\", \"since_ms\": %lld, ", (long long)(since_ms > 0 ? since_ms : 0));
    put(out, "\"requests\": %llu, \"connections\": %llu}", requests, (number)slot->connections);
}

static void put_slots(struct buffer *out)
{
    const char *end = "";
    int state;
    for (int i = 0; i < board->used; i++) {
        pid_t owner = find_worker(&board->slots[i], &state);
        if (owner == 0)
            continue;
        put(out, "%s", end);
        put_slot(out, &board->slots[i], owner, state);
        end = ",\n";
    }
}

/* The responses by class, and the connections by state. */
static void put_sums(struct buffer *out)
{
    number kinds[BOARD_CLASSES] = {0}, now[CONN_STATES] = {0};
    int state;
    for (int i = 0; i < board->used; i++) {
        const struct board_slot *slot = &board->slots[i];
        for (int kind = 0; kind < BOARD_CLASSES; kind++)
            kinds[kind] += slot->responses[kind];
        if (!slot->is_loop && find_worker(slot, &state) != 0)
            now[state]++;
        for (state = 0; slot->is_loop && state < CONN_DONE; state++)
            now[state] += slot->connections_by_state[state];
    }
    put(out, " \"responses\": {\"2xx\": %llu, \"3xx\": %llu, ", kinds[0], kinds[1]);
    put(out, "\"4xx\": %llu, \"5xx\": %llu},\n \"now\": {", kinds[2], kinds[3]);
    for (state = CONN_FRESH; state < CONN_DONE; state++)
        put(out, state ? ", \"%s\": %llu" : "\"%s\": %llu", states[state], now[state]);
    put(out, "},\n");
}

void status_write_json(struct buffer *out)
{
    struct costs costs = read_costs();
    put(out, "{\n \"server\": \"%s\",\n", options->name);
    put(out, " \"version\": \"%s\",\n", ZEROHTTPD_VERSION);
    put(out, " \"architecture\": \"%s\",\n", architecture);
    put(out, " \"pid\": %d,\n", (int)main_pid);
    put(out, " \"uptime_ms\": %lld,\n", (long long)(clock_now_ms() - started));
    put(out, " \"workers_most\": %d,\n", options->workers > 0 ? options->workers : 1);
    put(out, " \"requests\": %llu,\n", (number)board_requests(board));
    put(out, " \"connections\": %llu,\n", (number)board_connections(board));
    put_sums(out);
    put(out, " \"cpu_ms\": {\"user\": %llu, \"system\": %llu},\n", costs.user_ms, costs.system_ms);
    put(out, " \"processes\": %llu,\n \"threads\": %llu,\n", costs.processes, costs.threads);
    put(out, " \"pss_kib\": %llu,\n \"slots\": [\n", costs.pss_kib);
    put_slots(out);
    put(out, "\n ]\n}\n");
}
