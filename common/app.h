/* app: the routes. Which handler answers which method and path, and what every
 * answer looks like.
 *
 *  - A request or a Redis reply goes in, one effect comes out: ask Redis this,
 *    or respond with that. The application never waits; how the asking is
 *    waited for is the server's business.
 */
#ifndef APP_H
#define APP_H

#include "files.h"
#include "guestbook.h"
#include "http.h"
#include "options.h"
#include "page.h"
#include "redis.h"

enum effect {
    ASK_REDIS, /* app.ask, and hand the reply to app_reply() */
    RESPOND,   /* with app.response, and app.content or app.file */
};

/* One request being answered. It begins as {.file.fd = -1}; app_clear() between two requests. */
struct app {
    int client; /* whose request it is: a socket, for who has to know where it comes from, and not
                   the application's to read or write. It stays when all else is cleared */
    const struct route *route;
    struct redis_command ask;
    struct guestbook guestbook;
    struct http_response response; /* status, type, fields; the length is that of the content */
    struct span content;           /* what is sent from memory; lives in `page` or forever */
    struct file file;              /* what is sent from an open file */
    char range[64];                /* response.content_range */
    struct buffer page;            /* owned: a page, or a small file */
};

/* Opens public/ and loads the templates: once, at start, before anything forks. One line and status
 * 1 if that cannot be done. */
void app_start(const struct options *);

/* Checks, once a second at most, whether a template has changed. Every request does so by itself; a
 * parent that does it before it forks spares its children the check (chapter 2). */
void app_check_templates(void);

/* The Server field's value, and the architecture's name. */
const char *app_server(void);

/* Takes a whole request, whose bytes stay in place until the response is made. */
enum effect app_request(struct app *, const struct http_request *);

/* Takes the reply to app.ask; NULL: Redis did not answer, and `why` is redis.h's. */
enum effect app_reply(struct app *, const redisReply *, int why);

/* Makes the page of a status, for a request that is refused before it gets here. */
void app_refuse(struct app *, int status);

/* The same with 503, where there is no memory for the rest of the request. */
void app_refuse_for_memory(struct app *);

/* Closes and empties what one response used. Memory above `keep` bytes is given back. */
void app_clear(struct app *, size_t keep);

#endif
