/* What a parent has to know of its children. They are real, and do nothing but end. */
#include "children.h"
#include "clock.h"
#include "stop.h"
#include "unit.h"

#include <signal.h>
#include <sys/prctl.h>

static struct children children;
static struct board *board;

static void start(void)
{
    board = board_open(8);
    cr_assert(board);
    children_block_signal();
}

TestSuite(children, .timeout = 60, .init = start);

static pid_t add_child(void (*live)(void))
{
    pid_t pid = fork();
    cr_assert(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* whatever becomes of the test */
        live();
        _exit(0);
    }
    cr_assert(children_add(&children, pid, board_claim(board, pid)));
    return pid;
}

static void end_at_once(void)
{
}

static int owners(void)
{
    int n = 0;
    for (int i = 0; i < board->count; i++)
        n += board->slots[i].owner != 0;
    return n;
}

Test(children, what_a_fork_returned_that_failed_is_nobody)
{
    cr_expect(!children_add(&children, -1, board_claim(board, getpid())),
              "kill(-1) means everybody");
    cr_expect(!children_add(&children, 0, board_claim(board, getpid())),
              "and kill(0) our own group");
    cr_expect(HASH_COUNT(children.by_pid) == 0);
}

Test(children, there_is_nobody_to_reap)
{
    expect_number("nobody", children_reap(&children), -1);
}

Test(children, the_shortest_life_is_told)
{
    struct child *child, *next;
    for (int i = 0; i < 3; i++)
        add_child(end_at_once);
    int64_t age = 1000000;
    HASH_ITER (hh, children.by_pid, child, next) {
        child->born -= age;
        age += 1000000;
    }
    siginfo_t info;
    HASH_ITER (hh, children.by_pid, child, next)
        cr_assert(waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOWAIT) == 0);
    int64_t shortest = children_reap(&children);
    cr_expect(shortest >= 1000000 && shortest < 1100000, "%lld ms", (long long)shortest);
}

Test(children, strangers_are_reaped_without_harm)
{
    siginfo_t info;
    pid_t stranger = fork();
    if (stranger == 0)
        _exit(0);
    cr_assert(waitid(P_PID, (id_t)stranger, &info, WEXITED | WNOWAIT) == 0);
    expect_number("none of ours", children_reap(&children), -1);
    expect_number("reaped", waitpid(stranger, NULL, WNOHANG), -1);
}

Test(children, waiting_ends_with_its_time)
{
    int64_t start_time = clock_now_ms();
    children_wait(100);
    int64_t ms = clock_now_ms() - start_time;
    cr_expect(ms >= 90, "after %lld ms", (long long)ms);
}

/* ---- a child's signals --------------------------------------------------------------------- */

static void be_asked_before(const void *unused)
{
    (void)unused;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    kill(getpid(), SIGTERM); /* between fork(2) and here */
    kill(getpid(), SIGINT);
    children_reset_signals();
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    for (int i = 1; i < NSIG; i++)
        if (sigismember(&mask, i) == 1)
            _exit(1);
    _exit(stop_requested() ? 3 : 2);
}

Test(children, a_signal_that_came_before_finds_its_handler)
{
    expect_number("it noticed", run_apart(be_asked_before, NULL).status, 3);
}

/* ---- stopping all of them ------------------------------------------------------------------ */

static void live_until_asked(void)
{
    sigset_t term;
    int number;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    sigwait(&term, &number);
}

static int ready[2];

static void live_for_ever(void)
{
    signal(SIGTERM, SIG_IGN);
    if (write(ready[1], "r", 1) != 1)
        _exit(9);
    for (;;)
        pause();
}

Test(children, the_stubborn_are_killed)
{
    char byte;
    cr_assert(pipe(ready) == 0);
    int64_t start_time = clock_now_ms();
    add_child(live_for_ever);
    add_child(live_for_ever);
    add_child(live_until_asked);
    cr_assert(read(ready[0], &byte, 1) == 1 && read(ready[0], &byte, 1) == 1);
    children_stop(&children, 200);
    int64_t ms = clock_now_ms() - start_time;
    cr_expect(ms >= 190 && ms < PATIENCE_MS / 2, "%lld ms", (long long)ms);
    expect_number("slots", owners(), 0);
    expect_number("no zombie", waitpid(-1, NULL, WNOHANG), -1);
}
