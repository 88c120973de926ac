#include "stop.h"

#include "clock.h"
#include "process.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static _Atomic int64_t stop_asked; /* net_now(); set once, by a handler: for the whole process */

static void stop(int signal_number)
{
    (void)signal_number;
    if (stop_asked == 0)
        stop_asked = net_now();
}

void net_release_signals(void)
{
    signal(SIGTERM, SIG_DFL); /* signal-safety(7) allows that */
    signal(SIGINT, SIG_DFL);
}

/* The next signal, whichever of the two it is, meets the default action. */
static void stop_once(int signal_number)
{
    stop(signal_number);
    net_release_signals();
}

void net_catch_signals(bool once)
{
    /* No SA_RESTART: accept(2) is to return. */
    struct sigaction action = {.sa_handler = once ? stop_once : stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

bool net_stopping(void)
{
    return stop_asked != 0;
}

bool net_stop_is_over(void)
{
    return stop_asked != 0 && net_now() - stop_asked >= STOP_MS;
}

int net_stop_ms(const struct options *o)
{
    return STOP_MS + net_redis_ms(o) + 2 * TICK_MS;
}

static sigset_t stop_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
}

int net_open_signals(const struct options *o)
{
    sigset_t set = stop_signals();
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0)
        net_die(o->name, "signalfd: %s", strerror(errno));
    return signals;
}

void net_take_signal(int signals)
{
    struct signalfd_siginfo info;
    sigset_t set = stop_signals();
    while (read(signals, &info, sizeof(info)) > 0)
        ; /* taken before they are unblocked, or this one would end us */

    net_release_signals(); /* who started us may have ignored them */
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    stop(SIGTERM);
}
