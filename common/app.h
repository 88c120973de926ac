/* app: the routes. Which handler answers which method and path, and what all
 * responses have in common.
 *
 *  - A request or a reply of Redis goes in, and one effect comes out: ask Redis
 *    this, or respond with that. The application never waits for the network. The
 *    server decides how to wait for Redis.
 */
#ifndef APP_H
#define APP_H

#include "board.h"
#include "files.h"
#include "guestbook.h"
#include "http.h"
#include "options.h"
#include "redis.h"

enum effect {
    ASK_REDIS, /* app.ask, and hand the reply to app.reply() */
    RESPOND,   /* with app.response, and app.content or app.file */
};

/* One request that is being answered. It begins as {.file.fd = -1}. app_clear() prepares it for the
 * next one. */
struct app {
    int client; /* the client's socket, which tells where the request comes from. The application
                   neither reads nor writes it, and app_clear() keeps it */
    /* takes the reply to `ask`, or NULL if Redis did not answer; `why` is one of redis.h's reasons
     */
    enum effect (*reply)(struct app *, const redisReply *, int why);
    struct redis_command ask;
    struct guestbook guestbook;
    struct http_response response; /* conn.c adds its length, and whether it is kept */
    struct span content;           /* sent from memory; points into `buffer`, or to a constant */
    struct file file;              /* sent from an open file */
    struct buffer buffer;          /* owned: a page, a small file, an address or an entry */
};

/* Prepares what all seven need: sets the process' limits, opens public/, loads the templates, finds
 * Redis, and opens the scoreboard, which it returns, with so many slots. `architecture` is a few
 * words for the status, which need no escape in JSON. What is passed must stay. To be called once,
 * before the first fork. If it fails, it prints one line and ends the program with status 1. */
struct board *app_start(const struct options *, struct redis_server *, int slots,
                        const char *architecture);

/* A part of that: opens public/ and loads the templates. */
void app_load(const struct options *);

/* Takes a whole request. Its bytes must stay in place until the response is made. */
enum effect app_request(struct app *, const struct http_request *);

/* Makes the error page of a status, for a request that is refused before app_request() sees it. */
void app_refuse(struct app *, int status);

/* Closes the file and empties the buffer of one response. A buffer larger than `keep` bytes is
 * freed. */
void app_clear(struct app *, size_t keep);

#endif
