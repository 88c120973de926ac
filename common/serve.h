/* serve: how chapters 1 to 5 serve a client. They wait for the client, for Redis,
 * and for the client again, to the end. The chapters differ only in which
 * process or thread calls this.
 */
#ifndef SERVE_H
#define SERVE_H

#include "conn.h"
#include "redis_pool.h"

/* The stack of a thread that serves, in bytes: several times what the deepest calls need. (The
 * default is 8 MiB of addresses, of which a process may have few.) */
enum { SERVE_STACK = 256 * 1024 };

/* Serves one client until its connection ends, and closes it. When the server was asked to stop,
 * that takes at most STOP_MS and the rest of a Redis command. The descriptor is blocking and ticks
 * (net_listen()). Each request takes a Redis connection from the pool, and gives it back. */
void serve_client(struct worker *, int client, struct redis_pool *);

/* Refuses one client with 503, because no process or thread can serve it, and closes it. One that
 * has sent no whole request within a tick gets no response. Takes two ticks at most. */
void serve_unavailable(struct worker *, int client);

/* For worker.count_waiting: the length of the listener's queue, or 0 if another worker is free,
 * because it will take whoever has just come. Or the number that a parent or main thread has
 * written on the board, because it may have no more children or threads: the first worker that may
 * give its client up sets it to 0, and does so. Both: 1 if the server is stopping. */
int serve_waiting_in_queue(const struct worker *);
int serve_waiting_on_board(const struct worker *);

#endif
