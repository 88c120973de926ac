/* guestbook: the application. Requests and Redis' replies go in, commands and
 * pages come out; it never waits and never does I/O.
 *
 * The page takes three commands, one after the other, each waiting for its
 * reply: INCR counts the visitor, GET reads the count (INCR's reply would do;
 * it stays because waiting is the subject here), LRANGE brings the entries.
 * Posting takes one, RPUSH. A post that finds the list too long takes a second
 * one, LTRIM, which leaves the newest GUESTBOOK_MAX_ENTRIES. The list is too
 * long when it holds GUESTBOOK_SLACK more, so that most posts take one command.
 * It never holds more than both together and one for each post under way, unless
 * Redis refuses LTRIM.
 *
 * In Redis:
 *    guestbook:visitors  a number
 *    guestbook:entries   a list, oldest first. One entry is three lines,
 *                        "2026-11-21T02:45:37Z\nname\nremarks": the name cannot
 *                        hold a line break, so the remarks may, and nothing
 *                        that is typed can forge a second entry.
 */
#ifndef GUESTBOOK_H
#define GUESTBOOK_H

#include "http.h"
#include "page.h"
#include "redis.h"

#include <stdbool.h>
#include <time.h>

enum {
    GUESTBOOK_MAX_ENTRIES = 10000,
    GUESTBOOK_SLACK = GUESTBOOK_MAX_ENTRIES / 100, /* entries */
    GUESTBOOK_PAGE_ENTRIES = 20,
    GUESTBOOK_MAX_NAME = 64,        /* characters, not bytes */
    GUESTBOOK_MAX_REMARKS = 1000,   /* a line break is one */
    GUESTBOOK_MAX_PAGE = 100000000, /* a larger number means this one: there is nothing there */
};

/* One visit: what is known of the page while its commands are asked. */
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

    /* While rendering: the entry, or neighbouring page, that is being shown. */
    struct span entry_time, entry_name, entry_remarks;
    char number[24];
};

/* The names its template may use. */
extern const struct page_name guestbook_names[];

/* Prepares the commands that every visit asks: once, at start. */
void guestbook_start(void);

/* Begins a visit: *ask is the first command to ask. Returns 0, or 400 for a bad query. */
int guestbook_view(struct guestbook *, struct span query, struct redis_command *ask);

/* Takes a form, decoding it in place in the request's body; the entry that is to be stored is
 * composed in `entry`, which the command borrows. Returns 0; 400 for a form that a person can mend,
 * with `error`, `name` and `remarks` set for the page; 415 for another content type. */
int guestbook_post(struct guestbook *, const struct http_request *, time_t now,
                   struct buffer *entry, struct redis_command *ask);

/* Takes the reply to the last command. Returns 0 when there is another one to ask, 200 when
 * guestbook_render() is due, 303 when an entry was stored, 503 when Redis refused or its reply
 * makes no sense. At 200 the reply is borrowed until the page is rendered. */
int guestbook_reply(struct guestbook *, const redisReply *, struct redis_command *ask);

/* The last command got no reply, and `why` is 503 or 504. Returns the status to answer with: 303 if
 * the entry had been stored before, else `why`. */
int guestbook_no_reply(const struct guestbook *, int why);

/* Renders the page, with the entries or with the form's error. */
void guestbook_render(struct guestbook *, const struct page *, struct buffer *out);

#endif
