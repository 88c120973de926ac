#include "origin.h"

#include "uri.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

/* A server as a browser names it. */
struct authority {
    struct span host, port;
};

/* Under which name the server was asked. It is empty if HTTP/1.0 came without a Host field. */
static struct authority host_of(const struct http_request *request)
{
    struct authority here = {0};
    uri_split_authority(request->host, &here.host, &here.port);
    return here;
}

/* Takes an Origin field apart (RFC 6454, 7). Returns false for "null" and for another scheme. */
static bool read_origin(struct span origin, struct authority *page)
{
    return span_take_prefix(&origin, "http://") &&
           uri_split_authority(origin, &page->host, &page->port);
}

static bool is_same(struct span a, struct span b)
{
    return a.len == b.len && strncasecmp(a.at, b.at, a.len) == 0;
}

bool origin_is_cross_site(const struct http_request *request)
{
    struct span origin = http_field(request, "Origin");
    struct authority page, here = host_of(request);
    if (span_is(http_field(request, "Sec-Fetch-Site"), "cross-site"))
        return true;
    return origin.at && !(read_origin(origin, &page) && is_same(page.host, here.host) &&
                          is_same(page.port, here.port));
}

/* Of a host that uri_split_authority() has found. */
static enum origin_host kind_of(struct span host)
{
    char text[INET6_ADDRSTRLEN];
    struct in_addr ipv4;
    struct in6_addr ipv6;
    if (span_is_nocase(host, "localhost"))
        return ORIGIN_LOOPBACK;
    int bracket = host.len > 0 && host.at[0] == '[';
    /* an address fits; a longer name, cut off, is still none */
    snprintf(text, sizeof(text), "%.*s", (int)host.len - 2 * bracket, host.at + bracket);
    if (bracket) {
        inet_pton(AF_INET6, text, &ipv6);
        return IN6_IS_ADDR_LOOPBACK(&ipv6) ? ORIGIN_LOOPBACK : ORIGIN_ADDRESS;
    }
    if (inet_pton(AF_INET, text, &ipv4) != 1)
        return ORIGIN_NAME;
    return ntohl(ipv4.s_addr) >> 24 == IN_LOOPBACKNET ? ORIGIN_LOOPBACK : ORIGIN_ADDRESS;
}

enum origin_host origin_host_of(const struct http_request *request)
{
    return kind_of(host_of(request).host);
}

bool origin_is_this_machine(const struct http_request *request)
{
    struct authority page;
    return read_origin(http_field(request, "Origin"), &page) &&
           (kind_of(page.host) == ORIGIN_LOOPBACK || is_same(page.host, host_of(request).host));
}

/* 127.0.0.0/8, ::1, and ::ffff:127.0.0.1, which is how a socket bound to "::" sees a client of
 * 127.0.0.1. */
static bool is_loopback(const struct sockaddr *address)
{
    const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)address;
    const struct in6_addr *ipv6 = &((const struct sockaddr_in6 *)address)->sin6_addr;
    if (address->sa_family == AF_INET)
        return ntohl(ipv4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    if (address->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(ipv6) ||
               (IN6_IS_ADDR_V4MAPPED(ipv6) && ipv6->s6_addr[12] == IN_LOOPBACKNET);
    return address->sa_family == AF_UNIX;
}

bool origin_client_is_local(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);
    return getpeername(fd, (struct sockaddr *)&address, &size) == 0 &&
           is_loopback((struct sockaddr *)&address);
}
