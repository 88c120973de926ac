#include "status.h"

#include "clock.h"
#include "options.h"
#include "proc.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* ---- the server: set at start, read afterwards --------------------------------------------- */

static const struct options *options;
static const struct board *board;
static enum status_workers workers;
static const char *architecture;
static pid_t main_pid;
static int64_t started; /* clock_now_ms() */

void status_start(const struct options *o, const struct board *b, enum status_workers w,
                  const char *words)
{
    options = o;
    board = b;
    workers = w;
    architecture = words;
    main_pid = getpid();
    started = clock_now_ms();
}

/* ---- the board ----------------------------------------------------------------------------- */

static void take_slot(struct status_slot *s, int which, int32_t owner)
{
    const struct board_slot *slot = &board->slots[which];
    int64_t since_ms = clock_now_ms() - atomic_load_explicit(&slot->since, memory_order_relaxed);
    *s = (struct status_slot){
        .state = STATUS_LOOP,
        .slot = (uint64_t)which,
        .id = (uint64_t)owner,
        .since_ms = since_ms > 0 ? (uint64_t)since_ms : 0, /* `since` may just have changed */
        .requests = board_slot_requests(slot),
        .connections = atomic_load_explicit(&slot->connections, memory_order_relaxed),
    };
    for (int state = 0; state < STATUS_CONNECTION_STATES; state++)
        s->by_state[state] =
            atomic_load_explicit(&slot->connections_by_state[state], memory_order_relaxed);
    board_read_request(slot, s->request);
    if (workers == STATUS_EVENT_LOOP) {
        s->since_ms = STATUS_NO_TIME;
        return;
    }
    /* A worker with one connection at a time is in the state that has a count. While it moves from
     * one state to another, both may have one. Then the first is as true as the second. */
    for (s->state = 0; s->state < STATUS_CONNECTION_STATES; s->state++)
        if (s->by_state[s->state] > 0)
            break;
    for (unsigned state = 0; state < STATUS_CONNECTION_STATES; state++)
        s->by_state[state] = state == s->state;
}

static bool take_slots(struct status *status)
{
    int used = board->used;
    status->slots = calloc((size_t)used + 1, sizeof(*status->slots));
    if (!status->slots)
        return false;
    for (int i = 0; i < used; i++) {
        int32_t owner = atomic_load(&board->slots[i].owner);
        struct status_slot *slot = &status->slots[status->workers];
        if (owner != 0)
            take_slot(slot, i, owner);
        if (owner != 0 && !(owner == main_pid && slot->state == STATUS_WAITING))
            status->workers++; /* the main process claims for workers that are not yet there */
    }
    return true;
}

static void take_sums(struct status *status)
{
    status->server = options->name;
    status->version = ZEROHTTPD_VERSION;
    status->architecture = architecture;
    status->pid = (uint64_t)main_pid;
    status->uptime_ms = (uint64_t)(clock_now_ms() - started);
    status->workers_most = options->workers > 0 ? (uint64_t)options->workers : 1;
    status->connections = board_connections(board);
    for (int i = 0; i < BOARD_CLASSES; i++)
        status->requests += status->responses[i] = board_responses(board, i);
    for (size_t i = 0; i < status->workers; i++) {
        status->waiting += status->slots[i].state == STATUS_WAITING;
        for (int state = 0; state < STATUS_CONNECTION_STATES; state++)
            status->now[state] += status->slots[i].by_state[state];
    }
}

/* ---- the processes (proc(5)) --------------------------------------------------------------- */

/* The CPU time of processes. The nanoseconds are exact, but they are the sum of user and system
 * time. The ticks tell the two apart. Ticks alone would hide the time of many processes that use a
 * little. */
struct cpu {
    uint64_t ns, user_ticks, system_ticks;
};

/* `pid` is 0 for the time of processes that have ended: they have only ticks. */
static void add_cpu(struct cpu *cpu, pid_t pid, uint64_t user, uint64_t system)
{
    clockid_t its_clock;
    struct timespec used;
    cpu->user_ticks += user;
    cpu->system_ticks += system;
    if (pid && clock_getcpuclockid(pid, &its_clock) == 0 && clock_gettime(its_clock, &used) == 0)
        cpu->ns += (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
    else
        cpu->ns += (user + system) * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* Adds the figures that cost more to find out. */
static void add_closely(struct status *status, pid_t pid)
{
    char text[PROC_TEXT];
    if (proc_read(pid, "status", text)) {
        status->voluntary += proc_number(text, "\nvoluntary_ctxt_switches:");
        status->involuntary += proc_number(text, "\nnonvoluntary_ctxt_switches:");
    }
    if (proc_read(pid, "smaps_rollup", text))
        status->pss_kib += proc_number(text, "\nPss:");
    status->descriptors += proc_count_descriptors(pid);
}

/* Chapters 2 and 3: the board knows the children. Slots of ended children are left out. */
static void take_children(struct status *status, struct cpu *cpu)
{
    struct status children = {0};
    uint64_t kept = 0;
    for (size_t i = 0; i < status->workers; i++) {
        struct proc_stat p;
        pid_t pid = (pid_t)status->slots[i].id;
        if (pid != main_pid) {
            if (!proc_read_stat(pid, &p) || (pid_t)p.fields[PROC_PARENT] != main_pid)
                continue; /* another process has the number now */
            add_cpu(cpu, pid, p.fields[PROC_USER_TIME], p.fields[PROC_SYSTEM_TIME]);
            if (p.state == 'Z')
                continue;
            if (children.processes++ < STATUS_CLOSELY)
                add_closely(&children, pid);
            children.threads += p.fields[PROC_THREADS];
        }
        status->slots[kept++] = status->slots[i];
    }
    status->workers = kept;
    status->processes += children.processes;
    status->threads += children.threads;

    /* The children that were not read closely are taken to be like the others. */
    uint64_t all = children.processes, read = all < STATUS_CLOSELY ? all : STATUS_CLOSELY;
    if (read == 0)
        return;
    status->voluntary += children.voluntary * all / read;
    status->involuntary += children.involuntary * all / read;
    status->pss_kib += children.pss_kib * all / read;
    status->descriptors += children.descriptors * all / read;
}

/* A child adds up its parent and all of the parent's children, ended ones included. */
static void take_family(struct status *status, const struct proc_stat *parent)
{
    struct cpu cpu = {0};
    const uint64_t *fields = parent->fields;
    add_cpu(&cpu, main_pid, fields[PROC_USER_TIME], fields[PROC_SYSTEM_TIME]);
    add_cpu(&cpu, 0, fields[PROC_CHILDREN_USER_TIME], fields[PROC_CHILDREN_SYSTEM_TIME]);
    take_children(status, &cpu);

    /* As long as there is no whole tick, all is taken for system time, which is mostly a fork. */
    uint64_t ticks = cpu.user_ticks + cpu.system_ticks, ms = cpu.ns / 1000000;
    status->cpu_user_ms = ticks > 0 ? ms * cpu.user_ticks / ticks : 0;
    status->cpu_system_ms = ms - status->cpu_user_ms;
}

static uint64_t milliseconds(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_usec / 1000;
}

bool status_snapshot(struct status *status)
{
    struct proc_stat p = {.fields[PROC_THREADS] = 1};
    *status = (struct status){.processes = 1};
    if (!board || !take_slots(status))
        return false;
    proc_read_stat(main_pid, &p);
    status->threads = p.fields[PROC_THREADS];
    add_closely(status, main_pid);
    if (getpid() != main_pid) {
        take_family(status, &p);
    } else {
        /* The server is one process: getrusage(2) has the sum of all its threads. */
        struct rusage own;
        getrusage(RUSAGE_SELF, &own);
        status->cpu_user_ms = milliseconds(own.ru_utime);
        status->cpu_system_ms = milliseconds(own.ru_stime);
        status->voluntary = (uint64_t)own.ru_nvcsw;
        status->involuntary = (uint64_t)own.ru_nivcsw;
    }
    take_sums(status);
    return true;
}

void status_free(struct status *status)
{
    free(status->slots);
    status->slots = NULL;
}
