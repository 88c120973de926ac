/* conn_response: a response's head, and how its bytes get into the socket. For conn.c only. */
#ifndef CONN_RESPONSE_H
#define CONN_RESPONSE_H

#include "conn.h"

#include <stdbool.h>
#include <sys/types.h>

/* Makes the head of app.response, and decides whether the connection is kept. False: no memory. */
bool conn_make_head(struct conn *);

/* Sends what is left of head and content, in one sendmsg(2). Returns what that does. */
ssize_t conn_send_memory(struct conn *);

/* Sends the next pieces of the file, 240 KiB at most. Returns the bytes of all of them; -1, with
 * errno, if there was none. EIO: the file has become shorter than was promised. */
ssize_t conn_send_file(struct conn *);

#endif
