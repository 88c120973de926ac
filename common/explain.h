/* explain: what went wrong, in words for a visitor who sees it for the first time. */
#ifndef EXPLAIN_H
#define EXPLAIN_H

/* What an error status means. */
const char *explain_status(int status);

/* What an error from Redis means, found by how its text begins. The error itself is logged on
 * standard error. */
const char *explain_redis_error(const char *error);

/* For REDIS_NOT_ADMITTED: Redis did not accept the password, so there is no reply at all. */
extern const char explain_not_admitted[];

#endif
