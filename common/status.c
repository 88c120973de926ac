#include "status.h"

#include "clock.h"
#include "options.h"
#include "proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
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

const char *const status_state_names[] = {
    [STATUS_FRESH] = "fresh",     [STATUS_IDLE] = "idle",       [STATUS_READING] = "reading",
    [STATUS_ASKING] = "asking",   [STATUS_WRITING] = "writing", [STATUS_LINGERING] = "lingering",
    [STATUS_WAITING] = "waiting", [STATUS_LOOP] = "loop",
};

/* ---- the board ----------------------------------------------------------------------------- */

/* A worker with one connection at a time is in the state that has a count. While it moves from one
 * state to another, both may have one. Then the first is as true as the second. */
static void take_state(struct status_slot *s)
{
    s->state = STATUS_LOOP;
    if (workers == STATUS_EVENT_LOOP)
        return;
    for (s->state = 0; s->state < STATUS_CONNECTION_STATES; s->state++)
        if (s->by_state[s->state] > 0)
            break;
    for (unsigned state = 0; state < STATUS_CONNECTION_STATES; state++)
        s->by_state[state] = state == s->state;
}

static void take_slot(struct status_slot *s, int which, int32_t owner)
{
    const struct board_slot *slot = &board->slots[which];
    int64_t since_ms = clock_now_ms() - atomic_load_explicit(&slot->since, memory_order_relaxed);
    *s = (struct status_slot){
        .slot = (uint64_t)which,
        .id = (uint64_t)owner,
        .since_ms = since_ms > 0 ? (uint64_t)since_ms : 0, /* `since` may just have changed */
        .requests = board_slot_requests(slot),
        .connections = atomic_load_explicit(&slot->connections, memory_order_relaxed),
    };
    for (int state = 0; state < STATUS_CONNECTION_STATES; state++)
        s->by_state[state] =
            atomic_load_explicit(&slot->connections_by_state[state], memory_order_relaxed);
    take_state(s);
    board_read_request(slot, s->request);
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
    status->architecture = architecture;
    status->pid = (uint64_t)main_pid;
    status->uptime_ms = (uint64_t)(clock_now_ms() - started);
    status->workers_most = options->workers > 0 ? (uint64_t)options->workers : 1;
    status->connections = board_connections(board);
    for (int i = 0; i < BOARD_CLASSES; i++)
        status->requests += status->responses[i] = board_responses(board, i);
    for (size_t i = 0; i < status->workers; i++)
        for (int state = 0; state < STATUS_CONNECTION_STATES; state++)
            status->now[state] += status->slots[i].by_state[state];
    for (size_t i = 0; i < status->workers; i++)
        status->waiting += status->slots[i].state == STATUS_WAITING;
}

/* ---- the processes (proc(5)) --------------------------------------------------------------- */

/* The CPU time of processes. The nanoseconds are exact, but they are the sum of user and system
 * time. The ticks tell the two apart. Ticks alone would hide the time of many processes that use a
 * little. */
struct cpu {
    uint64_t ns, user_ticks, system_ticks;
};

static void add_ticks(struct cpu *cpu, uint64_t user, uint64_t system)
{
    cpu->user_ticks += user;
    cpu->system_ticks += system;
    cpu->ns += (user + system) * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* clock_getcpuclockid(3) gives the clock of any process that has not ended. */
static void add_cpu(struct cpu *cpu, pid_t pid, const struct proc_stat *p)
{
    clockid_t its_clock;
    struct timespec used;
    uint64_t before = cpu->ns;
    add_ticks(cpu, p->fields[PROC_USER_TIME], p->fields[PROC_SYSTEM_TIME]);
    if (clock_getcpuclockid(pid, &its_clock) == 0 && clock_gettime(its_clock, &used) == 0)
        cpu->ns = before + (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

/* As long as there is no whole tick, all of it is taken for system time, which is mostly a fork. */
static void share_cpu(struct status *status, const struct cpu *cpu)
{
    uint64_t ticks = cpu->user_ticks + cpu->system_ticks, ms = cpu->ns / 1000000;
    status->cpu_user_ms = ticks > 0 ? ms * cpu->user_ticks / ticks : 0;
    status->cpu_system_ms = ms - status->cpu_user_ms;
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

static void scale(uint64_t *sum, uint64_t all, uint64_t seen)
{
    *sum = seen > 0 ? *sum * all / seen : *sum;
}

/* Is this slot's worker a child that is alive? If so, adds its figures. */
static bool take_child(struct status *status, struct cpu *cpu, pid_t pid, uint64_t *looked_at)
{
    struct proc_stat p;
    if (!proc_read_stat(pid, &p) || (pid_t)p.fields[PROC_PARENT] != main_pid)
        return false;
    add_cpu(cpu, pid, &p);
    if (p.state == 'Z')
        return false;
    status->processes++;
    status->threads += p.fields[PROC_THREADS];
    if (*looked_at < STATUS_CLOSELY) {
        add_closely(status, pid);
        (*looked_at)++;
    }
    return true;
}

/* Chapters 2 and 3: the board knows the children. Slots of ended children are left out. */
static void take_children(struct status *status, struct cpu *cpu)
{
    struct status closely = {0};
    uint64_t looked_at = 0;
    uint64_t kept = 0;
    for (size_t i = 0; i < status->workers; i++) {
        pid_t pid = (pid_t)status->slots[i].id;
        if (pid == main_pid || take_child(&closely, cpu, pid, &looked_at))
            status->slots[kept++] = status->slots[i];
    }
    status->workers = kept;

    scale(&closely.voluntary, closely.processes, looked_at);
    scale(&closely.involuntary, closely.processes, looked_at);
    scale(&closely.pss_kib, closely.processes, looked_at);
    scale(&closely.descriptors, closely.processes, looked_at);
    status->voluntary += closely.voluntary;
    status->involuntary += closely.involuntary;
    status->processes += closely.processes;
    status->threads += closely.threads;
    status->pss_kib += closely.pss_kib;
    status->descriptors += closely.descriptors;
}

static uint64_t milliseconds(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_usec / 1000;
}

static void take_main(struct status *status, struct proc_stat *p)
{
    *p = (struct proc_stat){.fields[PROC_THREADS] = 1};
    proc_read_stat(main_pid, p);
    status->processes = 1;
    status->threads = p->fields[PROC_THREADS];
    add_closely(status, main_pid);
}

/* The server is one process: getrusage(2) has the sum of all its threads. */
static void take_own_usage(struct status *status)
{
    struct rusage own;
    getrusage(RUSAGE_SELF, &own);
    status->cpu_user_ms = milliseconds(own.ru_utime);
    status->cpu_system_ms = milliseconds(own.ru_stime);
    status->voluntary = (uint64_t)own.ru_nvcsw;
    status->involuntary = (uint64_t)own.ru_nivcsw;
}

/* A child adds up its parent and all of the parent's children, ended ones included. */
static void take_family(struct status *status, const struct proc_stat *parent)
{
    struct cpu cpu = {0};
    add_cpu(&cpu, main_pid, parent);
    add_ticks(&cpu, parent->fields[PROC_CHILDREN_USER_TIME],
              parent->fields[PROC_CHILDREN_SYSTEM_TIME]);
    take_children(status, &cpu);
    share_cpu(status, &cpu);
}

bool status_snapshot(struct status *status)
{
    struct proc_stat p;
    *status = (struct status){0};
    if (!board || !take_slots(status))
        return false;
    take_main(status, &p);
    if (getpid() == main_pid)
        take_own_usage(status);
    else
        take_family(status, &p);
    take_sums(status);
    return true;
}

void status_free(struct status *status)
{
    free(status->slots);
    status->slots = NULL;
}

/* ---- the page ------------------------------------------------------------------------------ */

/* The id of a number is its place in its struct. */
enum {
    SERVER = 1,
    VERSION,
    ARCHITECTURE,
    UPTIME,
    LOOP,
    NO_LOOP,
    SLOTS,
    SLOT_STATE,
    SLOT_REQUEST,
    SLOT_SINCE,
    NUMBERS = 1000,
    SLOT_NUMBERS = 2000,
};

#define NUMBER(field)      (NUMBERS + (int)offsetof(struct status, field))
#define SLOT_NUMBER(field) (SLOT_NUMBERS + (int)offsetof(struct status_slot, field))

const struct template_name status_names[] = {
    {"server", SERVER, 0, false},
    {"version", VERSION, 0, false},
    {"architecture", ARCHITECTURE, 0, false},
    {"pid", NUMBER(pid), 0, false},
    {"uptime_ms", NUMBER(uptime_ms), 0, false},
    {"uptime", UPTIME, 0, false}, /* 1 h 2 min 3 s */
    {"workers_most", NUMBER(workers_most), 0, false},
    {"workers", NUMBER(workers), 0, false}, /* how many slots there are */
    {"requests", NUMBER(requests), 0, false},
    {"connections", NUMBER(connections), 0, false},
    {"responses_2xx", NUMBER(responses[0]), 0, false},
    {"responses_3xx", NUMBER(responses[1]), 0, false},
    {"responses_4xx", NUMBER(responses[2]), 0, false},
    {"responses_5xx", NUMBER(responses[3]), 0, false},
    {"fresh", NUMBER(now[STATUS_FRESH]), 0, false},
    {"idle", NUMBER(now[STATUS_IDLE]), 0, false},
    {"reading", NUMBER(now[STATUS_READING]), 0, false},
    {"asking", NUMBER(now[STATUS_ASKING]), 0, false},
    {"writing", NUMBER(now[STATUS_WRITING]), 0, false},
    {"lingering", NUMBER(now[STATUS_LINGERING]), 0, false},
    {"waiting", NUMBER(waiting), 0, false},
    {"cpu_user_ms", NUMBER(cpu_user_ms), 0, false},
    {"cpu_system_ms", NUMBER(cpu_system_ms), 0, false},
    {"voluntary", NUMBER(voluntary), 0, false},
    {"involuntary", NUMBER(involuntary), 0, false},
    {"processes", NUMBER(processes), 0, false},
    {"threads", NUMBER(threads), 0, false},
    {"pss_kib", NUMBER(pss_kib), 0, false},
    {"descriptors", NUMBER(descriptors), 0, false},
    {"loop", LOOP, 0, true}, /* one item for an event loop, none for others; the opposite: */
    {"no_loop", NO_LOOP, 0, true},
    {"slots", SLOTS, 0, true},
    {"slot", SLOT_NUMBER(slot), SLOTS, false},
    {"slot_id", SLOT_NUMBER(id), SLOTS, false},
    {"slot_state", SLOT_STATE, SLOTS, false},
    {"slot_request", SLOT_REQUEST, SLOTS, false},
    {"slot_since_ms", SLOT_SINCE, SLOTS, false}, /* empty for a loop */
    {"slot_requests", SLOT_NUMBER(requests), SLOTS, false},
    {"slot_connections", SLOT_NUMBER(connections), SLOTS, false},
    {"slot_fresh", SLOT_NUMBER(by_state[STATUS_FRESH]), SLOTS, false},
    {"slot_idle", SLOT_NUMBER(by_state[STATUS_IDLE]), SLOTS, false},
    {"slot_reading", SLOT_NUMBER(by_state[STATUS_READING]), SLOTS, false},
    {"slot_asking", SLOT_NUMBER(by_state[STATUS_ASKING]), SLOTS, false},
    {"slot_writing", SLOT_NUMBER(by_state[STATUS_WRITING]), SLOTS, false},
    {"slot_lingering", SLOT_NUMBER(by_state[STATUS_LINGERING]), SLOTS, false},
    {NULL, 0, 0, false},
};

static struct span number_text(struct status *status, int id)
{
    const char *at = id >= SLOT_NUMBERS ? (const char *)status->shown + (id - SLOT_NUMBERS)
                                        : (const char *)status + (id - NUMBERS);
    uint64_t number;
    memcpy(&number, at, sizeof(number));
    snprintf(status->number, sizeof(status->number), "%llu", (unsigned long long)number);
    return span_of(status->number);
}

static struct span uptime_text(struct status *status)
{
    unsigned long long s = status->uptime_ms / 1000, min = s / 60, h = min / 60;
    if (h > 0)
        snprintf(status->number, sizeof(status->number), "%llu h %llu min %llu s", h, min % 60,
                 s % 60);
    else if (min > 0)
        snprintf(status->number, sizeof(status->number), "%llu min %llu s", min, s % 60);
    else
        snprintf(status->number, sizeof(status->number), "%llu s", s);
    return span_of(status->number);
}

/* Refused requests are shown too, and may hold any byte. A terminal would obey some of them, as
 * when somebody looks at the page with curl, and others are no UTF-8. */
static struct span request_text(struct status *status)
{
    const char *request = status->shown->request;
    text_escape(request, strlen(request), status->request, sizeof(status->request));
    return span_of(status->request);
}

static struct span text(void *data, int id)
{
    struct status *status = data;
    switch (id) {
    case SERVER:
        return span_of(options->name);
    case VERSION:
        return span_of(ZEROHTTPD_VERSION);
    case ARCHITECTURE:
        return span_of(status->architecture);
    case UPTIME:
        return uptime_text(status);
    case SLOT_STATE:
        return span_of(status_state_names[status->shown->state]);
    case SLOT_REQUEST:
        return request_text(status);
    case SLOT_SINCE:
        return status->shown->state == STATUS_LOOP ? SPAN("")
                                                   : number_text(status, SLOT_NUMBER(since_ms));
    default:
        return number_text(status, id);
    }
}

static bool item(void *data, int list, size_t index)
{
    struct status *status = data;
    if (list != SLOTS)
        return index == 0 && (list == LOOP) == (workers == STATUS_EVENT_LOOP);
    status->shown = &status->slots[index];
    return index < status->workers;
}

void status_render(struct status *status, const struct compiled *page, struct buffer *out)
{
    template_render(page, &(struct template_values){.text = text, .item = item, .data = status},
                    out);
}
