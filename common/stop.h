/* stop: how a server is asked to stop, and how long it may take. */
#ifndef STOP_H
#define STOP_H

#include "options.h"

#include <stdbool.h>

/* How long a server that is asked to stop may take to finish what is in flight. */
enum { STOP_MS = 5000 };

/* SIGTERM and SIGINT set a flag. With `once` the second signal ends the program. That is for the
 * process that a person started, not for its children. SIGPIPE is ignored: a write to a client that
 * is gone gives EPIPE. Blocking calls are interrupted, never restarted. */
void stop_catch_signals(bool once);

/* From now on either of the two ends the program. A parent that forks until it is to stop calls
 * this, and does not use `once`. With `once` the handler might restore the default action just
 * before a fork(2), and the child would inherit it. */
void stop_release_signals(void);

bool stop_requested(void);

/* Have STOP_MS passed since the signal? Then chapters 1 to 5 do not ask Redis any more. */
bool stop_time_is_over(void);

/* How long workers may take to end, in ms: STOP_MS, the reply to a command that Redis was asked
 * just before, and ticks to notice. So a client hears of an entry that Redis has stored, unless the
 * connection to Redis had to be made first and all of it was slow. */
int stop_grace_ms(const struct options *);

/* The same for an event loop, which reads signals from a descriptor: blocks them, and returns a
 * signalfd(2). When it is readable, stop_read_signalfd() takes the signal, and lets the next one
 * end the program. */
int stop_open_signalfd(const struct options *);
void stop_read_signalfd(int signals);

#endif
