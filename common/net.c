#include "net.h"

#include "clock.h"
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
#include <unistd.h>

/* How much a socket takes that it cannot send yet. Without this limit it is 2.5 MB on loopback.
 * Then a thousand clients that ask for a large file and do not read would use up the memory that
 * the kernel has for all connections of the machine. Bytes on their way to the client are not
 * counted, so a fast client is not slowed down. */
enum { UNSENT_BYTES = 128 * 1024 };

int net_listen(const struct options *o, bool blocking)
{
    const int on = 1, unsent = UNSENT_BYTES;
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
    if (setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
        setsockopt(listener, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent)) < 0 ||
        (blocking && (setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof(tick)) < 0 ||
                      setsockopt(listener, SOL_SOCKET, SO_SNDTIMEO, &tick, sizeof(tick)) < 0)))
        process_die(o->name, "cannot set socket options: %s", strerror(errno));
    if (bind(listener, address->ai_addr, address->ai_addrlen) < 0 ||
        listen(listener, o->backlog) < 0)
        process_die(o->name, "cannot listen on %s port %d: %s%s", o->bind, o->port, strerror(errno),
                    errno == EADDRINUSE ? "; choose another one with --port" : "");
    process_leave_root(o, !net_is_loopback(address->ai_addr));
    freeaddrinfo(address);
    return listener;
}

void net_announce(const struct options *o, int listener)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);
    char port[8] = "?";
    if (getsockname(listener, (struct sockaddr *)&address, &size) == 0)
        getnameinfo((struct sockaddr *)&address, size, NULL, 0, port, sizeof(port), NI_NUMERICSERV);
    bool ipv6 = strchr(o->bind, ':') != NULL;
    printf("%s: listening on http://%s%s%s:%s\n", o->name, ipv6 ? "[" : "", o->bind,
           ipv6 ? "]" : "", port);
    fflush(stdout); /* before the first fork: a child must not find this line in its buffer */
}

/* 127.0.0.0/8, ::1, and ::ffff:127.0.0.1, which is how a socket bound to "::" sees a client of
 * 127.0.0.1. */
bool net_is_loopback(const struct sockaddr *address)
{
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
    switch (address->sa_family) {
    case AF_INET:
        memcpy(&ipv4, address, sizeof(ipv4));
        return ntohl(ipv4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    case AF_INET6:
        memcpy(&ipv6, address, sizeof(ipv6));
        return IN6_IS_ADDR_LOOPBACK(&ipv6.sin6_addr) ||
               (IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr) &&
                ipv6.sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
    default:
        return address->sa_family == AF_UNIX;
    }
}

bool net_peer_is_local(int fd)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);
    return getpeername(fd, (struct sockaddr *)&address, &size) == 0 &&
           net_is_loopback((struct sockaddr *)&address);
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
