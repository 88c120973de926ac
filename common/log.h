/* log: the access log, on standard output. */
#ifndef LOG_H
#define LOG_H

#include "text.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Writes one line in Common Log Format, with one write(2): who asked (the other end of `client`),
 * when, the request line, the status of the response and the bytes of its content. If standard
 * output is a pipe that is full, the line is lost: otherwise the client would wait, with us, in
 * write(2). */
void log_request(int client, struct span line, time_t when, int status, uint64_t bytes);

/* Waits up to so many ms until write(2) would take a line at once. False if it would have to wait
 * longer, as for the reader of a pipe that is full. Two writers may both be told of the last room:
 * then one of them does wait. */
bool log_wait_for_room(int fd, int ms);

#endif
