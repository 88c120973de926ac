/* stop: how a server is asked to stop, and how long it may take. */
#ifndef STOP_H
#define STOP_H

#include "options.h"

#include <stdbool.h>

/* How long a server that is asked to stop may take to finish what is in flight. */
enum { STOP_MS = 5000 };

/* SIGTERM and SIGINT set a flag; with `once` the second one ends the program, which is for the
 * process that a person talks to, not for its children. SIGPIPE is ignored: a write to a client
 * that is gone gives EPIPE. Blocking calls are interrupted, never restarted. */
void stop_catch_signals(bool once);

/* From now on either of the two ends the program. For a parent that forks until it is to stop:
 * instead of `once`, which would change what a child is born with in the middle of fork(2). */
void stop_release_signals(void);

bool stop_requested(void);

/* Have STOP_MS passed since the signal? Then Redis is asked nothing more. */
bool stop_time_is_over(void);

/* How long those who serve may take to end, in ms: STOP_MS, the reply to what Redis was asked just
 * before, and a tick to notice. What Redis has stored is answered, so nobody is killed earlier. */
int stop_grace_ms(const struct options *);

/* The same for an event loop, to which signals come as something to read: blocks them, and returns
 * a signalfd(2). When it is readable, stop_read_signalfd() takes the signal, and lets the next one
 * end the program. */
int stop_open_signalfd(const struct options *);
void stop_read_signalfd(int signals);

#endif
