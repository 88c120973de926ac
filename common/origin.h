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

/* Was the server asked under a name that always means this machine: localhost, 127.0.0.0/8 or ::1?
 * The owner of any other name decides which address it stands for. That may be 127.0.0.1, too (DNS
 * rebinding). */
bool origin_host_is_loopback(const struct http_request *);

/* Was this sent by a page of this machine, such as the wall of another of the seven servers? A
 * browser sends requests for pages of all sites. It lets them see a response only if that allows
 * it. */
bool origin_is_this_machine(const struct http_request *);

#endif
