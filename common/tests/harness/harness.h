/* harness: what the black-box tests stand on.
 *
 *  - Every case runs against all seven servers, each time in a process, with a
 *    Redis, and in a folder of its own. The suite a test is in is the server's
 *    name, so that the output says who failed and --filter 'epoll/' plus a star
 *    runs the cases of one server.
 *  - The binaries are looked for in the directory that the environment variable
 *    SERVERS names (.), public/ and templates/ in the current one.
 *  - Nothing a test starts outlives it, however it ends; a server has to end
 *    by SIGTERM, with status 0, its statistics, and no child left behind.
 *  - A server of somebody else's, as it is graded, may have a name of its own,
 *    CALLS_ITSELF=mine, though SERVERS holds it under that of its model, and may
 *    know no --workers, NO_WORKERS=1. What only our seven promise (statistics,
 *    some fields) is asked of it in cases of their own, and fails no other case.
 *  - Waiting means waiting for an event. Its limit is there for the case that
 *    the event never comes; PATIENCE=3 makes all limits three times as long,
 *    for servers with sanitizers and machines with other things to do.
 */
#ifndef SERVERS_H
#define SERVERS_H

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <linux/inet_diag.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- a case -------------------------------------------------------------------------------- */

/* Defines one case: EVERY_SERVER(a_sentence_that_should_be_true) { ... } */
#define EVERY_SERVER(sentence)                                                                     \
    static void sentence(void);                                                                    \
    FOR_ALL(AGAINST_ONE, sentence)                                                                 \
    static void sentence(void)

/* The same for the six that serve more than one client at once. */
#define CONCURRENT_SERVERS(sentence)                                                               \
    static void sentence(void);                                                                    \
    AGAINST_WORKERS(sentence)                                                                      \
    AGAINST_LOOPS(sentence)                                                                        \
    static void sentence(void)

/* The same for the five whose workers block, each with one client. */
#define BLOCKING_SERVERS(sentence)                                                                 \
    static void sentence(void);                                                                    \
    FOR_ALONE(AGAINST_ONE, sentence)                                                               \
    AGAINST_WORKERS(sentence)                                                                      \
    static void sentence(void)

/* The same for one of them. */
#define ONLY_SERVER(server, sentence)                                                              \
    static void sentence(void);                                                                    \
    AGAINST(server, sentence)                                                                      \
    static void sentence(void)

/* The servers of common/servers.tsv by their kind, each with the call in which it sleeps for the
 * next client. A test compares them. X(server, call, more) is a macro. */
#define FOR_ALONE(X, more) X(iterative, "accept4", more)
#define FOR_MAKERS(X, more)                                                                        \
    X(forking, "accept4", more)                                                                    \
    X(threading, "accept4", more)
#define FOR_POOLS(X, more)                                                                         \
    X(preforking, "rt_sigtimedwait", more)                                                         \
    X(prethreading, "clock_nanosleep", more)
#define FOR_LOOPS(X, more)                                                                         \
    X(poll, "poll", more)                                                                          \
    X(epoll, "epoll_wait", more)
#define FOR_ALL(X, more)                                                                           \
    FOR_ALONE(X, more) FOR_MAKERS(X, more) FOR_POOLS(X, more) FOR_LOOPS(X, more)

#define AGAINST_MAKERS(sentence)  FOR_MAKERS(AGAINST_ONE, sentence)
#define AGAINST_POOLS(sentence)   FOR_POOLS(AGAINST_ONE, sentence)
#define AGAINST_LOOPS(sentence)   FOR_LOOPS(AGAINST_ONE, sentence)
#define AGAINST_WORKERS(sentence) AGAINST_MAKERS(sentence) AGAINST_POOLS(sentence)

#define AGAINST_ONE(server, call, sentence) AGAINST(server, sentence)
#define AGAINST(server, sentence)                                                                  \
    Test(server, sentence)                                                                         \
    {                                                                                              \
        run_case(#server, sentence);                                                               \
    }

void run_case(const char *server, void (*body)(void));

/* Ends the test if the condition does not hold; says where, what, what the last client said and
 * heard, and what the server had to say on standard error. What follows the condition is a printf
 * format and its arguments. */
#define check(condition, ...) check_that(condition, #condition, __VA_ARGS__)

/* The same, of a condition that is called something else. */
#define check_that(condition, name, ...)                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            cr_assert_fail("%s", describe(name, __VA_ARGS__));                                     \
    } while (0)

const char *describe(const char *condition, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Looks again and again, for what nobody is told of: the end of a process, a line in /proc. */
#define wait_until(condition, limit_ms, ...)                                                       \
    for (int64_t limit_ = now_ms() + patience(limit_ms); !(condition) || now_ms() >= limit_;       \
         poll(NULL, 0, 3))                                                                         \
    check_that(now_ms() < limit_, #condition ", in time", __VA_ARGS__)

/* It has taken at least so long since `start`, and less than that. */
#define check_took(start, least_ms, most_ms)                                                       \
    do {                                                                                           \
        int64_t took_ = now_ms() - (start), least_ = (least_ms), most_ = (most_ms);                \
        check_that(took_ >= least_ && took_ < most_, "in time",                                    \
                   "after %lld ms, and not %lld to %lld", (long long)took_, (long long)least_,     \
                   (long long)most_);                                                              \
    } while (0)

enum { SOON_MS = 10000 }; /* for what should happen at once: if not by then, it never will */

int64_t now_ms(void);         /* of the monotonic clock */
int64_t patience(int64_t ms); /* a limit, as long as PATIENCE asks for */

/* ---- the server ---------------------------------------------------------------------------- */

extern const char *server_name; /* "epoll" */
extern const char *server_says; /* what it calls itself: the same, as a rule */
extern pid_t server_pid;
extern char server_host[64]; /* where it listens: "127.0.0.1", "[::1]" */
extern int server_port;

bool server_is(const char *name);
bool server_is_ours(void);       /* one of the seven, which is not graded */
bool server_is_loop(void);       /* as those of chapters 6 and 7 are */
bool server_has_workers(void);   /* knows --workers */
bool server_has_pool(void);      /* makes its workers at its start: chapter 3 or 5 */
bool server_has_sanitizer(void); /* which has memory and calls of its own */

/* Starts the server, on a free port and with our Redis' socket: start_server("-v", "-k", "0"), and
 * waits until it is ready. Chapters 3 and 5 get 8 workers, unless the options say otherwise; who
 * knows no --workers is not told of them. */
#define start_server(...) start_server_with((const char *const[]){"", ##__VA_ARGS__, NULL})
void start_server_with(const char *const *options);

/* The last words for start_server(), so that one that has a pool has so many workers in it. */
#define POOL_OF(count) server_has_pool() ? "--workers" : NULL, count

void start_server_again(void); /* on the port of the one before, which has ended */

/* The next server is started by this program, which has to turn into it (execve(2)), as prlimit,
 * setpriv and `strace -DD` do: run_under("prlimit", "--nofile=24"). */
#define run_under(...) run_under_with((const char *const[]){__VA_ARGS__, NULL})
void run_under_with(const char *const *words);

/* What it says when asked to stop. run_case() calls this if the case does not. */
struct statistics {
    bool told; /* always, by one of ours; the rest is 0 if not */
    unsigned long long requests, connections;
    double cpu_s;  /* user and system time */
    long peak_kib; /* of the largest process */
};
struct statistics stop_server(void);  /* SIGTERM, and await_server() */
struct statistics await_server(void); /* it has been asked to stop: waits until it has */
bool has_counted(struct statistics, unsigned long long requests, unsigned long long connections);
int await_exit(int limit_ms); /* waits until it is gone; returns its wait(2) status */

/* The lines it has written: on standard error so far, on standard output until it ended. */
const char *server_errors(void);
const char *server_output(void);

/* Runs the server to its end, which should be near: returns its exit status. */
#define run_server(...) run_server_with((const char *const[]){"", ##__VA_ARGS__, NULL})
int run_server_with(const char *const *options);

int count_lines(const char *text);
int count_parts(const char *text, const char *part);

/* ---- processes ----------------------------------------------------------------------------- */

int count_descriptors(pid_t);
int list_children(pid_t, pid_t *children, int room, char *states); /* how many; NULL: not asked */
int count_children(void);                                          /* of the server */
pid_t serving_process(void); /* the one that accepts: of chapter 3 its only worker */
bool process_sleeps(pid_t);  /* its main thread waits in a call */

/* What a file of /proc says of a process or thread, "" if it is gone; and of its status the number
 * behind a name, "\nThreads:", or 0. */
const char *read_process(pid_t, const char *name);
long process_number(pid_t, const char *name);

/* What the server and its present children have used of the CPU so far; what they occupy now of
 * memory, each page they share counted once. Without the program's code: what of that is whose
 * changes with every other process that runs it. */
int64_t server_cpu_ms(void);
long server_pss_kib(void);

/* It uses next to nothing of the CPU for so long, in which nothing can be done for anybody. */
void check_it_sleeps(int ms, const char *when);

/* Starts a program, as the leader of a process group, that dies with the test at the latest. */
pid_t spawn(const char *const *words, int out, int err);

/* Kills and reaps a group, as long as there is a child of ours in it: only so long is its number
 * nobody else's. */
void kill_group(pid_t *leader);

/* ---- the folder ---------------------------------------------------------------------------- */

/* A file's, or folder's, path in the test's own folder, which is removed at the end. Like all that
 * the harness gives out, it is never freed: a test is a process, and a short one. */
const char *place(const char *name);
void write_file(const char *name, const char *bytes, size_t len); /* in that folder */
const char *read_whole(const char *path, size_t *len);            /* any file; NULL: not there */

void make_folder(void); /* run_case() calls this, and the end of the test that */
void remove_folder(void);

/* A folder for --root: public/ holds index.html, templates/ is the project's, and `secret` lies
 * beside them. Returns its path. */
#define SECRET "what lies beside public is nobody's business"
const char *make_root(void);
const char *make_root_with_file(int64_t size); /* the same, and file.bin, of so many zeros */

/* A port of 127.0.0.1 that nobody gets but who reuses it. Returns the socket that keeps it. */
int keep_port(char port[16]);

/* ---- Redis --------------------------------------------------------------------------------- */

/* Starts a private one, with further options of its own, start_redis("--appendonly", "yes"), and
 * waits until it answers; skips the test if the machine has no Redis. */
#define start_redis(...) start_redis_with((const char *const[]){"", ##__VA_ARGS__, NULL})
void start_redis_with(const char *const *options);

/* The same without waiting: it may be asked whether it answers by now. */
#define launch_redis(...) launch_redis_with((const char *const[]){"", ##__VA_ARGS__, NULL})
void launch_redis_with(const char *const *options);
bool redis_answers(void);

void kill_redis(void);
void freeze_redis(void);
void thaw_redis(void);
redisContext *open_redis(void);                   /* a connection of the test's own */
redisReply *redis(const char *command, ...);      /* asks it something */
long long redis_number(const char *command, ...); /* the same, for what answers with a number */

/* Twenty entries of quotation marks, each of which is six bytes of the page, and on the second page
 * an ordinary one. */
void fill_guestbook_with_quotes(void);

/* ---- a client ------------------------------------------------------------------------------ */

struct answer {
    int status;
    const char *fields; /* strings, "Name: value", one behind the other; an empty one ends them */
    const char *body;   /* and a NUL behind it */
    size_t body_len;
    bool kept; /* Connection: keep-alive */
};

struct client {
    int fd;
    char *in; /* what has been received and not yet been looked at is [used, len) */
    size_t len, used;
    struct answer answer; /* the last one */
    char *fields, *body;
    char said[400]; /* the beginning of the last request: enough to type it again */
    size_t said_len;
    bool has_answer;            /* to that */
    struct client *prev, *next; /* of those that are there */
};

struct client *dial(void);
struct client *dial_with_room(int bytes); /* the same, with SO_RCVBUF for what it is sent */
void say(struct client *, const char *text);
void say_and_be_read(struct client *,
                     const char *text); /* and waits until the server has read it */
struct client *dial_and_say(const char *text);
struct client *dial_and_be_read(const char *text);
void say_bytes(struct client *, const void *bytes, size_t len);
bool try_to_say(struct client *, const void *bytes, size_t len); /* false: the server has closed */
void say_no_more(struct client *);                               /* half-closes */

/* Reads exactly one response, and fails if it breaks a rule. If it says `close`, the connection's
 * end has to follow. The answer is the client's, and lives until its next. */
const struct answer *hear(struct client *);
const struct answer *hear_head(struct client *); /* the response to HEAD */
void hear_continue(struct client *);             /* an interim response: 100 */
void hear_end(struct client *);                  /* the connection ends without another byte */
uint64_t hear_rest(struct client *);             /* counts bytes until it ends, however that is, */
uint64_t hear_slowly(struct client *, size_t piece, int every_ms); /* and takes its time */
bool has_heard(const struct client *); /* is there something to hear right now? */

/* The last request and the first line that answered it, for whoever wonders why a test failed; "",
 * where nobody has said anything. */
const char *last_exchange(void);

/* Closes, and frees. At a case's end, run_case() does so with those that are left. */
void hang_up(struct client *);
void hang_up_all(void);
void reset(struct client *); /* the same, the rude way */

/* The server's end of this client's connection, as the kernel describes it (sock_diag(7)); false:
 * there is none any more. /proc/net/tcp is long after other tests, and no snapshot. */
bool find_server_end(const struct client *, struct inet_diag_msg *);

/* How many bytes the server has written to this client so far, whoever has them now; -1: its end
 * of the connection is gone. */
int64_t count_written(const struct client *);

/* The server's ends of all connections in one of these states, a set of bits (1U <<
 * TCP_ESTABLISHED): those that a program has a descriptor of, or those that only the kernel has. */
int count_sockets(unsigned states, bool has_owner);

/* Has the server accepted this client, and read all that it said? And has it closed? */
bool is_read(const struct client *);
bool is_closed_by_server(const struct client *);

/* Can somebody connect to the server's port at this address? */
bool is_reached_at(const char *address);

/* One request on a connection of its own. The answer lives until the next of these. */
const struct answer *ask(const char *request);
const struct answer *get(const char *target);
const struct answer *post(const char *form);

const char *field(const struct answer *, const char *name); /* its value; NULL: not there */

/* Does a 503 have Retry-After? Somebody else's server is asked in a case of its own, and may lack
 * it everywhere else. */
bool says_when_to_come_again(const struct answer *);

/* A Date within a minute of now, a Server such as ZeroHTTPd/VERSION (epoll), a Connection that is
 * kept to, and of a text its charset. */
bool says_what_all_say(const struct answer *);
bool body_has(const struct answer *, const char *text);
void check_file(const struct answer *, const char *path); /* 200, and the file's bytes */

#endif
