/* uri: what an address says: escapes, paths, and the authority (RFC 3986). */
#ifndef URI_H
#define URI_H

#include "text.h"

/* Has it only bytes that a path or a query may have as it is sent? */
bool uri_has_valid_bytes(struct span path_or_query);

/* Decodes a path, resolves its dot segments (RFC 3986, 5.2.4), and drops empty ones: "/a//%2e%2e/b"
 * gives "/b". `decoded` has room for path.len + 1 bytes and gets a NUL. Returns false for a bad
 * escape, a control character, no "/" at its start, or a path that leads above the root. */
bool uri_decode_path(struct span path, char *decoded);

/* Escapes the bytes that a URI may not hold as they are: of a decoded path, or of a query as it was
 * sent, whose escapes stay. `encoded` has room for 3 * text.len + 1 bytes. Returns the length. */
size_t uri_encode(struct span text, bool is_query, char *encoded);

/* Decodes "%XX" in place. Returns the new length, or -1 for a bad escape. */
long uri_decode_escapes(char *text, size_t len);

/* The same for application/x-www-form-urlencoded, where "+" is a space. */
long uri_decode_form(char *text, size_t len);

/* Takes host [ ":" port ] apart (RFC 9110, 4.2.1 and 7.2). An IPv6 address keeps its brackets. The
 * port is "80" if there is none. Returns false if it is no such thing: an empty host, say, or one
 * with a user name before it. */
bool uri_split_authority(struct span, struct span *host, struct span *port);

#endif
