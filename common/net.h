/* net: the listening socket, and who is at the other end of a connection. Knows nothing of HTTP.
 *
 * The functions that can fail only at start-up do not return errors: they end
 * the program with one line and a status, as a start-up error should.
 */
#ifndef NET_H
#define NET_H

#include "options.h"

#include <stdbool.h>
#include <sys/socket.h>

/* Opens the listening socket. A blocking one ticks: accept(2), and recv(2) and send(2) on the
 * sockets it accepts, which inherit the times, give EAGAIN after TICK_MS. Returns the descriptor,
 * closed on exec. */
int net_listen(const struct options *, bool blocking);

/* Says where the server listens: it is ready. */
void net_announce(const struct options *, int listener);

/* Is that an address of the loopback interface, which only this machine has? And is that who is at
 * the other end of a socket? (A Unix socket's other end always is on this machine.) */
bool net_is_loopback(const struct sockaddr *);
bool net_peer_is_local(int fd);

/* How many clients stand in the listener's queue, their handshakes finished? */
int net_accept_queue_length(int listener);

/* What a failed accept4(2) on a blocking listener means, by errno: nothing most of the time (a
 * tick, a signal, a client gone already). Out of descriptors or memory: waits a tick, because the
 * client is still in the queue and accept would fail again at once. */
void net_handle_accept_error(void);
bool net_out_of_resources(int error); /* the same question, for those who must not wait */

#endif
