/* serve: how chapters 1 to 5 serve a client: wait for it, wait for Redis, wait
 * for it again, to the end. Everything they differ in is who calls this.
 */
#ifndef SERVE_H
#define SERVE_H

#include "conn.h"
#include "redis.h"

/* Serves one client until its connection ends, and closes it. The descriptor is blocking and ticks
 * (net_listen). Redis is asked over a connection taken from the pool for as long as one request
 * needs it. */
void serve_client(struct worker *, int client, struct redis_pool *);

/* Tells one client that there is nobody to serve it (503), and closes it. Takes two ticks at most.
 */
void serve_busy(struct worker *, int client);

/* For worker.somebody_waits: is there a client in the listener's queue, or is the server stopping?
 */
bool serve_somebody_waits(const struct worker *);

#endif
