/* The status: what is on the board and in /proc, as JSON and through a template. The test's own
 * process is the server's main process here, and its children are the workers. */
#include "status.h"

#include "clock.h"
#include "options.h"
#include "tests/json.h"
#include "tests/status_fields.h"
#include "unit.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static struct options options;
static struct board *board;
static struct status status;
static struct json json;
static struct buffer out;

static void start_as(enum status_workers workers, int slots)
{
    options = unit_options();
    options.workers = workers == STATUS_EVENT_LOOP ? 0 : slots;
    board = board_open(slots);
    cr_assert(board);
    status_start(&options, board, workers, "in a \"few\" words");
}

static void take(void)
{
    status_free(&status);
    cr_assert(status_snapshot(&status));
}

static void take_json(void)
{
    take();
    out.len = 0;
    status_write_json(&status, &out);
    buffer_append(&out, "", 1);
    cr_assert(!out.failed);
    cr_assert(json_read(&json, out.bytes), "no JSON: %s", json.at);
}

static void finish(void)
{
    status_free(&status);
    buffer_free(&out);
}

TestSuite(status, .timeout = 60, .fini = finish);

/* ---- slots --------------------------------------------------------------------------------- */

static void expect_slots(size_t count)
{
    expect_number("fields", json.count, HEAD_FIELDS + count * SLOT_FIELDS);
}

Test(status, there_is_none_without_a_board)
{
    cr_expect(!status_snapshot(&status));
}

/* The main process claims a slot, and then makes the worker who is to have it. It may also have to
 * refuse a client itself, for whom it could make none. */
Test(status, a_worker_that_is_not_there_yet_is_left_out)
{
    start_as(STATUS_THREADS, 2);
    board_claim(board, getpid());
    board_change_state(board_claim(board, getpid()), -1, STATUS_WRITING, clock_now_ms());
    take_json();
    expect_slots(1);
    expect_text("state", json_text(&json, "slots.0.state"), "writing");
}

/* The instant between two stores of board_change_state(), where its worker may be killed. */
Test(status, a_worker_is_in_one_state_even_while_it_moves)
{
    start_as(STATUS_THREADS, 1);
    struct board_slot *slot = board_claim(board, 1);
    board_change_state(slot, -1, STATUS_READING, 0);
    slot->connections_by_state[STATUS_WRITING]++;
    take_json();
    expect_text("state", json_text(&json, "slots.0.state"), "reading");
    expect_number("reading", json_number(&json, "now.reading"), 1);
    expect_number("writing", json_number(&json, "now.writing"), 0);
}

Test(status, a_slot_without_a_worker_is_left_out_and_its_counts_stay)
{
    start_as(STATUS_THREADS, 3);
    struct board_slot *slots[3];
    for (int i = 0; i < 3; i++) {
        slots[i] = board_claim(board, 10 + i);
        board_count_connection(slots[i]);
        board_count_response(slots[i], 200 + 100 * i);
        board_change_state(slots[i], -1, STATUS_IDLE, clock_now_ms());
    }
    board_release(slots[1]);
    take_json();
    expect_slots(2);
    expect_number("the first", json_number(&json, "slots.0.slot"), 0);
    expect_number("the third", json_number(&json, "slots.1.slot"), 2);
    expect_number("its id", json_number(&json, "slots.1.id"), 12);
    expect_number("its requests", json_number(&json, "slots.1.requests"), 1);
    expect_number("now", json_number(&json, "now.idle"), 2);
    expect_number("requests", json_number(&json, "requests"), 3);
    expect_number("connections", json_number(&json, "connections"), 3);
    expect_number("3xx", json_number(&json, "responses.3xx"), 1);
    expect_number("5xx", json_number(&json, "responses.5xx"), 0);
}

Test(status, says_how_long_a_worker_has_been_there)
{
    start_as(STATUS_THREADS, 2);
    board_change_state(board_claim(board, 1), -1, STATUS_ASKING, clock_now_ms() - 5000);
    board_change_state(board_claim(board, 2), -1, STATUS_ASKING,
                       clock_now_ms() + 5000); /* after our look */
    take_json();
    long long ms = json_number(&json, "slots.0.since_ms");
    cr_expect(ms >= 5000 && ms < 15000, "%lld ms", ms);
    expect_number("not yet", json_number(&json, "slots.1.since_ms"), 0);
}

/* ---- a process and its children (chapters 2 and 3) ----------------------------------------- */

static int told[2]; /* a pipe: what a child finds */

/* A child with a slot, which lives until the test ends. */
static pid_t add_worker(struct board_slot *slot, void (*first)(void))
{
    int ready[2];
    char byte;
    cr_assert(pipe(ready) == 0);
    pid_t pid = fork();
    cr_assert(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        slot->owner = getpid();
        if (first)
            first();
        close(ready[1]);
        for (;;)
            pause();
    }
    close(ready[1]);
    cr_assert(read(ready[0], &byte, 1) == 0);
    close(ready[0]);
    return pid;
}

static void end_workers(const pid_t *workers, int count)
{
    for (int i = 0; i < count; i++)
        kill(workers[i], SIGKILL);
    for (int i = 0; i < count; i++)
        wait_for(workers[i]);
}

/* Looks in a child, as one of the workers would; what it finds is in `out`. */
static void look(void)
{
    out.len = 0;
    cr_assert(status_snapshot(&status));
    status_write_json(&status, &out);
    for (size_t at = 0; at < out.len;) {
        ssize_t n = write(told[1], out.bytes + at, out.len - at);
        at += n > 0 ? (size_t)n : 0;
    }
    _exit(0);
}

static void take_in_a_child(void)
{
    static char text[1 << 20];
    size_t len = 0;
    ssize_t n;
    cr_assert(pipe(told) == 0);
    struct board_slot *slot = board_claim(board, getpid());
    pid_t pid = fork();
    cr_assert(pid >= 0);
    if (pid == 0) {
        slot->owner = getpid();
        look();
    }
    close(told[1]);
    while ((n = read(told[0], text + len, sizeof(text) - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    close(told[0]);
    wait_for(pid);
    board_release(slot);
    cr_assert(json_read(&json, text), "no JSON: %s", json.at);
}

static long long cpu_ms(void)
{
    return json_number(&json, "cpu_ms.user") + json_number(&json, "cpu_ms.system");
}

/* Of its own: what it shares, it shares with other tests too. */
static void fill_memory(void)
{
    static char memory[8 << 20];
    memset(memory, 1, sizeof(memory));
}

static void burn_for_200_ms(void (*some)(void))
{
    struct timespec used = {0};
    while (used.tv_sec == 0 && used.tv_nsec < 200 * 1000 * 1000) {
        some();
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    }
}

static void count(void)
{
    for (volatile int i = 0; i < 1000 * 1000; i++)
        ;
}

static void burn_user_time(void)
{
    burn_for_200_ms(count);
}

static void clear_pages(void)
{
    enum { SIZE = 8 << 20 };
    void *memory =
        mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED || munmap(memory, SIZE) != 0)
        _exit(1);
}

static void burn_system_time(void)
{
    burn_for_200_ms(clear_pages);
}

/* Who yields to another on the same CPU is switched involuntarily. Returns how often that was. */
static long be_switched(void)
{
    cpu_set_t one;
    struct rusage own;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    sched_setaffinity(0, sizeof(one), &one);
    pid_t other = fork();
    for (int i = 0; i < 1000; i++)
        sched_yield();
    if (other == 0)
        _exit(0);
    wait_for(other);
    getrusage(RUSAGE_THREAD, &own);
    return own.ru_nivcsw;
}

Test(status, a_child_sees_the_whole_family)
{
    void (*const lives[])(void) = {burn_user_time, burn_system_time, fill_memory};
    pid_t workers[3];
    start_as(STATUS_PROCESSES, 8);
    long switches = be_switched();
    take_in_a_child();
    expect_number("two", json_number(&json, "processes"), 2);
    cr_expect(json_number(&json, "switches.involuntary") >= switches, "%ld", switches);
    long long kib = json_number(&json, "pss_kib"), fds = json_number(&json, "descriptors");
    long long user = json_number(&json, "cpu_ms.user"), ms = cpu_ms(), system = ms - user;
    long long threads = json_number(&json, "threads"); /* the runner's among them */
    for (int i = 0; i < 3; i++)
        workers[i] = add_worker(board_claim(board, getpid()), lives[i]);
    take_in_a_child();
    expect_slots(4);
    expect_number("main", json_number(&json, "pid"), getpid());
    expect_number("five", json_number(&json, "processes"), 5);
    expect_number("of a thread each", json_number(&json, "threads"), threads + 3);
    cr_expect(json_number(&json, "pss_kib") > kib + 4096, "%lld KiB, then %lld", kib,
              json_number(&json, "pss_kib"));
    cr_expect(json_number(&json, "descriptors") >= fds + 3 * 4, "descriptors");
    user = json_number(&json, "cpu_ms.user") - user;
    system = json_number(&json, "cpu_ms.system") - system;
    cr_expect(user >= 100 && system >= 100, "%lld ms user, %lld ms system", user, system);
    end_workers(workers, 3);
    take_in_a_child();
    expect_number("their slots are not taken for theirs", json_number(&json, "processes"), 2);
    cr_expect(cpu_ms() >= ms + 300 && cpu_ms() < ms + 60000, "%lld ms, then %lld", ms, cpu_ms());
}

static void burn_less_than_a_tick(void)
{
    clock_burn_cpu(6 * 1000);
}

/* /proc/PID/stat knows whole ticks of 10 ms only: a hundred children who have used a little each
 * would seem to have used nothing, and all at once a lot. */
Test(status, what_many_use_a_little_of_adds_up)
{
    enum { MANY = 30 };
    pid_t workers[MANY];
    start_as(STATUS_PROCESSES, MANY + 1);
    take_in_a_child();
    long long ms = cpu_ms();
    for (int i = 0; i < MANY; i++)
        workers[i] = add_worker(board_claim(board, getpid()), burn_less_than_a_tick);
    take_in_a_child();
    cr_expect(cpu_ms() >= ms + MANY * 6 && cpu_ms() < ms + MANY * 60, "%lld ms, then %lld", ms,
              cpu_ms());
    end_workers(workers, MANY);
}

/* A worker that has ended, and whom its parent has not looked after yet; and a slot whose owner's
 * number is somebody else's. */
Test(status, the_dead_are_left_out)
{
    start_as(STATUS_PROCESSES, 8);
    struct board_slot *slot = board_claim(board, getpid());
    pid_t worker = add_worker(slot, NULL);
    board_change_state(slot, -1, STATUS_WRITING, clock_now_ms());
    board_claim(board, 1);
    take_in_a_child();
    expect_slots(2);
    expect_number("it writes", json_number(&json, "now.writing"), 1);
    siginfo_t info;
    kill(worker, SIGKILL);
    cr_assert(waitid(P_PID, (id_t)worker, &info, WEXITED | WNOWAIT) == 0); /* it stays a zombie */
    take_in_a_child();
    expect_slots(1);
    expect_number("nobody writes", json_number(&json, "now.writing"), 0);
    expect_number("processes", json_number(&json, "processes"), 2);
    wait_for(worker);
}

/* More than are looked at closely: what is not measured is taken to be like the rest. */
Test(status, a_crowd_of_children_is_measured_in_part)
{
    enum { CROWD = STATUS_CLOSELY + 50 };
    pid_t workers[CROWD];
    start_as(STATUS_PROCESSES, CROWD + 1);
    take_in_a_child();
    long long fds = json_number(&json, "descriptors") / 2, threads = json_number(&json, "threads");
    for (int i = 0; i < CROWD; i++)
        workers[i] = add_worker(board_claim(board, getpid()), NULL);
    take_in_a_child();
    expect_slots(CROWD + 1);
    expect_number("processes", json_number(&json, "processes"), CROWD + 2);
    expect_number("threads", json_number(&json, "threads"), CROWD + threads);
    long long all = json_number(&json, "descriptors");
    cr_expect(llabs(all - (CROWD + 2) * fds) < 3 * CROWD, "%lld for %d of about %lld", all,
              CROWD + 2, fds);
    end_workers(workers, CROWD);
}

/* ---- the page ------------------------------------------------------------------------------ */

static const char *render(const char *template)
{
    char error[256];
    struct compiled *page =
        template_compile("test", span_of(template), status_names, error, sizeof(error));
    cr_assert(page, "%s", error);
    out.len = 0;
    status_render(&status, page, &out);
    template_free(page);
    buffer_append(&out, "", 1);
    return out.bytes;
}

Test(status, the_page_has_a_name_for_all_there_is)
{
    start_as(STATUS_THREADS, 3);
    board_change_state(board_claim(board, 41), -1, STATUS_IDLE, clock_now_ms());
    struct board_slot *slot = board_claim(board, 42);
    board_count_connection(slot);
    board_count_response(slot, 200);
    board_count_response(slot, 404);
    board_count_response(slot, 404);
    board_change_state(slot, -1, STATUS_WRITING, clock_now_ms());
    board_begin_request(slot, "GET /<b>", 8);
    board_claim(board, 43);
    take();
    expect_text("server", render("{{server}} {{version}} {{architecture}}"),
                "unit " ZEROHTTPD_VERSION " in a &quot;few&quot; words");
    expect_text("numbers",
                render("{{slots.length}} of {{workers_most}}, {{requests}} {{connections}}"),
                "3 of 3, 3 1");
    expect_text("without a client", render("{{waiting}}"), "1");
    expect_text("classes",
                render("{{responses.2xx}}{{responses.3xx}}{{responses.4xx}}{{responses.5xx}}"),
                "1020");
    expect_text("now",
                render("{{now.fresh}}{{now.idle}}{{now.reading}}{{now.asking}}{{now.writing}}{{now."
                       "lingering}}"),
                "010010");
    expect_text("slots",
                render("{{#slots}}[{{slots.slot}} {{slots.id}} {{slots.state}} {{slots.request}} "
                       "{{slots.requests}} {{slots.connections}} {{slots.by_state.fresh}}"
                       "{{slots.by_state.idle}}{{slots.by_state.reading}}{{slots.by_state.asking}}{"
                       "{slots.by_state.writing}}"
                       "{{slots.by_state.lingering}}]{{/slots}}"),
                "[0 41 idle  0 0 010000][1 42 writing GET /&lt;b&gt; 3 1 000010]"
                "[2 43 waiting  0 0 000000]");
    expect_text("not a loop", render("{{#loop}}loop{{/loop}}{{#no_loop}}none{{/no_loop}}"), "none");

    status.cpu_user_ms = 1;
    status.cpu_system_ms = 2;
    status.voluntary = 3;
    status.involuntary = 4;
    status.processes = 5;
    status.threads = 6;
    status.pss_kib = 7;
    status.descriptors = 8;
    status.pid = 9;
    status.uptime_ms = 10;
    for (int i = 0; i < 3; i++)
        status.slots[i].since_ms = 11 * (uint64_t)i;
    expect_text("the rest",
                render("{{cpu_ms.user}}{{cpu_ms.system}}{{switches.voluntary}}{{switches."
                       "involuntary}}{{processes}}"
                       "{{threads}}{{pss_kib}}{{descriptors}}{{pid}} {{uptime_ms}} "
                       "{{#slots}}{{slots.since_ms}},{{/slots}}"),
                "123456789 10 ms 0 ms,11 ms,22 ms,");
}

Test(status, the_page_of_a_loop)
{
    start_as(STATUS_EVENT_LOOP, 1);
    board_claim(board, getpid());
    take();
    expect_text("loop",
                render("{{#loop}}loop{{/loop}}{{#no_loop}}none{{/no_loop}}"
                       "{{#slots}} {{slots.state}} since {{slots.since_ms}}{{/slots}}"),
                "loop loop since ");
}

/* Whatever a client asks for: the JSON can be read, and says what it was. The page may be looked at
 * with curl, in a terminal. */
Test(status, any_byte_in_a_request_is_written_out)
{
    start_as(STATUS_THREADS, 1);
    struct board_slot *slot = board_claim(board, 1);
    board_change_state(slot, -1, STATUS_WRITING, clock_now_ms());
    for (int byte = 1; byte < 256; byte++) {
        const char request[] = {'<', (char)byte, '>', '\0'};
        board_begin_request(slot, request, 3);
        take_json();
        expect_text("request", json_text(&json, "slots.0.request"), request);
        for (const char *at = out.bytes; *at; at++)
            cr_assert(*at == '\n' || (*at >= ' ' && *at <= '~'), "byte %d", byte);
        for (const char *at = render("{{#slots}}{{slots.request}}{{/slots}}"); *at; at++)
            cr_assert(*at >= ' ' && *at <= '~', "byte %d", byte);
    }
}

Test(status, the_page_says_since_when_in_words)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } rows[] = {
        {0, "0 ms"},
        {999, "999 ms"},
        {1000, "1 s"},
        {59999, "59 s"},
        {60000, "1 min 0 s"},
        {3599999, "59 min 59 s"},
        {3600000, "1 h 0 min 0 s"},
        {360000000, "100 h 0 min 0 s"},
    };
    start_as(STATUS_EVENT_LOOP, 1);
    take();
    for (size_t i = 0; i < COUNT(rows); i++) {
        status.uptime_ms = rows[i].ms;
        expect_text("uptime", render("{{uptime_ms}}"), rows[i].text);
    }
}
