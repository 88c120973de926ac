#include "net.h"

#include "process.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

/* How many bytes a client may send before they are read. The kernel doubles the number, as below.
 * Without a limit it takes up to 32 MiB from each client that has been read quickly before. The
 * longest body fits, so a client that is far away does not notice. */
enum { RECEIVE_BUFFER = 64 * 1024 };

static bool set_number(int socket, int level, int option, int value)
{
    return setsockopt(socket, level, option, &value, sizeof(value)) == 0;
}

bool net_set_send_buffer(int socket, int bytes)
{
    return set_number(socket, SOL_SOCKET, SO_SNDBUF, bytes);
}

int net_listen(const struct options *o, bool blocking)
{
    const struct timeval tick = {.tv_usec = TICK_MS * 1000L};
    struct addrinfo *address, hints = {
                                  .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                  .ai_socktype = SOCK_STREAM,
                              };
    char port[8];
    snprintf(port, sizeof(port), "%d", o->port);
    if (getaddrinfo(o->bind, port, &hints, &address) != 0)
        options_bad_value(o->name, "--bind", o->bind, "an IPv4 or IPv6 address");

    int type = SOCK_STREAM | SOCK_CLOEXEC | (blocking ? 0 : SOCK_NONBLOCK);
    int listener = socket(address->ai_family, type, 0);
    if (listener < 0)
        process_die(o->name, "cannot make a socket: %s", strerror(errno));
    /* Without SO_REUSEADDR a restart would find the port taken by the last run's connections in
     * TIME_WAIT. The others are inherited by every socket accepted here. */
    if (!set_number(listener, SOL_SOCKET, SO_REUSEADDR, 1) ||
        !set_number(listener, IPPROTO_TCP, TCP_NODELAY, 1) ||
        !set_number(listener, SOL_SOCKET, SO_RCVBUF, RECEIVE_BUFFER) ||
        !net_set_send_buffer(listener, NET_SEND_BUFFER) ||
        (blocking && (setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof(tick)) < 0 ||
                      setsockopt(listener, SOL_SOCKET, SO_SNDTIMEO, &tick, sizeof(tick)) < 0)))
        process_die(o->name, "cannot set socket options: %s", strerror(errno));
    if (bind(listener, address->ai_addr, address->ai_addrlen) < 0 ||
        listen(listener, o->backlog) < 0)
        process_die(o->name, "cannot listen on %s port %d: %s%s", o->bind, o->port, strerror(errno),
                    errno == EADDRINUSE ? "; choose another one with --port" : "");
    freeaddrinfo(address);
    return listener;
}

void net_announce(const struct options *o, int listener)
{
    struct sockaddr_in6 address = {0}; /* IPv4 has the port in the same place */
    socklen_t size = sizeof(address);
    getsockname(listener, (struct sockaddr *)&address, &size);
    bool ipv6 = address.sin6_family == AF_INET6;
    printf("%s: listening on http://%s%s%s:%d\n", o->name, ipv6 ? "[" : "", o->bind,
           ipv6 ? "]" : "", ntohs(address.sin6_port));
    fflush(stdout); /* before the next fork: a child must not find this line in its buffer */
}

/* In a listening socket, this field is the length of its queue (Linux; sock_diag(7) shows the
 * same). */
int net_accept_queue_length(int listener)
{
    struct tcp_info about = {0};
    socklen_t size = sizeof(about);
    getsockopt(listener, IPPROTO_TCP, TCP_INFO, &about, &size);
    return (int)about.tcpi_unacked;
}

bool net_out_of_resources(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

void net_handle_accept_error(void)
{
    if (net_out_of_resources(errno) || errno == EINVAL)
        poll(NULL, 0, TICK_MS);
}
