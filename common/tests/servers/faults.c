/* Faults: what a system call may answer besides what was hoped for is weather. Each row of the
 * table is injected into a running server by strace(1), while a client needs that very call.
 *
 *  - The client concerned gets what the row says; every later one is served as if nothing had
 *    been; the server lives, ends with status 0, and holds no descriptor more than before.
 *  - A row whose fault never happened fails: its call is made no more, or another one instead.
 *  - strace is attached when the server stands ready and detached after each row, so that a count
 *    in `when` begins with the client, in each process and thread anew, and a sanitizer's check
 *    for leaks at the end is not disturbed.
 *  - No deadline is near, so nothing but the way that a fault is dealt with ends a request.
 */
#include "tests/harness/harness.h"

#include <libgen.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- the table ----------------------------------------------------------------------------- */

#define NUMBER(server, call, nothing) NUMBER_##server,
#define OR_BIT(server, call, nothing) | 1 << NUMBER_##server
enum { FOR_ALL(NUMBER, ) };
enum { /* sets of servers */
       FORKING = 1 << NUMBER_forking,
       PREFORKING = 1 << NUMBER_preforking,
       THREADING = 1 << NUMBER_threading,
       PRETHREADING = 1 << NUMBER_prethreading,
       POLL = 1 << NUMBER_poll,
       EPOLL = 1 << NUMBER_epoll,
       LOOPS = 0 FOR_LOOPS(OR_BIT, ),
       ALL = 0 FOR_ALL(OR_BIT, ),
       BLOCKING = ALL & ~LOOPS,
};

enum visit {
    HOME,     /* asks for the home page, */
    SMALL,    /* for a file that is sent from memory, */
    PICTURE,  /* for one that is not, */
    PAGE,     /* for the guestbook, */
    NEW_PAGE, /* the same, when Redis has just closed all connections; */
    POST,     /* leaves an entry, */
    EXPECT,   /* the same, with Expect: 100-continue; */
    NONSENSE, /* speaks no HTTP; */
    LATER,    /* says nothing before the fault has happened; */
    ORPHAN,   /* comes when the only worker has been killed */
};

enum {                /* what the client may see */
       SERVED = 1,    /* what it would have got without the fault */
       BUSY = 2,      /* 503 */
       TOO_LATE = 4,  /* 504 */
       FORBIDDEN = 8, /* 403 */
       CUT = 16,      /* the connection's end, before or in the middle of the response */
};

static const struct fault {
    const char *calls;  /* as strace names a set of them; ? before what not every machine has */
    const char *errors; /* one after the other */
    const char *when;   /* which calls, counted in each process and thread; strace's notation */
    unsigned servers;   /* whom it concerns */
    enum visit visit;
    unsigned may;
} table[] = {
    /* accepting: out of something it pauses for a tick, otherwise it tries again at once */
    {"accept4", "EMFILE ENFILE ENOMEM ENOBUFS", "1", ALL, HOME, SERVED},
    {"accept4", "EINTR ECONNABORTED EPROTO EPERM EAGAIN", "1..3", ALL, HOME, SERVED},

    /* receiving; and: is anything left? is Redis there? */
    {"recvfrom", "EINTR EAGAIN", "1", ALL, HOME, SERVED},
    {"recvfrom", "ECONNRESET ENOMEM", "1", ALL, HOME, CUT},
    {"recvfrom", "ECONNRESET", "2", ALL, PAGE, SERVED | CUT},

    /* sending */
    {"sendmsg", "EINTR EAGAIN", "1", ALL, PAGE, SERVED},
    {"sendmsg", "EPIPE ENOMEM", "1", ALL, PAGE, CUT},
    {"sendto", "EAGAIN EPIPE", "1", ALL, EXPECT, CUT}, /* no room even for a 100 */
    {"sendfile", "EINTR EAGAIN", "1..2", ALL, PICTURE, SERVED},
    {"sendfile", "EPIPE EIO", "1", ALL, PICTURE, CUT},

    /* files: only what is not there is a 404 */
    {"openat2", "ENOSYS EPERM", "1", ALL, PICTURE, SERVED},
    {"openat2", "EACCES", "1", ALL, PICTURE, FORBIDDEN},
    {"openat2", "EMFILE ENOMEM EIO EINTR EAGAIN", "1", ALL, PICTURE, BUSY},
    {"?fstat,?newfstatat", "EIO", "1", ALL, PICTURE, BUSY},
    {"pread64", "EIO EINTR", "1", ALL, SMALL, SERVED},

    /* waiting */
    {"?poll,?ppoll", "EINTR ENOMEM", "1..3", POLL, PAGE, SERVED},
    {"?epoll_wait,?epoll_pwait", "EINTR", "1..3", EPOLL, PAGE, SERVED},
    {"epoll_ctl", "ENOMEM ENOSPC", "1", EPOLL, LATER, CUT},
    {"epoll_ctl", "ENOSPC", "1..2", EPOLL, NEW_PAGE, SERVED | BUSY | CUT},
    {"rt_sigtimedwait", "EINTR EAGAIN", "1", PREFORKING, HOME, SERVED},
    {"clock_nanosleep", "EINTR", "1", PRETHREADING, HOME, SERVED},
    {"wait4", "EINTR ECHILD", "1", FORKING, HOME, SERVED},

    /* no process, or no thread */
    {"?clone,?clone3", "EAGAIN", "1..9", FORKING | THREADING, HOME, BUSY},
    {"?clone,?clone3", "EAGAIN", "1..3", PREFORKING, ORPHAN, SERVED},

    /* Redis: connecting */
    {"socket", "EMFILE ENOBUFS", "1", ALL, NEW_PAGE, BUSY},
    {"connect", "ECONNREFUSED ETIMEDOUT", "1", ALL, NEW_PAGE, BUSY},
    {"connect", "EINTR", "1..2", BLOCKING, NEW_PAGE, SERVED},
    {"connect", "EAGAIN", "1", BLOCKING, NEW_PAGE, BUSY}, /* it has waited until SO_SNDTIMEO */
    {"connect", "EAGAIN", "1..2", LOOPS, NEW_PAGE, SERVED | BUSY},

    /* Redis: asking, and being answered */
    {"write", "EINTR", "1", ALL, PAGE, SERVED},
    {"write", "EAGAIN", "1", BLOCKING, PAGE, TOO_LATE},
    {"write", "EAGAIN EPIPE", "1", LOOPS, POST, SERVED}, /* the end of the connection tells more */
    {"write", "ENOMEM", "2", ALL, PAGE, BUSY},
    {"read", "EINTR", "1", ALL, PAGE, SERVED},
    {"read", "EAGAIN", "1", LOOPS, PAGE, SERVED},
    {"read", "EAGAIN", "1", BLOCKING, PAGE, TOO_LATE},
    {"read", "ECONNRESET ETIMEDOUT", "1", ALL, POST, BUSY},
    {"read", "ENOMEM", "2", ALL, PAGE, BUSY},

    /* the end of a connection, and the log */
    {"shutdown", "ENOTCONN", "1", ALL, NONSENSE, SERVED},
    {"getpeername", "ENOTCONN", "1", ALL, HOME, SERVED},
    {"write", "EINTR EPIPE ENOSPC", "1", ALL, HOME, SERVED},
};

static bool concerns_server(const struct fault *fault)
{
#define BIT(server, call, nothing) server_is(#server) ? 1U << NUMBER_##server:
    return fault->servers & (FOR_ALL(BIT, ) 0);
}

/* A new server would pass with what all have in common, although nobody has thought of it here. */
static bool is_tried_where_it_sleeps(void)
{
#define CALL(server, call, nothing) server_is(#server) ? call:
    const char *call = FOR_ALL(CALL, ) "none";
    for (size_t i = 0; i < COUNT(table); i++)
        if (strstr(table[i].calls, call) && concerns_server(&table[i]))
            return true;
    return false;
}

/* ---- strace at the server's side ----------------------------------------------------------- */

static pid_t strace_pid;

static const char *strace_log(void)
{
    const char *log = read_whole(place("strace"), NULL);
    return log ? log : "";
}

static bool has_happened(void)
{
    return strstr(strace_log(), "(INJECTED)");
}

/* strace reports each process that it was told of when it has got hold of it. Where there is no
 * strace, or no right to use it (as with kernel.yama.ptrace_scope), the test is skipped. */
static bool is_attached(int processes)
{
    const char *said = read_whole(place("strace.said"), NULL);
    int status;
    if (waitpid(strace_pid, &status, WNOHANG) == strace_pid) {
        if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
            cr_skip_test("strace is not installed");
        if (said && strstr(said, "not permitted"))
            cr_skip_test("strace may not attach here");
        check(false, "strace has ended: %s", said);
    }
    return said && count_parts(said, " attached") >= processes;
}

/* Injects one fault, or two, if the other one is not NULL. */
static void attach(const char *calls, const char *fault, const char *other)
{
    char pids[40];
    bool two = server_is("preforking");
    snprintf(pids, sizeof(pids), two ? "%d,%d" : "%d", (int)server_pid, (int)serving_process());
    const char *words[] = {"strace", "-f", "-o",  place("strace"),     "-p",  pids, "-e",
                           calls,    "-e", fault, other ? "-e" : NULL, other, NULL};
    int said = open(place("strace.said"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    strace_pid = spawn(words, said, said);
    close(said);
    wait_until(is_attached(two ? 2 : 1), SOON_MS, "strace is not attached: %s",
               read_whole(place("strace.said"), NULL));
}

static void detach(void)
{
    kill(strace_pid, SIGTERM);
    wait_until(waitpid(strace_pid, NULL, WNOHANG) == strace_pid, SOON_MS, "strace stays");
}

/* ---- the client ---------------------------------------------------------------------------- */

#define GET(target) "GET " target " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
#define POST_WITH(field)                                                                           \
    "POST /guestbook HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: 28\r\n" field  \
    "Content-Type: application/x-www-form-urlencoded\r\n\r\nguest-name=a&guest-remarks=b"
#define GO_AHEAD "HTTP/1.1 100 Continue\r\n\r\n"

static const struct {
    const char *request;
    int status;       /* of the response, if nothing goes wrong */
    const char *file; /* and what it brings, if that is a file */
} visits[] = {
    [HOME] = {GET("/"), 200, "public/index.html"},
    [SMALL] = {GET("/style.css"), 200, "public/style.css"},
    [PICTURE] = {GET("/tux.png"), 200, "public/tux.png"},
    [PAGE] = {GET("/guestbook"), 200, NULL},
    [NEW_PAGE] = {GET("/guestbook"), 200, NULL},
    [POST] = {POST_WITH(""), 303, NULL},
    [EXPECT] = {POST_WITH("Expect: 100-continue\r\n"), 303, NULL},
    [NONSENSE] = {"nonsense\r\n\r\n", 400, NULL},
    [LATER] = {GET("/"), 200, "public/index.html"},
    [ORPHAN] = {GET("/"), 200, "public/index.html"},
};

/* Receives until the connection ends, however that is, unlike hear(). */
static void receive_all(struct client *c)
{
    enum { PIECE = 64 * 1024 };
    int64_t limit = now_ms() + patience(SOON_MS);
    for (ssize_t n = 1; n > 0; c->len += n > 0 ? (size_t)n : 0) {
        struct pollfd fd = {.fd = c->fd, .events = POLLIN};
        int64_t left = limit - now_ms();
        check(left > 0 && poll(&fd, 1, (int)left) > 0, "the server neither answers nor closes: %s",
              strace_log());
        c->in = realloc(c->in, c->len + PIECE);
        n = recv(c->fd, c->in + c->len, PIECE - 1, 0);
    }
    c->in[c->len] = '\0';
}

/* What the client has seen, as one of the bits above; 0 for what must not be. A response that is
 * whole is held to hear()'s rules. */
static unsigned seen_by(struct client *c, enum visit visit)
{
    receive_all(c);
    if (strncmp(c->in, GO_AHEAD, strlen(GO_AHEAD)) == 0)
        c->used = strlen(GO_AHEAD);
    const char *end = strstr(c->in + c->used, "\r\n\r\n");
    const char *length = end ? strcasestr(c->in + c->used, "\r\nContent-Length: ") : NULL;
    size_t body = length ? strtoull(length + 18, NULL, 10) : 0;
    if (!end || (size_t)(c->in + c->len - (end + 4)) < body)
        return CUT;
    const struct answer *answer = hear(c);
    if (answer->status == visits[visit].status) {
        if (visits[visit].file)
            check_file(answer, visits[visit].file);
        return SERVED;
    }
    check(answer->status != 503 || says_when_to_come_again(answer), "503 without Retry-After");
    return answer->status == 503   ? BUSY
           : answer->status == 504 ? TOO_LATE
           : answer->status == 403 ? FORBIDDEN
                                   : 0;
}

static unsigned pay(enum visit visit)
{
    if (visit == ORPHAN) {
        pid_t worker = serving_process();
        kill(worker, SIGKILL);
        wait_until(kill(worker, 0) < 0, SOON_MS, "it was not reaped");
    }
    struct client *c = dial();
    if (visit == LATER)
        wait_until(has_happened(), SOON_MS, "it never happened");
    try_to_say(c, visits[visit].request, strlen(visits[visit].request));
    unsigned seen = seen_by(c, visit);
    hang_up(c);
    return seen;
}

/* ---- one row ------------------------------------------------------------------------------- */

/* Redis closes all connections but the test's own, and the server has noticed. */
static void lose_redis(void)
{
    pid_t pid = serving_process();
    int before = count_descriptors(pid);
    redis("CLIENT KILL TYPE normal");
    if (server_is_loop())
        wait_until(count_descriptors(pid) < before, SOON_MS, "the connection stays open");
}

/* Goes there while the fault is being injected; afterwards nothing has been, as far as the next
 * client can tell. */
static void check_fault(const struct fault *fault, const char *error)
{
    char calls[100], injected[200], name[200];
    int descriptors = count_descriptors(serving_process());
    snprintf(calls, sizeof(calls), "trace=%s", fault->calls);
    snprintf(injected, sizeof(injected), "inject=%s:error=%s:when=%s", fault->calls, error,
             fault->when);
    snprintf(name, sizeof(name), "%s %s, while a client says %.*s", fault->calls, error,
             (int)strcspn(visits[fault->visit].request, "\r"), visits[fault->visit].request);
    if (fault->visit == NEW_PAGE)
        lose_redis();
    attach(calls, injected, NULL);
    unsigned seen = pay(fault->visit);
    wait_until(has_happened(), SOON_MS, "%s never happened: %s", name, strace_log());
    detach();
    check(seen & fault->may, "%s: the client saw %#x; it may see %#x\n%s", name, seen, fault->may,
          strace_log());

    check(waitpid(server_pid, NULL, WNOHANG) == 0, "%s: the server has ended", name);
    check_file(get("/"), "public/index.html");
    int status = get("/guestbook")->status;
    check(status == 200, "%s: the next page: %d", name, status);
    wait_until(count_descriptors(serving_process()) <= descriptors, SOON_MS,
               "%s: %d descriptors before, %d after", name, descriptors,
               count_descriptors(serving_process()));
}

/* Of several workers, the same one has to recover. */
static void start_with_one_worker(void)
{
    start_redis();
    start_server("-v", "--timeout", "60", POOL_OF("1"));
    get("/guestbook");
    get("/");
}

EVERY_SERVER(whatever_a_system_call_answers_the_next_client_is_served)
{
    check(is_tried_where_it_sleeps(), "no row is about the call in which it waits for clients");
    start_with_one_worker();
    for (size_t i = 0; i < COUNT(table); i++) {
        char *errors = strdup(table[i].errors);
        for (char *error = strtok(errors, " "); error && concerns_server(&table[i]);
             error = strtok(NULL, " "))
            check_fault(&table[i], error);
        free(errors);
    }
}

/* The signal comes in the middle of making a process. The parent is quick to pass it on, and its
 * youngest child slow to prepare for that (set_robust_list(2) is glibc's first call in it); but who
 * has been accepted gets a response. */
ONLY_SERVER(forking, a_client_whose_process_is_made_as_the_signal_comes_is_served)
{
    run_under("env", "LSAN_OPTIONS=detect_leaks=0"); /* it cannot, in who is traced to its end */
    start_with_one_worker();
    attach("trace=clone,?clone3,set_robust_list", "inject=clone,?clone3:signal=SIGTERM:when=1",
           "inject=set_robust_list:delay_enter=300000:when=1");
    check(pay(HOME) == SERVED, "it was not: %s", strace_log());
    await_server(); /* nobody else has sent it a signal */
    detach();
}

/* ---- no more processes or threads ----------------------------------------------------------- */

/* One that idles makes way for the next, as at the limit of --workers: one for each try, so that
 * some are left. Without anybody who could make way it would be a 503. */
static void at_the_machines_limit_idle_clients_make_way(void)
{
    enum { IDLE = 20 };
    struct client *idle[IDLE];
    int gone = 0;
    start_server("--keep-alive", "600");
    for (int i = 0; i < IDLE; i++) {
        idle[i] = dial_and_say("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
        check(hear(idle[i])->kept, "not kept, though nobody waits");
    }
    attach("trace=?clone,?clone3", "inject=?clone,?clone3:error=EAGAIN:when=1..12", NULL);
    check(pay(HOME) == SERVED, "it was not served: %s", strace_log());
    for (int i = 0; i < IDLE; i++)
        gone += has_heard(idle[i]);
    check(gone > 0, "nobody made way: %s", strace_log());
    detach();
}
AGAINST_MAKERS(at_the_machines_limit_idle_clients_make_way)

/* A fixed set of workers: better to say so than to serve with fewer. */
static void expect_no_start(const char *says)
{
    if (system("strace -qqo /dev/null true 2>/dev/null") != 0)
        cr_skip_test("strace is not installed, or may not trace");
    run_under("env", "ASAN_OPTIONS=detect_leaks=0", "strace", "-DD", "-fqo", place("strace"), "-e",
              "inject=?fork,?clone,?clone3:error=EAGAIN:when=5");
    check(run_server() == 1 && strstr(server_errors(), says), "it starts with fewer workers");
}

ONLY_SERVER(preforking, with_too_few_processes_to_be_had_it_does_not_start)
{
    expect_no_start(server_is_ours() ? "cannot create 8 processes" : "process");
}

/* While a thread sleeps in accept4(2), it already has the descriptor of its client. */
ONLY_SERVER(prethreading, with_too_few_threads_or_descriptors_to_be_had_it_does_not_start)
{
    expect_no_start(server_is_ours() ? "cannot create 8 threads" : "thread");
    run_under("prlimit", "--nofile=76");
    check(run_server() == 1 && strstr(server_errors(), "descriptors"), "it starts with too few");
}

/* Its stacks are as small as chapter 4's. */
ONLY_SERVER(prethreading, a_hundred_threads_fit_into_512_mib_of_addresses)
{
    if (server_has_sanitizer() || system("prlimit --as=536870912 true 2>/dev/null") != 0)
        cr_skip_test("a sanitizer needs more, or prlimit is not installed");
    run_under("prlimit", "--as=536870912");
    start_server("--workers", "100");
    check_file(get("/"), "public/index.html");
}

/* ---- memory that is scarce ----------------------------------------------------------------- */

/* The status of the response, and of its page, if it is one that explains a status; 0 if the
 * connection ends without one. */
static int status_or_end(struct client *c)
{
    receive_all(c);
    int status = c->len < 12 ? 0 : atoi(c->in + strlen("HTTP/1.1 "));
    const char *page = memmem(c->in, c->len, "<small>", strlen("<small>"));
    check(!page || atoi(page + strlen("<small>")) == status, "%d, and %.20s", status, page);
    return status;
}

enum { KINDS = 4, AT_ONCE = 2 * KINDS };

/* Some ask at once, some leave an entry. Each is answered with what they asked for, or with 503.
 * Returns how many entries are said to be there. */
static int ask_together(void)
{
    static const struct {
        const char *request;
        int status;
    } rows[] = {
        {GET("/guestbook"), 200},
        {POST_WITH(""), 303},
        {GET("/tux.png"), 200},
        {"GET /tux.png HTTP/1.1\r\nHost: test\r\nIf-Match: a\r\nConnection: close\r\n\r\n", 412}};
    struct client *clients[AT_ONCE];
    int posted = 0;
    for (int i = 0; i < AT_ONCE; i++) {
        clients[i] = dial();
        try_to_say(clients[i], rows[i % KINDS].request, strlen(rows[i % KINDS].request));
    }
    for (int i = 0; i < AT_ONCE; i++) {
        int status = status_or_end(clients[i]);
        check(status == rows[i % KINDS].status || status == 503 || status == 0, "status %d",
              status);
        posted += status == 303;
        hang_up(clients[i]);
    }
    return posted;
}

/* Starts a server with the library that lies beside the program of the tests. In LD_PRELOAD a space
 * ends a path, and that of a clone may have one: a link leads there. */
static void start_with_scarce_memory(void)
{
    char self[4096] = "", *path, *variable, *scarce;
    if (server_has_sanitizer())
        cr_skip_test("a sanitizer has an allocator of its own");
    check(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0 &&
              asprintf(&path, "%s/common/tests/scarce_memory.so", dirname(self)) > 0 &&
              symlink(path, place("scarce_memory.so")) == 0 &&
              asprintf(&variable, "LD_PRELOAD=%s", place("scarce_memory.so")) > 0 &&
              asprintf(&scarce, "SCARCE=%s", place("scarce")) > 0,
          "%s", strerror(errno));
    start_redis();
    run_under("env", variable, scarce);
    start_server("--verbose");
    bool preloaded = strstr(read_process(server_pid, "maps"), "scarce_memory.so");
    if (!preloaded && !server_is_ours())
        cr_skip_test("nothing can be preloaded: it is linked statically");
    check(preloaded, "it is not preloaded");
}

/* Whatever a client can make a server allocate, there may be no memory for: that costs the request,
 * or the connection, and neither the server nor anybody else. */
EVERY_SERVER(when_one_allocation_in_thirteen_fails_the_server_lives)
{
    enum { TIMES = 150 };
    int posted = 0;
    start_with_scarce_memory();
    check(get("/guestbook")->status == 200, "not served");
    write_file("scarce", "", 0);
    for (int i = 0; i < TIMES; i++) {
        posted += ask_together();
        check(waitpid(server_pid, NULL, WNOHANG) == 0, "%d: the server has ended", i);
    }
    check(unlink(place("scarce")) == 0, "%s", strerror(errno));
    wait_until(get("/guestbook")->status == 200, SOON_MS, "it has not recovered");
    check_file(get("/tux.png"), "public/tux.png");
    long long there = redis_number("LLEN guestbook:entries");
    check(posted > 0 && there >= posted && there <= TIMES * AT_ONCE / KINDS,
          "%lld entries, and %d were confirmed", there, posted);
    check_it_sleeps(500, "when there is memory again");
}
