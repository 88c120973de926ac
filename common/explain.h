/* explain: what went wrong, in words for a visitor who sees it for the first time. */
#ifndef EXPLAIN_H
#define EXPLAIN_H

#include <stdbool.h>

/* What an error status means. */
const char *explain_status(int status);

/* What an error from Redis means, found by how its text begins. The error itself is logged on
 * standard error. `posted`: it was the reply to a visitor's entry, and Redis does nothing of a
 * command that it refuses. */
enum { EXPLAIN_SIZE = 256 };
void explain_redis_error(const char *error, bool posted, char text[EXPLAIN_SIZE]);

/* For REDIS_NOT_ADMITTED and REDIS_NOT_READY: Redis refused AUTH, so there is no reply at all. */
extern const char explain_not_admitted[], explain_not_ready[];

#endif
