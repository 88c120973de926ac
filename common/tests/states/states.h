/* states: an event loop in a made-up world, in which everything happens in every order.
 *
 *  - tested.h has the loop of chapter 6 or 7 as it is, and says what must be true of it whenever it
 *    sleeps.
 *  - kernel.c is what the loop calls: the clock, descriptors, poll(2) and epoll(7). Nothing is
 *    ever sent.
 *  - world.c is what happens while the loop sleeps: what two clients, Redis and the time do.
 *  - search.c goes through all sequences of such events, the short ones first. So the first fault
 *    that it finds comes with the shortest way to it.
 */
#ifndef STATES_H
#define STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Prints the story so far and what is wrong with it, and ends the program. */
#define must(hold, wrong)                                                                          \
    do {                                                                                           \
        if (!(hold))                                                                               \
            search_found(wrong);                                                                   \
    } while (0)
_Noreturn void search_found(const char *wrong);

/* ---- search.c ------------------------------------------------------------------------------ */

/* Which of `count` things happens? All but the first `usual` ones are mishaps. At the end of the
 * sequence nothing happens, and it is over. If the loop sleeps, and was in this state before, no
 * longer sequence is needed. */
int search_choose(int usual, int count, bool asleep);
extern bool search_is_free; /* from here on there is no choice, always 0 */
extern bool search_is_over; /* the loop must end, and it does not matter how */

/* Adds a sentence to the story. `who` is for its "%s". */
void search_tell(const char *sentence, const char *who);

/* Adds a number to the description of the state. */
void search_mix(uint64_t number);
#define mix(number) search_mix((uint64_t)(number))

/* ---- world.c ------------------------------------------------------------------------------- */

enum { CLIENTS_THERE = 2, REDIS_THERE = CLIENTS_THERE, PEERS };

/* The other end of a connection. */
struct peer {
    char unread[512]; /* it has sent this, and the server has not read it */
    size_t len;
    bool here;          /* a client that has connected; Redis, if it has accepted */
    bool refused;       /* Redis, if it has not */
    bool full;          /* there is no room for what the server sends */
    bool ended, reset;  /* it has sent its last byte; it is gone */
    bool shut, dropped; /* so has the server; the server has closed, */
    bool forgotten;     /* and does not care for what is unsent (SO_LINGER) */
};
extern struct peer world_peers[PEERS];
extern int64_t world_now; /* ms */
extern bool world_signal; /* SIGTERM waits to be read */

struct scene; /* what the clients say, and what they have to be told */
const struct scene *world_scene(int number, const char **name, const char **password);
void world_begin(const struct scene *);
void world_mix(void);

void world_calls_redis(void);                              /* connect(2) */
void world_hears(int peer, const char *bytes, size_t len); /* NULL: those of a file */
void world_gives_up(int client);                           /* there is no room for 100 Continue */
void world_is_dropped(int peer);                           /* close(2) */
void world_goes_on(int timeout, bool (*is_ready)(void));   /* until the loop wakes up */

/* ---- kernel.c ------------------------------------------------------------------------------ */

/* Descriptors. A peer's is KERNEL_PEER and its number, each time. */
enum { KERNEL_LISTENER = 500, KERNEL_SIGNALS, KERNEL_EPOLL, KERNEL_PEER };
void kernel_begin(void);
void kernel_mix(void);
int kernel_connections(void); /* open descriptors, of clients and to Redis */
short kernel_watches(int fd); /* what the loop listens for: POLLIN, POLLOUT */

/* ---- tested.h -------------------------------------------------------------------------------- */

extern const char *const tested_name;
void tested_begin(const char *password); /* of Redis; "": none */
void tested_play(void);         /* round after round, until the loop or the search is over */
void tested_check(int timeout); /* it is about to sleep for so many ms, or for ever (-1) */
bool tested_has_work(void);
void tested_mix(void);

#endif
