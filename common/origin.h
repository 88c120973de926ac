/* origin: who may see what, and who may send what (RFC 6454): against forged requests (CSRF) and
 * DNS rebinding. It compares where a request comes from with the address that it was sent to.
 */
#ifndef ORIGIN_H
#define ORIGIN_H

#include "http.h"

/* Under what was the server asked? The least trusted comes first. The owner of a name decides which
 * address it stands for. That may be 127.0.0.1, too (DNS rebinding). An address stands for itself,
 * so nobody can make a browser take another machine's page for one of this server. */
enum origin_host {
    ORIGIN_NAME,
    ORIGIN_ADDRESS,
    ORIGIN_LOOPBACK, /* localhost, 127.0.0.0/8 or ::1: always this machine */
};
enum origin_host origin_host_of(const struct http_request *);

/* Did a page of another site make its visitor's browser send this form? Browsers say which page a
 * form comes from. Programs such as curl do not, but no page can make them send a form. */
bool origin_is_cross_site(const struct http_request *);

/* Was this sent by a page of this machine, such as the wall of another of the seven servers? Such a
 * page was fetched from loopback, or from the host that this request names, on any port. A browser
 * sends requests for pages of all sites. It lets them see a response only if that allows it. */
bool origin_is_this_machine(const struct http_request *);

/* Does the other end of this socket have an address of the loopback interface, which only this
 * machine has, or is it a Unix socket? */
bool origin_client_is_local(int fd);

#endif
