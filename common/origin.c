#include "origin.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A server as a browser names it. */
struct authority {
    struct span host, port;
};

/* Under which name the server was asked. It is empty if HTTP/1.0 came without a Host field. */
static struct authority host_of(const struct http_request *request)
{
    struct authority here = {0};
    http_split_authority(request->host, &here.host, &here.port);
    return here;
}

/* Takes an Origin field apart (RFC 6454, 7). Returns false for "null" and for another scheme. */
static bool read_origin(struct span origin, struct authority *page)
{
    return span_take_prefix(&origin, "http://") &&
           http_split_authority(origin, &page->host, &page->port);
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

static enum origin_host kind_of(struct span host)
{
    char text[INET6_ADDRSTRLEN];
    struct in_addr ipv4;
    struct in6_addr ipv6;
    bool in_brackets = host.len > 2 && host.at[0] == '[' && host.at[host.len - 1] == ']';
    if (in_brackets)
        host = (struct span){host.at + 1, host.len - 2};
    if (span_is_nocase(host, "localhost"))
        return in_brackets ? ORIGIN_NAME : ORIGIN_LOOPBACK;
    if (host.len >= sizeof(text))
        return ORIGIN_NAME;
    snprintf(text, sizeof(text), "%.*s", (int)host.len, host.at);
    if (inet_pton(in_brackets ? AF_INET6 : AF_INET, text, in_brackets ? (void *)&ipv6 : &ipv4) != 1)
        return ORIGIN_NAME;
    bool is_loopback =
        in_brackets ? IN6_IS_ADDR_LOOPBACK(&ipv6) : ntohl(ipv4.s_addr) >> 24 == IN_LOOPBACKNET;
    return is_loopback ? ORIGIN_LOOPBACK : ORIGIN_ADDRESS;
}

enum origin_host origin_host(const struct http_request *request)
{
    return kind_of(host_of(request).host);
}

bool origin_is_this_machine(const struct http_request *request)
{
    struct authority page;
    return read_origin(http_field(request, "Origin"), &page) &&
           (kind_of(page.host) == ORIGIN_LOOPBACK || is_same(page.host, host_of(request).host));
}
