/* start: what every server does before it listens, and what no chapter is about. */
#ifndef START_H
#define START_H

#include "board.h"
#include "options.h"
#include "redis.h"
#include "status.h"

/* Sets the process' limits, opens public/, loads the templates, finds Redis, and prepares the
 * status. Returns the scoreboard, which has so many slots. `architecture` is a few words for the
 * status. What is passed must stay. To be called once, before the first fork. If something fails,
 * it prints one line and ends the program. */
struct board *start_server(const struct options *, struct redis_server *, int slots,
                           enum status_workers, const char *architecture);

#endif
