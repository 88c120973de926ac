/* Faults: what a system call may answer besides what was hoped for is weather. Each row of the
 * table is injected into a running server by strace(1), while a client needs that very call.
 *
 *  - The client concerned gets what the row says; every later one is served as if nothing had
 *    been; the server lives, ends with status 0, and holds no descriptor more than before.
 *  - A row whose fault never happened fails: its call is made no more, or another one instead.
 *  - strace is attached when the server stands ready and detached after each row, so that a count
 *    in `when` begins with the client, in each process and thread anew, and a sanitizer's check
 *    for leaks at the end is not disturbed.
 */
#include "tests/harness/harness.h"

/* ---- the table ----------------------------------------------------------------------------- */

enum { /* servers */
       ITERATIVE = 1,
       FORKING = 2,
       PREFORKING = 4,
       THREADING = 8,
       PRETHREADING = 16,
       POLL = 32,
       EPOLL = 64,
       LOOPS = POLL | EPOLL,
       BLOCKING = ITERATIVE | FORKING | PREFORKING | THREADING | PRETHREADING,
       ALL = BLOCKING | LOOPS,
};

enum visit {
    HOME,      /* asks for the home page, */
    KEPT,      /* the same, and would like the connection to be kept */
    SMALL,     /* for a file that is sent from memory, and was not asked for before, */
    PICTURE,   /* for one that is not, */
    PAGE,      /* for the guestbook, */
    NEW_PAGE,  /* the same, when Redis has just closed all connections; */
    POST,      /* leaves an entry, */
    EXPECT,    /* the same, with Expect: 100-continue; */
    LONG_PAGE, /* for a guestbook that takes megabytes; */
    NONSENSE,  /* speaks no HTTP; */
    LATER,     /* says nothing before the fault has happened; */
    CROWD,     /* comes when more are inside than ever before; */
    RESPAWN,   /* comes when chapter 3's worker has just been killed */
};

enum {                /* what the client may see */
       SERVED = 1,    /* what it would have got without the fault */
       BUSY = 2,      /* 503 */
       TOO_LATE = 4,  /* 504 */
       FORBIDDEN = 8, /* 403 */
       CUT = 16,      /* the connection's end, before or in the middle of the response */
};

struct injection {
    const char *calls; /* as strace names a set of them; ? before what not every machine has */
    const char *error; /* or a signal, "SIGTERM"; or what else strace knows, "delay_enter=1000" */
    const char *when;  /* which of them, counted in each process and thread; strace's notation */
};

static const struct fault {
    struct injection injected[2]; /* the second is rarely needed */
    unsigned servers;             /* whom it concerns */
    enum visit visit;
    unsigned may;
} table[] = {
    /* accepting: out of something it pauses for a tick, otherwise it tries again at once */
    {{{"accept4", "EMFILE", "1"}}, ALL, HOME, SERVED},
    {{{"accept4", "ENFILE", "1"}}, ALL, HOME, SERVED},
    {{{"accept4", "ENOMEM", "1"}}, ALL, HOME, SERVED},
    {{{"accept4", "ENOBUFS", "1"}}, ALL, HOME, SERVED},
    {{{"accept4", "EINTR", "1..3"}}, ALL, HOME, SERVED},
    {{{"accept4", "ECONNABORTED", "1..3"}}, ALL, HOME, SERVED},
    {{{"accept4", "EPROTO", "1..3"}}, ALL, HOME, SERVED},
    {{{"accept4", "EPERM", "1..3"}}, ALL, HOME, SERVED},
    {{{"accept4", "EAGAIN", "1..3"}}, ALL, HOME, SERVED},

    /* receiving */
    {{{"recvfrom", "EINTR", "1"}}, ALL, HOME, SERVED},
    {{{"recvfrom", "EAGAIN", "1"}}, ALL, HOME, SERVED},
    {{{"recvfrom", "ECONNRESET", "1"}}, ALL, HOME, CUT},
    {{{"recvfrom", "ETIMEDOUT", "1"}}, ALL, HOME, CUT},
    {{{"recvfrom", "ENOMEM", "1"}}, ALL, HOME, CUT},
    /* is anything left? is Redis there? */
    {{{"recvfrom", "ECONNRESET", "2"}}, ALL, PAGE, SERVED | CUT},

    /* sending */
    {{{"sendmsg", "EINTR", "1"}}, ALL, PAGE, SERVED},
    {{{"sendmsg", "EAGAIN", "1"}}, ALL, PAGE, SERVED},
    {{{"sendmsg", "EPIPE", "1"}}, ALL, PAGE, CUT},
    {{{"sendmsg", "ECONNRESET", "1"}}, ALL, HOME, CUT},
    {{{"sendmsg", "ENOMEM", "1"}}, ALL, PAGE, CUT},
    {{{"sendmsg", "ENOBUFS", "1"}}, ALL, HOME, CUT},
    {{{"sendto", "EINTR", "1"}}, ALL, EXPECT, SERVED},
    {{{"sendto", "EAGAIN", "1"}}, ALL, EXPECT, SERVED},
    {{{"sendto", "EPIPE", "1"}}, ALL, EXPECT, CUT},
    {{{"sendto", "ECONNRESET", "1"}}, ALL, EXPECT, CUT},
    {{{"sendfile", "EINTR", "1..2"}}, ALL, PICTURE, SERVED},
    {{{"sendfile", "EAGAIN", "1..2"}}, ALL, PICTURE, SERVED},
    {{{"sendfile", "EPIPE", "1"}}, ALL, PICTURE, CUT},
    {{{"sendfile", "EIO", "1"}}, ALL, PICTURE, CUT},
    {{{"sendfile", "ENOMEM", "1"}}, ALL, PICTURE, CUT},

    /* files: only what is not there is a 404 */
    {{{"openat2", "ENOSYS", "1"}}, ALL, PICTURE, SERVED},
    {{{"openat2", "EPERM", "1"}}, ALL, PICTURE, SERVED},
    {{{"openat2", "EACCES", "1"}}, ALL, PICTURE, FORBIDDEN},
    {{{"openat2", "EMFILE", "1"}}, ALL, PICTURE, BUSY},
    {{{"openat2", "EMFILE", "2"}}, ALL, PICTURE, BUSY},
    {{{"openat2", "ENFILE", "1"}}, ALL, PICTURE, BUSY},
    {{{"openat2", "ENOMEM", "1"}}, ALL, PICTURE, BUSY},
    {{{"openat2", "EIO", "1"}}, ALL, PICTURE, BUSY},
    {{{"openat2", "EINTR", "1"}}, ALL, PICTURE, BUSY},
    {{{"openat2", "EAGAIN", "1"}}, ALL, PICTURE, BUSY},
    {{{"dup", "EMFILE", "1"}, {"openat2", "ENOSYS", "1"}}, ALL, PICTURE, BUSY},
    {{{"openat", "ENFILE", "1"}, {"openat2", "ENOSYS", "1"}}, ALL, PICTURE, BUSY},
    {{{"?fstat,?newfstatat", "EIO", "1"}}, ALL, PICTURE, BUSY},
    {{{"?fstat,?newfstatat", "ENOMEM", "1"}}, ALL, PICTURE, BUSY},
    {{{"pread64", "EIO", "1"}}, ALL, SMALL, SERVED},
    {{{"pread64", "EINTR", "1"}}, ALL, SMALL, SERVED},

    /* waiting */
    {{{"getsockopt", "ENOBUFS", "1"}}, ITERATIVE | PREFORKING | PRETHREADING, KEPT, SERVED},
    {{{"getsockopt", "ENOTSOCK", "1"}}, ITERATIVE | PREFORKING | PRETHREADING, KEPT, SERVED},
    {{{"?poll,?ppoll", "EINTR", "1..3"}}, POLL, PAGE, SERVED},
    {{{"?poll,?ppoll", "ENOMEM", "1..3"}}, POLL, PAGE, SERVED},
    {{{"?epoll_wait,?epoll_pwait", "EINTR", "1..3"}}, EPOLL, PAGE, SERVED},
    {{{"epoll_ctl", "ENOMEM", "1"}}, EPOLL, LATER, CUT},
    {{{"epoll_ctl", "ENOSPC", "1"}}, EPOLL, LATER, CUT},
    {{{"epoll_ctl", "ENOSPC", "1..2"}}, EPOLL, NEW_PAGE, SERVED | BUSY | CUT},
    {{{"epoll_ctl", "ENOMEM", "2"}, {"accept4", "EMFILE", "1"}},
     EPOLL,
     HOME,
     SERVED}, /* the door */
    {{{"rt_sigtimedwait", "EINTR", "1"}}, PREFORKING, HOME, SERVED},
    {{{"rt_sigtimedwait", "EAGAIN", "1"}}, PREFORKING, HOME, SERVED},
    {{{"rt_sigsuspend", "EINTR", "1"}}, PRETHREADING, HOME, SERVED},

    /* processes, threads, memory */
    {{{"?clone,?clone3,?fork", "EAGAIN", "1"}}, FORKING | THREADING, HOME, BUSY},
    {{{"?clone,?clone3,?fork", "ENOMEM", "1"}}, FORKING | THREADING, HOME, BUSY},
    {{{"?clone,?clone3,?fork", "EAGAIN", "1..2"}}, PREFORKING, RESPAWN, SERVED},
    {{{"?clone,?clone3,?fork", "ENOMEM", "1..2"}}, PREFORKING, RESPAWN, SERVED},
    {{{"wait4", "EINTR", "1"}}, FORKING, HOME, SERVED},
    {{{"wait4", "ECHILD", "1"}}, FORKING, HOME, SERVED},
    {{{"wait4", "EINTR", "1"}}, PREFORKING, RESPAWN, SERVED},
    {{{"mmap", "ENOMEM", "1"}}, THREADING, CROWD, SERVED | BUSY | CUT},
    {{{"mprotect", "ENOMEM", "1"}}, THREADING, CROWD, SERVED | BUSY | CUT},
    {{{"mmap,mprotect", "ENOMEM", "1+"}, {"brk", "ENOMEM", "1+"}}, ALL, LONG_PAGE, CUT | BUSY},

    /* Redis: connecting */
    {{{"socket", "EMFILE", "1"}}, ALL, NEW_PAGE, BUSY},
    {{{"socket", "ENFILE", "1"}}, ALL, NEW_PAGE, BUSY},
    {{{"socket", "ENOBUFS", "1"}}, ALL, NEW_PAGE, BUSY},
    {{{"connect", "ECONNREFUSED", "1"}}, ALL, NEW_PAGE, BUSY},
    {{{"connect", "ENOENT", "1"}}, ALL, NEW_PAGE, BUSY},
    {{{"connect", "ETIMEDOUT", "1"}}, ALL, NEW_PAGE, BUSY},
    {{{"connect", "EAGAIN", "1..2"}}, BLOCKING, NEW_PAGE, SERVED},
    {{{"connect", "EAGAIN", "1..2"}}, LOOPS, NEW_PAGE, SERVED | BUSY},
    {{{"connect", "EINTR", "1..2"}}, BLOCKING, NEW_PAGE, SERVED},
    {{{"setsockopt", "ENOBUFS", "1"}}, BLOCKING, NEW_PAGE, BUSY},

    /* Redis: asking, and being answered */
    {{{"write", "EINTR", "1"}}, ALL, PAGE, SERVED},
    {{{"write", "EAGAIN", "1"}}, LOOPS, PAGE, SERVED},
    {{{"write", "EAGAIN", "1"}}, BLOCKING, PAGE, TOO_LATE},
    {{{"write", "EPIPE", "1"}}, ALL, PAGE, BUSY},
    {{{"write", "ECONNRESET", "1"}}, ALL, POST, BUSY},
    {{{"write", "ENOMEM", "2"}}, ALL, PAGE, BUSY},
    {{{"read", "EINTR", "1"}}, ALL, PAGE, SERVED},
    {{{"read", "EAGAIN", "1"}}, LOOPS, PAGE, SERVED},
    {{{"read", "EAGAIN", "1"}}, BLOCKING, PAGE, TOO_LATE},
    {{{"read", "ECONNRESET", "1"}}, ALL, POST, BUSY},
    {{{"read", "ETIMEDOUT", "1"}}, ALL, PAGE, BUSY},
    {{{"read", "ENOMEM", "2"}}, ALL, PAGE, BUSY},

    /* the end of a connection, and the log */
    {{{"shutdown", "ENOTCONN", "1"}}, ALL, NONSENSE, SERVED},
    {{{"close", "EINTR", "1"}}, ALL & ~FORKING, PICTURE, SERVED}, /* 02's first is the client's */
    {{{"close", "EIO", "1"}}, ALL & ~FORKING, PICTURE, SERVED},
    {{{"getpeername", "ENOTCONN", "1"}}, ALL, HOME, SERVED},
    {{{"write", "EINTR", "1"}}, ALL, HOME, SERVED},
    {{{"write", "EPIPE", "1"}}, ALL, HOME, SERVED},
    {{{"write", "ENOSPC", "1"}}, ALL, HOME, SERVED},
};

/* ---- the server, and strace at its side ---------------------------------------------------- */

static unsigned server_bit(void)
{
    static const char *const names[] = {"iterative",    "forking", "preforking", "threading",
                                        "prethreading", "poll",    "epoll"};
    unsigned i = 0;
    while (!server_is(names[i]))
        i++;
    return 1U << i;
}

/* Of several, the same one has to recover. */
static void start_with_one_worker(void)
{
    start_server("-v", "--timeout", "5", POOL_OF("1"));
}

enum { ROOM = 64 };

static pid_t strace_pid;

static const char *strace_log(void)
{
    const char *log = read_whole(place("strace"), NULL);
    return log ? log : "";
}

static int count_injected(void)
{
    return count_parts(strace_log(), "(INJECTED)");
}

/* A brk(2) that fails says so by what it returns, and not with an error (its NOTES). */
static const char *expression(const struct injection *i)
{
    char *text = NULL;
    bool is_brk = strcmp(i->calls, "brk") == 0;
    const char *how = is_brk                             ? "retval="
                      : strncmp(i->error, "SIG", 3) == 0 ? "signal="
                      : strchr(i->error, '=')            ? ""
                                                         : "error=";
    return asprintf(&text, "inject=%s:%s%s:when=%s", i->calls, how, is_brk ? "0" : i->error,
                    i->when) < 0
               ? ""
               : text;
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

static void attach(const struct fault *fault)
{
    char parent[16], worker[16], traced[128];
    bool also = fault->injected[1].calls, two = server_is("preforking");
    snprintf(parent, sizeof(parent), "%d", (int)server_pid);
    snprintf(worker, sizeof(worker), "%d", (int)serving_process());
    snprintf(traced, sizeof(traced), "trace=%s%s%s", fault->injected[0].calls, also ? "," : "",
             also ? fault->injected[1].calls : "");
    const char *words[20] = {"strace", "-f",   "-o", place("strace"),
                             "-e",     traced, "-e", expression(&fault->injected[0]),
                             "-p",     parent};
    int count = 10;
    if (also) {
        words[count++] = "-e";
        words[count++] = expression(&fault->injected[1]);
    }
    if (two) {
        words[count++] = "-p";
        words[count++] = worker;
    }
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
#define ENTRY       "guest-name=a&guest-remarks=b"
#define POST_HEAD                                                                                  \
    "POST /guestbook HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: 28\r\n"        \
    "Content-Type: application/x-www-form-urlencoded\r\n"

static const struct {
    const char *request;
    int status;       /* of the response, if nothing goes wrong */
    const char *file; /* and what it brings, if that is a file */
} visits[] = {
    [HOME] = {GET("/"), 200, "public/index.html"},
    [KEPT] = {"GET / HTTP/1.1\r\nHost: test\r\n\r\n", 200, "public/index.html"},
    [SMALL] = {GET("/style.css"), 200, "public/style.css"},
    [PICTURE] = {GET("/tux.png"), 200, "public/tux.png"},
    [PAGE] = {GET("/guestbook"), 200, NULL},
    [NEW_PAGE] = {GET("/guestbook"), 200, NULL},
    [LONG_PAGE] = {GET("/guestbook"), 200, NULL},
    [POST] = {POST_HEAD "\r\n" ENTRY, 303, NULL},
    [EXPECT] = {POST_HEAD "Expect: 100-continue\r\n\r\n", 303, NULL},
    [NONSENSE] = {"nonsense\r\n\r\n", 400, NULL},
    [LATER] = {GET("/"), 200, "public/index.html"},
    [CROWD] = {GET("/"), 200, "public/index.html"},
    [RESPAWN] = {GET("/"), 200, "public/index.html"},
};

/* Receives until the connection ends, however that is, unlike hear(). */
static void receive_all(struct client *c)
{
    enum { PIECE = 64 * 1024 };
    int64_t limit = now_ms() + patience(SOON_MS);
    for (ssize_t n = 1; n > 0; c->len += n > 0 ? (size_t)n : 0) {
        struct pollfd fd = {.fd = c->fd, .events = POLLIN};
        int64_t left = limit - now_ms();
        check(left > 0 && poll(&fd, 1, (int)left) > 0, "the server neither answers nor closes");
        c->in = realloc(c->in, c->len + PIECE);
        n = recv(c->fd, c->in + c->len, PIECE - 1, 0);
    }
    c->in = realloc(c->in, c->len + 1);
    c->in[c->len] = '\0';
}

/* What the client has seen, as one of the bits above; 0 for what must not be. A response that is
 * whole is held to hear()'s rules. */
static unsigned seen_by(struct client *c, enum visit visit)
{
    static const char go_ahead[] = "HTTP/1.1 100 Continue\r\n\r\n";
    receive_all(c);
    if (strncmp(c->in, go_ahead, strlen(go_ahead)) == 0)
        c->used = strlen(go_ahead);
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
    if (answer->status == 503)
        check(says_when_to_come_again(answer), "503 without Retry-After");
    return answer->status == 503   ? BUSY
           : answer->status == 504 ? TOO_LATE
           : answer->status == 403 ? FORBIDDEN
                                   : 0;
}

static void say_all(struct client *c, enum visit visit)
{
    if (visit == LATER)
        wait_until(count_injected() > 0, SOON_MS, "it never happened");
    const char *request = visits[visit].request;
    try_to_say(c, request, strlen(request));
    if (visit == KEPT)
        say_no_more(c);
    if (visit == EXPECT)
        try_to_say(c, ENTRY, strlen(ENTRY));
}

/* ---- one row ------------------------------------------------------------------------------- */

/* For messages. */
static const char *row_name(const struct fault *fault)
{
    char *text = NULL;
    const char *request = visits[fault->visit].request;
    return asprintf(&text, "%s %s, while a client says %.*s", fault->injected[0].calls,
                    fault->injected[0].error, (int)strcspn(request, "\r"), request) < 0
               ? ""
               : text;
}

/* Redis closes all connections but the test's own, and the server has noticed. */
static void lose_redis(void)
{
    pid_t pid = serving_process();
    int before = count_descriptors(pid);
    redis("CLIENT KILL TYPE normal");
    if (server_bit() & LOOPS)
        wait_until(count_descriptors(pid) < before, SOON_MS, "the connection stays open");
}

static void kill_worker(void)
{
    pid_t children[ROOM], worker = serving_process();
    char states[ROOM];
    kill(worker, SIGKILL);
    wait_until(list_children(server_pid, children, ROOM, states) == 0 || children[0] != worker ||
                   states[0] == 'Z',
               SOON_MS, "it lives");
}

static void write_long_entries(void)
{
    static char entry[16000];
    memset(entry, '<', sizeof(entry));
    for (int i = 0; i < 20; i++)
        redis("RPUSH guestbook:entries %b", entry, sizeof(entry));
}

/* Goes there while the fault is being injected, and says what came of it. */
static unsigned visit_under(const struct fault *fault)
{
    enum { PROMPT_MS = 2000 }; /* less than any deadline that would end it too */
    static int crowds; /* each is larger than the last, whose threads have left their stacks */
    struct client *crowd[32];
    int inside = fault->visit == CROWD ? 8 * ++crowds : 0;
    if (fault->visit == NEW_PAGE)
        lose_redis();
    if (fault->visit == LONG_PAGE)
        write_long_entries();
    attach(fault);
    if (fault->visit == RESPAWN)
        kill_worker();
    for (int i = 0; i < inside; i++)
        crowd[i] = dial();
    int64_t start = now_ms();
    struct client *c = dial();
    say_all(c, fault->visit);
    unsigned seen = seen_by(c, fault->visit);
    hang_up(c);
    check(now_ms() - start < patience(PROMPT_MS), "%s: the client is told after %lld ms",
          row_name(fault), (long long)(now_ms() - start));
    for (int i = 0; i < inside; i++)
        hang_up(crowd[i]);
    wait_until(count_injected() >= (fault->injected[1].calls ? 2 : 1), 3000,
               "%s never happened: %s", row_name(fault), strace_log());
    detach();
    if (fault->visit == LONG_PAGE)
        redis("DEL guestbook:entries");
    return seen;
}

/* Nothing has been, as far as the next client can tell. */
static void check_well(const struct fault *fault, int descriptors)
{
    check(waitpid(server_pid, NULL, WNOHANG) == 0, "%s: the server has ended", row_name(fault));
    check_file(get("/"), "public/index.html");
    int status = get("/guestbook")->status;
    check(status == 200, "%s: the next page: %d", row_name(fault), status);
    wait_until(count_descriptors(serving_process()) <= descriptors, 2000,
               "%s: %d descriptors before, %d after", row_name(fault), descriptors,
               count_descriptors(serving_process()));
    if (server_is("forking")) /* for whose end a fork that fails would wait */
        wait_until(count_children() == 0, 2000, "a child stays");
}

/* A child of 02 whose client has not spoken yet writes its oom_score_adj first, and then that is
 * the write that failed. */
static bool hit_the_score(void)
{
    const char *at = strstr(strace_log(), "\"1000\", 4)"),
               *injected = at ? strstr(at, "(INJ") : NULL;
    return injected && !memchr(at, '\n', (size_t)(injected - at));
}

/* The bits above, as a reader knows them. Two results may be used at a time. */
static const char *in_words(unsigned seen)
{
    static const char *const words[] = {"what it asked for", "503", "504", "403", "an end"};
    static char texts[2][64];
    static int turn;
    char *text = texts[turn++ % 2];
    strcpy(text, seen ? "" : "something else");
    for (int bit = 0; bit < 5; bit++)
        if (seen & 1u << bit)
            sprintf(text + strlen(text), "%s%s", *text ? " or " : "", words[bit]);
    return text;
}

static void check_row(const struct fault *fault)
{
    enum { TRIES = 5 };
    int descriptors = count_descriptors(serving_process());
    unsigned seen = visit_under(fault);
    for (int i = 1; i < TRIES && hit_the_score(); i++)
        seen = visit_under(fault);
    check(seen & fault->may, "%s: the client saw %s; it may see %s\n%s", row_name(fault),
          in_words(seen), in_words(fault->may), strace_log());
    /* the one that was not closed, because the fault took the call's place */
    bool kept_open = strcmp(fault->injected[0].calls, "close") == 0;
    check_well(fault, descriptors + kept_open);
}

EVERY_SERVER(whatever_a_system_call_answers_the_next_client_is_served)
{
    int rows = (int)(sizeof(table) / sizeof(table[0]));
    bool sanitizer = server_has_sanitizer(); /* its own allocations are not to fail */
    start_redis();
    start_with_one_worker();
    get("/guestbook");
    get("/");
    for (int i = 0; i < rows; i++) {
        bool memory = strncmp(table[i].injected[0].calls, "mmap", 4) == 0 ||
                      strcmp(table[i].injected[0].calls, "mprotect") == 0;
        if (table[i].servers & server_bit() && !(memory && sanitizer))
            check_row(&table[i]);
    }
}

/* ---- when the server ends ------------------------------------------------------------------ */

/* The signal comes in the middle of making a process. The parent is quick to pass it on, and its
 * youngest child slow to prepare for that (set_robust_list(2) is glibc's first call in it); but who
 * has been accepted gets a response. */
ONLY_SERVER(forking, a_client_whose_process_is_made_as_the_signal_comes_is_served)
{
    static const struct fault fault = {
        {{"clone,?clone3", "SIGTERM", "1"}, {"set_robust_list", "delay_enter=300000", "1"}},
        FORKING,
        HOME,
        SERVED};
    start_redis();
    run_under("env", "LSAN_OPTIONS=detect_leaks=0"); /* it cannot, in who is traced to its end */
    start_with_one_worker();
    attach(&fault);
    struct client *c = dial();
    say_all(c, fault.visit);
    check(seen_by(c, fault.visit) == SERVED, "it was not: %s", strace_log());
    hang_up(c);
    await_server(); /* nobody else has sent it a signal */
    detach();
}

/* ---- when the server starts ---------------------------------------------------------------- */

/* By then it has promised nothing to anybody. */
ONLY_SERVER(prethreading, without_the_threads_it_was_to_have_it_does_not_start)
{
    run_under("strace", "-DD", "-f", "-qq", "-o", place("strace"), "-e", "trace=clone,clone3", "-e",
              "inject=clone,clone3:error=EAGAIN:when=3+");
    int status = run_server("-r", "unix:/nowhere");
    if (status == 127)
        cr_skip_test("strace is not installed");
    if (strstr(server_errors(), "not permitted"))
        cr_skip_test("strace may not trace here");
    check(status == 1 && strstr(server_errors(), "thread"), "status %d", status);
    check(!server_is_ours() || (strstr(server_errors(), "threads: ") &&
                                strstr(server_errors(), "try --workers with fewer")),
          "it does not say what to do");
}

/* ---- short reads and writes ---------------------------------------------------------------- */

/* The next server is started with this library, and with one more setting in its environment. */
static void preload(const char *source, const char *setting)
{
    int log = open(place("cc"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), status;
    const char *const words[] = {
        "sh",    "-c", "exec ${CC:-cc} \"$@\"", "sh",   "-std=gnu11", "-D_GNU_SOURCE", "-shared",
        "-fPIC", "-o", place("library"),        source, NULL};
    char *variable = NULL, *scarce = NULL;
    if (server_has_sanitizer())
        cr_skip_test("a sanitizer has taken these calls' names");
    pid_t pid = spawn(words, log, log);
    close(log);
    wait_until(waitpid(pid, &status, WNOHANG) == pid, SOON_MS, "the compiler hangs");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        cr_skip_test("there is no compiler cc");
    check(status == 0, "%s", read_whole(place("cc"), NULL));
    check(asprintf(&variable, "LD_PRELOAD=%s", place("library")) > 0 &&
              asprintf(&scarce, "SCARCE=%s", place("scarce")) > 0,
          "no memory");
    run_under("env", variable, scarce, setting);
}

static void check_preloaded(void)
{
    char maps[64];
    snprintf(maps, sizeof(maps), "/proc/%d/maps", (int)server_pid);
    bool preloaded = strstr(read_whole(maps, NULL), place("library"));
    if (!preloaded && !server_is_ours())
        cr_skip_test("nothing can be preloaded: it is linked statically");
    check(preloaded, "it is not preloaded");
}

/* What is said in each entry: 950 bytes in which nothing can go missing unseen. */
static const char *remarks(void)
{
    static char text[951];
    for (size_t i = 0; i + 1 < sizeof(text); i++)
        text[i] = (char)('a' + i * i % 25);
    return text;
}

static void leave_entries(int count)
{
    char form[1024];
    snprintf(form, sizeof(form), "guest-name=Ada&guest-remarks=%s", remarks());
    for (int i = 0; i < count; i++)
        check(post(form)->status == 303, "entry %d", i);
}

static void check_page(const struct answer *page, int entries)
{
    int count = count_parts(page->body, remarks());
    check(page->status == 200 && count == entries, "%d: %d entries arrive intact", page->status,
          count);
}

/* Every read and write of the server does 1 to 7 bytes. */
EVERY_SERVER(what_is_done_a_few_bytes_at_a_time_is_done_whole)
{
    start_redis();
    preload("common/tests/short_calls.c", "SHORT=yes");
    start_server("--verbose");
    check_preloaded();

    leave_entries(3);
    struct client *c = dial();
    say(c, "GET / HTTP/1.1\r\nHost: test\r\n\r\nGET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n"
           "GET /not-there HTTP/1.1\r\nHost: test\r\n\r\n" GET("/tux.png"));
    check_file(hear(c), "public/index.html");
    check_page(hear(c), 3);
    check(hear(c)->status == 404, "status %d", c->answer.status);
    check_file(hear(c), "public/tux.png");
}

/* What does not fit into the kernel's buffers is taken from the server piece by piece. */
EVERY_SERVER(a_client_with_little_room_gets_everything_it_asked_for)
{
    enum { LARGE = 6 * 1024 * 1024 };
    char *large = malloc(LARGE);
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (char)(i * i % 251);
    start_redis();
    const char *root = make_root();
    write_file("root/public/large", large, LARGE);
    start_server("--root", root);
    leave_entries(20);
    struct client *c = dial_with_room(4096);
    say(c,
        "GET /large HTTP/1.1\r\nHost: test\r\n\r\nGET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n"
        "GET /large HTTP/1.1\r\nHost: test\r\n\r\nGET /guestbook HTTP/1.1\r\nHost: test\r\n\r\n");
    for (int i = 0; i < 2; i++) {
        check_file(hear(c), place("root/public/large"));
        check_page(hear(c), 20);
    }
}

/* ---- memory that is scarce ----------------------------------------------------------------- */

enum { AT_ONCE = 6 };

#define POST                                                                                       \
    "POST /guestbook HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: 34\r\n"        \
    "Content-Type: application/x-www-form-urlencoded\r\n\r\nguest-name=Ada&guest-remarks=hello"

/* The status of the response; 0 if the connection ends without one. */
static int status_or_end(struct client *c)
{
    char start[] = "HTTP/1.1 000", rest[4096];
    bool whole = recv(c->fd, start, strlen(start), MSG_WAITALL) == (ssize_t)strlen(start);
    while (recv(c->fd, rest, sizeof(rest), 0) > 0)
        ;
    return whole ? atoi(start + strlen("HTTP/1.1 ")) : 0;
}

/* Some ask at once, some leave an entry. Each is answered with what they asked for, or with 503.
 * Returns how many entries are said to be there. */
static int ask_together(void)
{
    struct client *clients[AT_ONCE];
    int posted = 0;
    for (int i = 0; i < AT_ONCE; i++) {
        clients[i] = dial();
        say(clients[i], i % 2 ? POST : GET("/guestbook"));
    }
    for (int i = 0; i < AT_ONCE; i++) {
        int status = status_or_end(clients[i]), expected = i % 2 ? 303 : 200;
        check(status == expected || status == 503 || status == 0, "status %d", status);
        posted += status == 303;
        hang_up(clients[i]);
    }
    return posted;
}

/* A question for which there is no memory is lost to the client that asked it, and to nobody else.
 */
EVERY_SERVER(without_memory_for_a_question_nobody_gets_the_reply_to_anothers)
{
    enum { TIMES = 200, MOST_MS = 3000, WATCHED_MS = 500 };
    int posted = 0, times = 0;
    start_redis();
    preload("common/tests/scarce_memory.c", "SCARCE_EVERY=23");
    start_server();
    check_preloaded();
    check(get("/guestbook")->status == 200, "not served");
    write_file("scarce", "", 0);
    for (int64_t start = now_ms(); times < TIMES && now_ms() - start < MOST_MS; times++)
        posted += ask_together();
    check(unlink(place("scarce")) == 0, "%s", strerror(errno));
    wait_until(get("/guestbook")->status == 200, 2000, "it has not recovered");
    long long there = redis_number("LLEN guestbook:entries");
    check(posted > 0 && there >= posted && there <= times * AT_ONCE / 2,
          "%lld entries, and %d were confirmed", there, posted);
    int64_t before = server_cpu_ms();
    poll(NULL, 0, WATCHED_MS); /* not for something to happen, but for nothing to */
    check(server_cpu_ms() - before < WATCHED_MS / 5, "it is busy with nothing");
}

/* Whatever a client can make a server allocate, there may be no memory for: that costs the request,
 * or the connection, and not the server. */
EVERY_SERVER(when_each_seventh_allocation_fails_the_server_lives)
{
    enum { TIMES = 100 };
    start_redis();
    preload("common/tests/scarce_memory.c", "SCARCE_EVERY=7");
    start_server();
    check_preloaded();
    check(get("/guestbook")->status == 200, "not served");
    write_file("scarce", "", 0);
    for (int i = 0; i < TIMES * AT_ONCE; i++) {
        struct client *c = dial();
        const char *request = i % 3 == 0 ? POST : i % 3 == 1 ? GET("/guestbook") : GET("/tux.png");
        try_to_say(c, request, strlen(request));
        status_or_end(c);
        hang_up(c);
        check(waitpid(server_pid, NULL, WNOHANG) == 0, "%d: the server has ended", i);
    }
    check(unlink(place("scarce")) == 0, "%s", strerror(errno));
    wait_until(get("/guestbook")->status == 200, 2000, "it has not recovered");
    check_file(get("/tux.png"), "public/tux.png");
}
