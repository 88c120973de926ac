/* status: what the scoreboard shows, and what the kernel knows about the server, at one moment, as
 * JSON (/status.json).
 *
 * The worker that answers reads /proc, and in an event loop all other clients wait for that. It
 * asks Redis nothing.
 *
 * The fields of /status.json, always all of them, in this order. Numbers are whole:
 *
 *    server        the binary's name, "epoll"
 *    version       of ZeroHTTPd
 *    architecture  the same in a few words
 *    pid           of the main process, the parent of all others
 *    uptime_ms     since it was ready, within a few ms
 *    workers_most  how many there may be at once: --workers; 1 where there is no such option
 *    requests      answered so far, refusals included. A response counts when it is sent whole, so
 *                  this one is not counted yet
 *    connections   accepted so far
 *    responses     `requests` again, by the class of their status: 2xx, 3xx, 4xx, 5xx
 *    now           the connections that are open, by state (enum conn_state): fresh, idle, reading,
 *                  asking, writing, lingering
 *    cpu_ms        user, system: of all processes since the start, children that have ended
 *                  included. The kernel tells ticks of 10 ms
 *    processes     that live now, the main one included
 *    threads       of all of them together: 1 for each process at least
 *    pss_kib       memory: pages that several share are divided among them (proportional set size)
 *    slots         one object for each worker there is, in the board's order:
 *       slot         its place on the board, from 0; the next worker may get the same one
 *       id           process id in chapters 1, 2, 3, 6, 7; thread id in 4 and 5
 *       state        waiting (for a client to accept), or the state of its one connection: fresh,
 *                    idle, reading, asking, writing, lingering. An event loop's is "loop". The
 *                    worker that answers this is "reading", as its response has not begun, or
 *                    "writing", if the request came together with the one before
 *       request      method and path of the request that it is answering, as they came, or all of a
 *                    line that was refused: 60 bytes at most. A byte above 126 or below 32 is shown
 *                    as the character of that number. "" if there is none. A loop's is this one
 *       since_ms     how long it has been in its state, to 4 ms or so; null for a loop
 *       requests     answered on this slot so far, by its former workers too
 *       connections  the same
 *
 * The board is read, each sum by itself and then the slots, while its workers go on: the
 * numbers of a busy server may differ a little.
 */
#ifndef STATUS_H
#define STATUS_H

#include "board.h"
#include "options.h"
#include "text.h"

/* Of app_start(), in the main process. */
void status_start(const struct options *, const struct board *, const char *architecture);

/* Reads the board and /proc. */
void status_write_json(struct buffer *out);

#endif
