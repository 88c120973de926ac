/* net: what every server does around its clients. Options, the listener, the
 * clock, signals, and the statistics at the end. Knows nothing of HTTP.
 *
 * The functions that can fail only at start-up do not return errors: they end
 * the program with one line and a status, as a start-up error should.
 */
#ifndef NET_H
#define NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

#define ZEROHTTPD_VERSION "0.1.0"

/* No accept(2), recv(2) or send(2) that blocks sleeps longer than a tick, so that whoever blocks
 * looks up often enough to see a deadline, a signal to stop, or somebody who waits. */
enum { TICK_MS = 200 };

/* How long a server that is asked to stop may take to finish what is in flight. */
enum { STOP_MS = 5000 };

struct options {
    const char *name;  /* of this server: "epoll" */
    int port;          /* 0: a free one */
    const char *bind;  /* IPv4 or IPv6 address */
    const char *redis; /* host:port, redis://:password@host:port, or unix:path */
    int workers;       /* processes or threads; 0: this server has no such option */
    const char *root;  /* where public/ and templates/ are */
    int keep_alive_ms; /* 0: close after every response */
    int timeout_ms;    /* a whole request; a response without progress */
    int backlog;       /* finished handshakes that may wait for accept(2) */
    bool verbose;      /* a line a request, on standard output, if there is room in it */
};

/* What follows --timeout (10 s), so that one option makes a whole test quick. */
int net_fresh_ms(const struct options *);   /* a half: a new connection that says nothing */
int net_redis_ms(const struct options *);   /* a fifth: one Redis command */
int net_connect_ms(const struct options *); /* a tenth: connecting to Redis */
int net_linger_ms(const struct options *);  /* a tenth: waiting for a refused client to be quiet */

/* Reads the command line. `workers` is the default of --workers, 0 if the server refuses it.
 * A bad option: one line, status 2. --help and --version: status 0. */
void net_options(struct options *, int argc, char **argv, const char *name, int workers);

/* One line, "name: what 'value': what would be right", on standard error; status 2. */
_Noreturn void net_bad_option(const char *name, const char *what, const char *value,
                              const char *right);

/* One line, "name: what", on standard error; status 1. */
_Noreturn void net_die(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Opens the listening socket; raises the descriptor limit to what the machine allows, and sees how
 * much memory there is (memory.h). A blocking
 * one ticks: accept(2), and recv(2) and send(2) on the sockets it accepts, which inherit the
 * times, give EAGAIN after TICK_MS. Returns the descriptor, closed on exec. */
int net_listen(const struct options *, bool blocking);

/* Makes room in the table of descriptors for so many clients and Redis connections, or for as many
 * as the limit allows. To be called before the first thread: threads share the table, so that to
 * enlarge it later the kernel waits until no core can be looking at the old one (RCU: some 10 ms, a
 * second where all cores are busy), and with it every thread that accepts, opens or connects. */
void net_reserve_descriptors(int count);

/* Says where the server listens: it is ready. */
void net_ready(const struct options *, int listener);

/* Is that an address of the loopback interface, which only this machine has? And is that who is at
 * the other end of a socket? (A Unix socket's other end always is on this machine.) */
bool net_is_loopback(const struct sockaddr *);
bool net_peer_is_local(int fd);

/* How many clients stand in the listener's queue, their handshakes finished? */
int net_how_many_wait(int listener);

/* What a failed accept4(2) on a blocking listener means, by errno: nothing most of the time (a
 * tick, a signal, a client gone already). Out of descriptors or memory: waits a tick, because the
 * client is still in the queue and accept would fail again at once. */
void net_accept_failed(void);
bool net_out_of_resources(int error); /* the same question, for those who must not wait */

/* SIGTERM and SIGINT set a flag; with `once` the second one ends the program, which is for the
 * process that a person talks to, not for its children. SIGPIPE is ignored: a write to a client
 * that is gone gives EPIPE. Blocking calls are interrupted, never restarted. */
void net_catch_signals(bool once);

/* From now on either of the two ends the program. For a parent that forks until it is to stop:
 * instead of `once`, which would change what a child is born with in the middle of fork(2). */
void net_release_signals(void);

bool net_stopping(void);

/* Has what was in flight when the signal came had STOP_MS to finish? Redis is asked nothing more.
 */
bool net_stop_is_over(void);

/* How long those who serve may take to end, in ms: STOP_MS, the reply to what Redis was asked just
 * before, and a tick to notice. What Redis has stored is answered, so nobody is killed earlier. */
int net_stop_ms(const struct options *);

/* The same for an event loop, to which signals come as something to read: blocks them, and returns
 * a signalfd(2). net_take_signal() is called when it is readable: the next one ends the program. */
int net_open_signals(const struct options *);
void net_take_signal(int signals);

/* Milliseconds of the monotonic clock, which no administrator sets back. Coarse: right to one tick
 * of the kernel (4 ms or so), and free of a system call. */
int64_t net_now(void);

/* The same clock, so many ms from now, as pthread_cond_timedwait(3) and its like take it. */
struct timespec net_time_from_now(int ms);

/* The earlier of two times to wait, in ms as poll(2) takes them: -1 is for ever. */
int net_earlier(int, int);

/* Writes text so that it stays on one line of a log, and a terminal obeys none of it: whatever is
 * not printable ASCII, and `"` and `\`, becomes \xHH. As much of it as fits into shown[0, size),
 * with a NUL. */
void net_write_visible(const char *text, size_t len, char *shown, size_t size);

/* Waits up to so many ms until write(2) would take a line at once. False if it would have to wait
 * longer, as for the reader of a pipe that is full. Two writers may both be told of the last room:
 * then one of them does wait. */
bool net_wait_for_room(int fd, int ms);

/* The run's statistics, on standard output: what was served, what it cost, children included. */
void net_report(const struct options *, uint64_t requests, uint64_t connections);

#endif
