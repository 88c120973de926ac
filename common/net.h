/* net: the listening socket. It knows nothing of HTTP.
 *
 * A function that can fail only at start-up returns no error: it prints one line
 * and ends the program.
 */
#ifndef NET_H
#define NET_H

#include "options.h"

#include <stdbool.h>
#include <sys/socket.h> /* for whoever accepts from the listener */

/* Opens the listening socket. A blocking one ticks: accept(2) gives EAGAIN after TICK_MS, and so do
 * recv(2) and send(2) on the accepted sockets, which inherit the times. Returns the descriptor,
 * which is closed on exec. */
int net_listen(const struct options *, bool blocking);

/* How many bytes of responses the kernel takes before the client has acknowledged them. It doubles
 * the number, for its own records (socket(7)). Without a limit it takes up to 4 MiB for each client
 * that does not read. With 32 KiB, a segment of loopback (64 KiB) fills the buffer, and then the
 * next waits 40 ms for a delayed acknowledgement. A client that is far away gets some 60 KiB of
 * its pages in a round trip. */
enum { NET_SEND_BUFFER = 40 * 1024 };
bool net_set_send_buffer(int socket, int bytes);

/* Prints where the server listens. It is ready then. */
void net_announce(const struct options *, int listener);

/* How many clients wait in the listener's queue, with finished handshakes? */
int net_accept_queue_length(int listener);

/* Handles an error of accept4(2) on a blocking listener. Most need nothing: a tick, a signal, a
 * client that has left. If descriptors or memory have run out, it sleeps for a tick. accept4(2)
 * takes a descriptor before it looks for a client, so it would fail again at once, even if nobody
 * waits. It would also fail again if the listener has been shut down (EINVAL), and the signal to
 * stop is still on its way. */
void net_handle_accept_error(void);
bool net_out_of_resources(int error); /* the same check, for a loop that must not sleep */

#endif
