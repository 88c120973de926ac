/* log: the access log, on standard output, and messages, on standard error. */
#ifndef LOG_H
#define LOG_H

#include "text.h"

#include <stdbool.h>
#include <stdint.h>

enum { LOG_PEER_SIZE = 64 }; /* an IPv6 address, % and the name of an interface */

/* The address of a client's socket, or "-". A socket that the client has reset no longer has it. */
void log_peer(int client, char peer[LOG_PEER_SIZE]);

/* Writes one line in Common Log Format, with one write(2): the address, the time, the request line,
 * the status of the response and the bytes of its content, which are about to be sent. If standard
 * output is a full pipe, or a terminal that Ctrl-S has stopped, the line is lost. Otherwise the
 * worker, and with it the client, would wait in write(2). */
void log_request(const char *peer, struct span line, int status, uint64_t bytes);

/* Writes one line, "NAME: message", on standard error, with one write(2). The line is lost in the
 * same case: a terminal that Ctrl-S has stopped must not stop the server. At most 1,200 bytes. */
void log_message(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Waits up to `ms` milliseconds until write(2) would not block. Returns false if it still would, as
 * on a full pipe. Two writers may both be told of the same room. Then one of them does block. */
bool log_wait_for_room(int fd, int ms);

#endif
