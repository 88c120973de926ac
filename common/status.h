/* status: what the scoreboard shows, and what the kernel knows about the server, at one moment. As
 * JSON (/status.json), or through a template (/status).
 *
 * These are real figures, so they have a price. The worker that answers reads /proc, and in an
 * event loop all other clients wait for that. It takes 0.1 ms for one process (0.4 ms with 5,000
 * clients), 6 ms for a hundred children, 30 ms for two thousand (chapters 2 and 3, where other
 * children go on meanwhile), and 6 ms for two thousand threads. It asks Redis nothing.
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
 *                  asking, writing, lingering. The sum of the slots' by_state
 *    cpu_ms        user, system: of all processes since the start, children that have ended
 *                  included. If there are children, the sum is right to 10 ms, and is divided
 *                  between the two as the kernel's ticks are
 *    switches      voluntary, involuntary: context switches of the processes that live now, threads
 *                  that have ended included
 *    processes     that live now, the main one included
 *    threads       of all of them together: 1 for each process at least
 *    pss_kib       memory: pages that several share are divided among them (proportional set size)
 *    descriptors   of all processes together, open or (since Linux 6.2, which counts them itself)
 *                  reserved: a worker that sleeps in accept4(2) reserves one for its next client
 *    slots         one object for each worker there is, in the board's order:
 *       slot         its place on the board, from 0; the next worker may get the same one
 *       id           process id in chapters 1, 2, 3, 6, 7; thread id in 4 and 5
 *       state        waiting (for a client to accept), or the state of its one connection: fresh,
 *                    idle, reading, asking, writing, lingering. An event loop's is "loop". The
 *                    worker that answers this is "reading", as its response has not begun, or
 *                    "writing", if the request came together with the one before
 *       request      method and path of the request that it is answering, as they came: 60 bytes at
 *                    most. A byte above 126 or below 32 is shown as the character of that number.
 *                    "" if there is none. For a loop it is the last one begun: this one
 *       since_ms     how long it has been in its state, to 4 ms or so; null for a loop
 *       requests     answered on this slot so far, by its former workers too
 *       connections  the same
 *       by_state     its open connections, as in `now`: one, or none, except for a loop
 *
 * The slots are read one after the other while their workers go on, so two of them may be some
 * microseconds apart. Of many processes, only STATUS_CLOSELY are read for switches, PSS and
 * descriptors. The rest are taken to be like them.
 */
#ifndef STATUS_H
#define STATUS_H

#include "board.h"
#include "options.h"
#include "template.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { STATUS_CLOSELY = 100 };

/* The first six are enum conn_state's. */
enum status_state {
    STATUS_FRESH,
    STATUS_IDLE,
    STATUS_READING,
    STATUS_ASKING,
    STATUS_WRITING,
    STATUS_LINGERING,
    STATUS_CONNECTION_STATES,
    STATUS_WAITING = STATUS_CONNECTION_STATES,
    STATUS_LOOP,
};

/* What kind of worker owns the slots. */
enum status_workers { STATUS_PROCESSES, STATUS_THREADS, STATUS_EVENT_LOOP };

#define STATUS_NO_TIME UINT64_MAX

struct status_slot {
    enum status_state state;
    uint64_t slot, id, since_ms, requests, connections;
    uint64_t by_state[STATUS_CONNECTION_STATES];
    char request[BOARD_REQUEST + 1];
};

/* A new figure needs a member here, the line that finds it out, a row in status_fields.c, and its
 * place in templates/status. All numbers are uint64_t. */
struct status {
    const char *server, *version, *architecture; /* borrowed */
    uint64_t pid, uptime_ms, workers_most, requests, connections, responses[BOARD_CLASSES];
    uint64_t now[STATUS_CONNECTION_STATES];
    uint64_t waiting; /* workers without a client */
    uint64_t cpu_user_ms, cpu_system_ms, voluntary, involuntary;
    uint64_t processes, threads, pss_kib, descriptors;
    struct status_slot *slots; /* owned */
    uint64_t workers;          /* how many slots */

    /* While it is written. */
    struct status_slot shown;         /* a copy of one */
    char text[4 * BOARD_REQUEST + 1]; /* of a value */
};

/* To be called in the main process, before the first fork. `architecture` is a few words. All that
 * is passed must stay. */
void status_start(const struct options *, const struct board *, enum status_workers,
                  const char *architecture);

/* Reads the board and /proc. Returns false if there is no memory, or if status_start() was not
 * called. */
bool status_snapshot(struct status *);
void status_free(struct status *);

void status_write_json(struct status *, struct buffer *out);

/* The names that its template may use, and the page. */
extern const struct template_name status_names[];
void status_render(struct status *, const struct compiled *, struct buffer *out);

#endif
