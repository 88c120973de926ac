/* origin: which site's page a request comes from, and under which name this server
 * was asked (RFC 6454; Fetch Standard).
 */
#ifndef ORIGIN_H
#define ORIGIN_H

#include "http.h"

#include <stdbool.h>

/* Does a page of another site have its visitor's browser send this form? Browsers say which page a
 * form comes from. Programs such as curl say nothing, and nobody can lead them astray. */
bool origin_is_cross_site(const struct http_request *);

/* Was the server asked under a name that always means this machine: localhost, 127.0.0.0/8 or ::1?
 * Any other name means what its owner's name server says, and that may be 127.0.0.1 as well (DNS
 * rebinding). */
bool origin_host_is_loopback(const struct http_request *);

/* Does a page of this machine ask, as another of the seven's wall does? A browser asks for the
 * pages of others as well, but lets them see an answer only if it allows that. */
bool origin_is_this_machine(const struct http_request *);

#endif
