/* explain: what went wrong, in words for a visitor who sees it for the first time. */
#ifndef EXPLAIN_H
#define EXPLAIN_H

/* What a status of an error means. */
const char *explain_status(int status);

/* What Redis' refusal means, by how its error begins. Whoever runs the server finds the error
 * itself on standard error. */
const char *explain_redis_error(const char *error);

/* Redis did not accept this server's password, so there is no reply at all. */
extern const char explain_not_admitted[];

#endif
