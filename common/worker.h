/* worker: what a process, a thread or an event loop needs to serve its connections. Each has its
 * own.
 */
#ifndef WORKER_H
#define WORKER_H

#include "board.h"
#include "http.h"
#include "options.h"

#include <time.h>

struct worker {
    const struct options *options;
    struct board_slot *slot;
    /* How many clients wait that this worker could serve if it closed an idle connection? A caller
     * that is told of some closes one, unless it is new (polite.h). (Chapter 2 tells only one of
     * them.) At least 1 if the server is stopping, so that connections are closed then, too. */
    int (*claim_waiting_clients)(const struct worker *);
    /* Called once for a client, before the worker first waits for a request. May be NULL. */
    void (*before_waiting)(void);
    int listener;
    time_t date_of; /* the second that `date` was made for */
    char date[HTTP_DATE_SIZE];
};

#endif
