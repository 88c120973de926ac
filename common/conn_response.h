/* conn_response: a response's head, and how its bytes get into the socket. For conn.c only. */
#ifndef CONN_RESPONSE_H
#define CONN_RESPONSE_H

#include "conn.h"

#include <stdbool.h>
#include <sys/types.h>

/* Makes the head of app.response, and decides whether the connection is kept. Returns false if
 * there is no memory. */
bool conn_make_head(struct conn *);

/* Sends the rest of head and content with one sendmsg(2), and returns its result. */
ssize_t conn_send_memory(struct conn *);

/* Sends the next pieces of the file, 240 KiB at most. Returns the number of bytes sent, or -1 with
 * errno set if there was none. EIO: the file is now shorter than the length that was promised. */
ssize_t conn_send_file(struct conn *);

#endif
