/* stand_in: a Redis that does what a real one cannot be told to do. A thread of the test listens in
 * its place and knows the guestbook's five commands: INCR and GET count visitors, LRANGE gives one
 * entry, whose remarks say which were asked for ("-21 to -1"), RPUSH counts entries, LTRIM changes
 * nothing, any AUTH is accepted. */
#ifndef STAND_IN_H
#define STAND_IN_H

#include <stdbool.h>

void start_stand_in(void);

/* How it answers, until told otherwise; {0}: as Redis does. */
struct manner {
    const char *at;   /* which command, "GET"; NULL: every */
    const char *says; /* instead of the reply; NULL: the reply */
    bool half;        /* only the first half of that */
    bool in_bytes;    /* one after the other */
    int pause_ms;     /* before each reply, or before each byte of it */
    enum {
        GOES_ON,
        FALLS_SILENT, /* on this connection, for good */
        CLOSES,
        FREEZES, /* before it answers, as by SIGSTOP; told otherwise, it answers all, too late */
    } then;
};
void stand_in(struct manner);

void stand_in_has_entries(long long count); /* before the next RPUSH */
bool stand_in_is_frozen(void);
int stand_in_heard(const char *command); /* how often, so far */

#endif
