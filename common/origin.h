/* origin: which site's page sent a request, and under which name this server was
 * asked (RFC 6454; Fetch Standard).
 */
#ifndef ORIGIN_H
#define ORIGIN_H

#include "http.h"

#include <stdbool.h>

/* Did a page of another site make its visitor's browser send this form? Browsers say which page a
 * form comes from. Programs such as curl do not, but no page can make them send a form. */
bool origin_is_cross_site(const struct http_request *);

/* Under what was the server asked? The least trusted comes first. The owner of a name decides which
 * address it stands for. That may be 127.0.0.1, too (DNS rebinding). An address stands for itself,
 * so nobody can make a browser take another machine's page for one of this server. */
enum origin_host {
    ORIGIN_NAME,
    ORIGIN_ADDRESS,
    ORIGIN_LOOPBACK, /* localhost, 127.0.0.0/8 or ::1: always this machine */
};
enum origin_host origin_host(const struct http_request *);

/* Was this sent by a page of this machine, such as the wall of another of the seven servers? Such a
 * page was fetched from loopback, or from the host that this request names, on any port. A browser
 * sends requests for pages of all sites. It lets them see a response only if that allows it. */
bool origin_is_this_machine(const struct http_request *);

#endif
