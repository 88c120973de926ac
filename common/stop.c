#include "stop.h"

#include "clock.h"
#include "process.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* clock_now_ms() of the first signal, 0 before: one for the whole process, set by a handler. */
static _Atomic int64_t stop_asked;

static void stop(int signal_number)
{
    (void)signal_number;
    if (stop_asked == 0)
        stop_asked = clock_now_ms();
}

void stop_release_signals(void)
{
    signal(SIGTERM, SIG_DFL); /* signal-safety(7) allows that */
    signal(SIGINT, SIG_DFL);
}

/* The next signal, whichever of the two it is, meets the default action. */
static void stop_once(int signal_number)
{
    stop(signal_number);
    stop_release_signals();
}

void stop_catch_signals(bool once)
{
    /* No SA_RESTART: accept(2) is to return. */
    struct sigaction action = {.sa_handler = once ? stop_once : stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

bool stop_requested(void)
{
    return stop_asked != 0;
}

bool stop_time_is_over(void)
{
    return stop_asked != 0 && clock_now_ms() - stop_asked >= STOP_MS;
}

int stop_grace_ms(const struct options *o)
{
    return STOP_MS + options_redis_ms(o) + 2 * TICK_MS;
}

static sigset_t stop_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
}

int stop_open_signalfd(const struct options *o)
{
    sigset_t set = stop_signals();
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0)
        process_die(o->name, "signalfd: %s", strerror(errno));
    return signals;
}

void stop_read_signalfd(int signals)
{
    struct signalfd_siginfo info;
    sigset_t set = stop_signals();
    while (read(signals, &info, sizeof(info)) > 0)
        ; /* taken before they are unblocked, or this one would end us */

    stop_release_signals(); /* the program that started us may have ignored them */
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    stop(SIGTERM);
}
