/* guestbook: the application. Requests and replies of Redis go in, commands and
 * pages come out. It never waits and does no I/O.
 *
 * A page takes three commands, each asked after the reply to the one before.
 * INCR counts the visitor, GET reads the count, and LRANGE brings the entries.
 * (INCR's reply would do for the count. GET stays, because this project is about
 * waiting.) A post takes one command, RPUSH. If the list then holds more than
 * GUESTBOOK_MAX_ENTRIES + GUESTBOOK_SLACK, it takes a second one, LTRIM, which
 * leaves the newest GUESTBOOK_MAX_ENTRIES. Thanks to the slack most posts take
 * one. The list exceeds the sum only by the posts under way, unless Redis
 * refuses LTRIM.
 *
 * In Redis:
 *    guestbook:visitors  a number
 *    guestbook:entries   a list, oldest first. One entry is three lines,
 *                        "2026-11-21T02:45:37Z\nname\nremarks". A name cannot
 *                        hold a line break, so the remarks may, and no text
 *                        that a visitor types can forge a second entry.
 */
#ifndef GUESTBOOK_H
#define GUESTBOOK_H

#include "http.h"
#include "redis.h"
#include "template.h"

#include <stdbool.h>
#include <time.h>

enum {
    GUESTBOOK_MAX_ENTRIES = 10000,
    GUESTBOOK_SLACK = GUESTBOOK_MAX_ENTRIES / 100, /* entries */
    GUESTBOOK_PAGE_ENTRIES = 20,
    GUESTBOOK_MAX_NAME = 64,        /* characters, not bytes */
    GUESTBOOK_MAX_REMARKS = 1000,   /* a line break is one */
    GUESTBOOK_MAX_PAGE = 100000000, /* a larger number means this one: both are empty */
};

/* One visit, between its commands. */
struct guestbook {
    enum {
        GUESTBOOK_COUNTING,
        GUESTBOOK_READING_COUNT,
        GUESTBOOK_LISTING,
        GUESTBOOK_POSTING,
        GUESTBOOK_TRIMMING,
    } step;
    long page;                 /* 1 is the newest */
    char visitors[40];         /* "1,234,567" */
    char first[24], last[24];  /* of LRANGE, in digits */
    const redisReply *entries; /* borrowed while the page is rendered; then NULL */
    struct span name, remarks; /* what was typed */
    const char *error;         /* what is wrong with the form; NULL: nothing */
    const char *server;        /* the architecture's name, for the page */
};

/* The names that its template may use. */
extern const struct template_name guestbook_names[];

/* Prepares the commands that every visit asks. To be called once, at start. */
void guestbook_start(void);

/* Begins a visit, and sets *ask to its first command. Returns 0, or 400 for a bad query. */
int guestbook_view(struct guestbook *, struct span query, struct redis_command *ask);

/* Takes a form, and decodes it in place in the request's body. Composes the entry in `entry`, which
 * the command borrows. Returns 0; 400 if the visitor has to correct the form (`error`, `name` and
 * `remarks` are then set for the page, shortened to four times what is allowed); 415 for another
 * content type. */
int guestbook_post(struct guestbook *, const struct http_request *, time_t now,
                   struct buffer *entry, struct redis_command *ask);

/* Takes the reply to the last command. Returns 0 if there is another command to ask, 200 if
 * guestbook_render() is next, 303 if an entry was stored, and 503 if Redis refused or its reply
 * makes no sense. At 200 the reply is borrowed until the page is rendered. */
int guestbook_reply(struct guestbook *, const redisReply *, struct redis_command *ask);

/* Renders the page, with the entries or with the form's error. */
void guestbook_render(struct guestbook *, const struct template *, struct buffer *out);

#endif
