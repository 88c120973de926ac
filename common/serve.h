/* serve: how chapters 1 to 5 serve a client: wait for it, wait for Redis, wait
 * for it again, to the end. Everything they differ in is who calls this.
 */
#ifndef SERVE_H
#define SERVE_H

#include "conn.h"
#include "redis_pool.h"

/* Serves one client until its connection ends, or until STOP_MS (and the Redis command it is at)
 * after the server was asked to stop, and closes it. The descriptor is blocking and ticks
 * (net_listen). Redis is asked over a connection taken from the pool for as long as one request
 * needs it. */
void serve_client(struct worker *, int client, struct redis_pool *);

/* Tells one client that nobody can serve it (503), and closes it. Takes two ticks at most. */
void serve_unavailable(struct worker *, int client);

/* For worker.claim_waiting_clients: the length of the listener's queue; 1 if the server stops. */
int serve_waiting_clients(const struct worker *);

#endif
