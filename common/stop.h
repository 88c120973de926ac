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
void net_catch_signals(bool once);

/* From now on either of the two ends the program. For a parent that forks until it is to stop:
 * instead of `once`, which would change what a child is born with in the middle of fork(2). */
void net_release_signals(void);

bool net_stopping(void);

/* Has what was in flight when the signal came had STOP_MS to finish? Redis is asked nothing more.
 */
bool net_stop_is_over(void);

/* How long those who serve may take to end, in ms: STOP_MS, the reply to what Redis was asked just
 * before, and a tick to notice. What Redis has stored is answered, so nobody is killed earlier. */
int net_stop_ms(const struct options *);

/* The same for an event loop, to which signals come as something to read: blocks them, and returns
 * a signalfd(2). net_take_signal() is called when it is readable: the next one ends the program. */
int net_open_signals(const struct options *);
void net_take_signal(int signals);

#endif
