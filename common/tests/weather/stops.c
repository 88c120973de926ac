/* Ends under load: of the server, of a worker, of a parent, and what clients see of it.
 *
 * wrk and ab cannot tell a response that was cut from a connection that nobody had accepted yet. So
 * the load whose losses are counted is our own: a loop of clients that ask, hear, and ask again. */
#include "tests/harness/harness.h"

#include <sys/prctl.h>
#include <sys/resource.h>

/* ---- the load ------------------------------------------------------------------------------ */

enum { KEPT = 20, FRESH = 20, CLIENTS = KEPT + FRESH, HEAD_ROOM = 2048, ABSENT_MS = 150 };

/* One client. It has always asked for something: only while there is no connection does it rest. */
static struct caller {
    int fd;      /* -1: it rests */
    bool stays;  /* asks again on the same connection, if it may */
    int answers; /* on this connection */
    size_t got;  /* bytes of the response */
    size_t size; /* how many there will be; 0: the head is not complete */
    bool kept;   /* the response says so */
    bool prompt; /* it asked before it could be taken for idle */
    char head[HEAD_ROOM];
} callers[CLIENTS];

static struct {
    unsigned long long answers;     /* whole responses */
    unsigned long long connections; /* with at least one */
    unsigned truncated;             /* responses that ended before their end */
    unsigned cut;                   /* prompt requests on a kept connection: not a byte */
    unsigned turned_away;           /* new connections that ended without a byte */
    unsigned wrong;                 /* responses that were not 200, or too long */
    bool nobody_listens;
    int64_t looked;        /* now_ms() before the callers were looked at, last time: */
    int64_t looked_before; /* and the time before that: what is heard now came later */
} load;

static void begin_load(void)
{
    memset(&load, 0, sizeof(load));
    for (int i = 0; i < CLIENTS; i++)
        callers[i] = (struct caller){.fd = -1, .stays = i < KEPT};
}

static void rest(struct caller *c)
{
    close(c->fd);
    c->fd = -1;
}

/* What cannot be sent is noticed when the response does not come. */
static void call(struct caller *c)
{
    static const char *const targets[] = {"/", "/guestbook", "/tux.png"};
    static unsigned turn;
    char request[128];
    int len = snprintf(request, sizeof(request),
                       "GET %s HTTP/1.1\r\nHost: test\r\nConnection: %s\r\n\r\n",
                       targets[turn++ % 3], c->stays ? "keep-alive" : "close");
    c->got = c->size = 0;
    send(c->fd, request, (size_t)len, MSG_NOSIGNAL);
    c->prompt = now_ms() - load.looked_before <= ABSENT_MS;
}

/* Where nobody listens any more, wrk and ab knock so often that the kernel loses SYNs, and repeats
 * ours after 1, 3 and 6 s: a new one is quicker. False if ours was lost. */
static bool connect_and_call(struct caller *c)
{
    const struct timeval unheard = {.tv_usec = 300000};
    struct sockaddr_in server = {.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)server_port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int64_t start = now_ms();
    c->answers = 0;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &unheard, sizeof(unheard));
    if (connect(c->fd, (struct sockaddr *)&server, sizeof(server)) == 0) {
        call(c);
        c->prompt = now_ms() - start <= ABSENT_MS;
        return true;
    }
    bool lost = errno == EINPROGRESS;
    load.nobody_listens = errno == ECONNREFUSED;
    load.turned_away += !load.nobody_listens && !lost;
    rest(c);
    return !lost;
}

/* The connection has ended, and a response was owed. */
static void lose(struct caller *c)
{
    if (c->got > 0)
        load.truncated++;
    else if (c->answers > 0)
        load.cut += c->prompt;
    else
        load.turned_away += c->prompt;
    rest(c);
}

static void look_at_head(struct caller *c, const char *bytes, size_t len)
{
    size_t room = HEAD_ROOM - 1 - c->got, some = len < room ? len : room;
    memcpy(c->head + c->got, bytes, some);
    c->head[c->got + some] = '\0';
    const char *end = strstr(c->head, "\r\n\r\n"),
               *length = strstr(c->head, "\r\nContent-Length: ");
    if (!end || !length)
        return;
    c->size =
        (size_t)(end + 4 - c->head) + strtoul(length + strlen("\r\nContent-Length: "), NULL, 10);
    c->kept = strstr(c->head, "\r\nConnection: keep-alive\r\n") != NULL;
    load.wrong += strncmp(c->head, "HTTP/1.1 200 ", 13) != 0;
}

static void listen_to_server(struct caller *c)
{
    static char bytes[256 * 1024];
    ssize_t n = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        lose(c);
        return;
    }
    if (c->size == 0)
        look_at_head(c, bytes, (size_t)n);
    c->got += (size_t)n;
    if (c->size == 0 || c->got < c->size)
        return;
    load.wrong += c->got > c->size;
    load.answers++;
    load.connections += c->answers++ == 0;
    if (c->kept && c->stays)
        call(c);
    else
        rest(c);
}

/* Everybody who rests connects, unless nobody listens any more, or seems to; everybody who is
 * answered goes on. A machine with other things to do may keep us from that for a tick. */
static void go_round(void)
{
    enum { LONG_MS = 100 }; /* for a round: connecting may be slow, and others have been answered */
    struct pollfd fds[CLIENTS];
    int64_t start = now_ms();
    bool heard = true;
    for (int i = 0; i < CLIENTS; i++) {
        if (callers[i].fd < 0 && !load.nobody_listens && heard && now_ms() - start < LONG_MS)
            heard = connect_and_call(&callers[i]);
        fds[i] = (struct pollfd){.fd = callers[i].fd, .events = POLLIN};
    }
    load.looked_before = load.looked;
    load.looked = now_ms();
    poll(fds, CLIENTS, 100);
    for (int i = 0; i < CLIENTS; i++)
        if (fds[i].fd >= 0 && fds[i].revents)
            listen_to_server(&callers[i]);
}

static int count_awake(void)
{
    int count = 0;
    for (int i = 0; i < CLIENTS; i++)
        count += callers[i].fd >= 0;
    return count;
}

static void load_until_answers(unsigned long long more)
{
    int64_t limit = now_ms() + patience(6 * SOON_MS);
    for (unsigned long long goal = load.answers + more; load.answers < goal; go_round())
        check(now_ms() < limit && !load.nobody_listens, "%llu answers of %llu", load.answers, goal);
}

static bool server_has_ended(void)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)server_pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == server_pid;
}

/* Who was never accepted is told so by a reset, and the kernel does not send that again if it gets
 * lost in the crowd. But it answers whatever is said to nobody with another. */
static void say_more(void)
{
    for (int i = 0; i < CLIENTS; i++)
        if (callers[i].fd >= 0)
            send(callers[i].fd, "\r\n", 2, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Does the server, or a child of its, wait for what nobody can hurry (state D, proc(5))? fork(2)
 * and exit lock every file that is mapped, libraries too, against all other processes that map it;
 * on a full machine it may take seconds until whoever holds such a lock has its turn. */
static bool kernel_holds_it(void)
{
    enum { MANY = 256 };
    pid_t pids[MANY];
    char states[MANY];
    for (int i = list_children(getpid(), pids, MANY, states) - 1; i >= 0; i--)
        if (pids[i] == server_pid && states[i] == 'D')
            return true;
    return memchr(states, 'D', (size_t)list_children(server_pid, pids, MANY, states)) != NULL;
}

/* To the last client, whatever it gets. Returns how long the server has lived, in ms, not counting
 * what the kernel held it for. */
static long long load_until_nobody_listens(void)
{
    enum { PROMPT_MS = 1000, ROUNDS = 50 }; /* so many at least: the machine may have stood still */
    int64_t start = now_ms(), held = 0, lived = -1;
    int rounds = 0;
    while (!load.nobody_listens || count_awake() > 0 || lived < 0) {
        int64_t round = now_ms();
        check(round - start - held < patience(SOON_MS) || rounds++ < ROUNDS, "%d callers wait%s%s",
              count_awake(), load.nobody_listens ? "" : ", somebody listens",
              lived < 0 ? ", the server lives" : "");
        go_round();
        if (lived < 0 && server_has_ended())
            lived = now_ms() - start - held;
        else if (lived >= 0 && load.nobody_listens)
            say_more();
        if (now_ms() - start > PROMPT_MS && kernel_holds_it())
            held += now_ms() - round;
    }
    return lived;
}

static unsigned losses(void)
{
    return load.truncated + load.cut + load.turned_away + load.wrong;
}

static void check_no_loss(void)
{
    check(losses() == 0, "%u truncated, %u cut, %u turned away, %u wrong of %llu", load.truncated,
          load.cut, load.turned_away, load.wrong, load.answers);
}

/* ---- the end of the server ----------------------------------------------------------------- */

/* A run whose signal comes after so many answers, and what is lost by it. Who had been accepted
 * cannot be seen from outside: connections that nobody had are not counted as lost. */
static struct statistics stop_after(unsigned answers, int signal_number)
{
    load_until_answers(answers);
    check_no_loss();
    check(kill(server_pid, signal_number) == 0, "%s", strerror(errno));
    long long took = load_until_nobody_listens();
    struct statistics s = await_server();
    check(took < patience(5000), "after %lld ms", took);
    load.turned_away = 0;
    check_no_loss();
    return s;
}

enum { NOISY = 20 };

/* wrk or ab, in the background of our own load. */
static pid_t start_noise(bool wrk)
{
    static const char *const wrk_words[] = {"wrk", "-t1", "-c20", "-d60", NULL};
    static const char *const ab_words[] = {"ab", "-q", "-k", "-r", "-c20", "-n10000000", NULL};
    const char *words[8];
    char url[64];
    int count = 0, nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (const char *const *from = wrk ? wrk_words : ab_words; from[count]; count++)
        words[count] = from[count];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", server_port);
    words[count] = url;
    words[count + 1] = NULL;
    pid_t noise = spawn(words, nowhere, nowhere);
    close(nowhere);
    while (count_descriptors(noise) < NOISY) /* it has connected */
        go_round();
    return noise;
}

/* With sanitizers, everything takes longer, and there are fewer of them. */
static int stops(int count)
{
    return count / (int)patience(1);
}

EVERY_SERVER(twenty_stops_under_wrk_and_ab_truncate_no_response)
{
    int noisy[] = {0, 0};
    if (access("/usr/bin/wrk", X_OK) < 0 || access("/usr/bin/ab", X_OK) < 0)
        cr_skip_test("wrk and ab are not both installed");
    start_redis();
    for (int i = 0; i < stops(20); i++) {
        start_server();
        begin_load();
        pid_t noise = start_noise(i % 2);
        struct statistics s = stop_after(1000 + 70 * (unsigned)i, i % 4 < 2 ? SIGTERM : SIGINT);
        noisy[i % 2] += s.requests > load.answers;
        kill_group(&noise);
    }
    bool both = noisy[0] > 0 && noisy[1] > 0;
    check(2 * (noisy[0] + noisy[1]) >= stops(20) && (both || stops(20) < 20),
          "of %d stops ab was served in %d, wrk in %d", stops(20), noisy[0], noisy[1]);
}

/* In flight means accepted. A connection the server has counted was answered, and an answer it has
 * counted arrived: nobody else but our own load is there, and each of its clients asks at once. */
EVERY_SERVER(a_stop_answers_every_client_that_was_accepted)
{
    start_redis();
    for (int i = 0; i < stops(10); i++) {
        start_server();
        begin_load();
        struct statistics s = stop_after(200 + 17 * (unsigned)i, i % 2 ? SIGTERM : SIGINT);
        check(has_counted(s, load.answers, load.connections),
              "stop %d: %llu sent on %llu, %llu arrived on %llu", i, s.requests, s.connections,
              load.answers, load.connections);
    }
}

static double own_childrens_cpu(void)
{
    struct rusage r;
    getrusage(RUSAGE_CHILDREN, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

/* Ours are the server and whoever it has waited for: no other child of ours ends meanwhile. */
static void check_cpu_time(unsigned answers)
{
    double before = own_childrens_cpu();
    start_redis();
    start_server();
    begin_load();
    double told = stop_after(answers, SIGTERM).cpu_s;
    double used = own_childrens_cpu() - before;
    check(told > 0.6 * used && told < used + 0.02, "%.2f s of %.2f s", told, used);
}

ONLY_SERVER(forking, the_statistics_count_what_the_children_used)
{
    check_cpu_time(2000 / (unsigned)patience(1));
}

ONLY_SERVER(preforking, the_statistics_count_what_the_workers_used)
{
    check_cpu_time(10000 / (unsigned)patience(1));
}

/* ---- the next beginning -------------------------------------------------------------------- */

/* Clients that never stop, in a process of their own, whoever listens. */
static pid_t start_hammering(void)
{
    pid_t parent = getpid(), pid = fork();
    check(pid >= 0, "%s", strerror(errno));
    if (pid > 0) {
        setpgid(pid, pid);
        return pid;
    }
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    closefrom(STDERR_FILENO + 1); /* the test's folder stays as long as anybody holds it open */
    begin_load();
    while (getppid() == parent) {
        load.nobody_listens = false;
        go_round();
    }
    _exit(0);
}

EVERY_SERVER(twenty_restarts_under_load_never_find_the_port_taken)
{
    start_redis();
    start_server();
    pid_t hammer = start_hammering();
    for (int i = 0; i < stops(20); i++) {
        wait_until(count_descriptors(hammer) >= KEPT, SOON_MS, "its clients do not come back");
        check_file(get("/"), "public/index.html");
        stop_server();
        start_server_again();
    }
    kill_group(&hammer);
}

/* ---- the end of a worker, and of a parent -------------------------------------------------- */

enum { WORKERS = 8, ROOM = 256 };

static void start_under_load(pid_t *workers)
{
    start_redis();
    start_server();
    begin_load();
    load_until_answers(200);
    check_no_loss();
    wait_until(list_children(server_pid, workers, ROOM, NULL) == WORKERS, SOON_MS, "not 8 workers");
}

ONLY_SERVER(preforking, a_worker_killed_under_load_costs_one_client_and_is_replaced_in_a_second)
{
    enum { KILLED = 5, YOUNG_MS = 1100 };
    pid_t workers[ROOM];
    start_under_load(workers);
    for (int64_t old = now_ms() + YOUNG_MS; now_ms() < old;)
        go_round(); /* who dies young is replaced with growing patience, which is not the subject */
    for (unsigned i = 0; i < KILLED; i++) {
        kill(workers[i], SIGKILL);
        int64_t start = now_ms();
        while (kill(workers[i], 0) == 0 || count_children() < WORKERS) {
            check(now_ms() - start < patience(1000), "not replaced");
            load_until_answers(20);
        }
        check(losses() <= i + 1 && load.wrong == 0, "%u killed, %u lost", i + 1, losses());
    }
}

ONLY_SERVER(preforking, a_parent_killed_under_load_leaves_no_worker_and_a_free_port)
{
    pid_t workers[ROOM];
    start_under_load(workers);
    kill(server_pid, SIGKILL);
    load_until_nobody_listens();
    await_exit(1000);
    for (int i = 0; i < WORKERS; i++) /* orphans come to us */
        wait_until(waitpid(workers[i], NULL, WNOHANG) == workers[i], 1000, "one lives on");
    load.turned_away = 0;
    check_no_loss(); /* what they had begun they have finished */
    start_server_again();
    check_file(get("/"), "public/index.html");
}

ONLY_SERVER(forking, ten_thousand_requests_leave_no_child_and_no_descriptor)
{
    start_redis();
    start_server();
    get("/guestbook");
    wait_until(count_children() == 0, 1000, "a child stays");
    int before = count_descriptors(server_pid);
    begin_load();
    for (int i = 0; i < KEPT; i++)
        callers[i].stays = false; /* a child for each request */
    load_until_answers(10000 / (unsigned)patience(1));
    check_no_loss();
    wait_until(count_children() <= CLIENTS, 1000, "%d children for %d clients", count_children(),
               CLIENTS);
    load.nobody_listens = true; /* as if: nobody asks again */
    while (count_awake() > 0)
        go_round();
    wait_until(count_children() == 0, 1000, "%d children stay", count_children());
    wait_until(count_descriptors(server_pid) == before, 1000, "%d descriptors, %d before",
               count_descriptors(server_pid), before);
}
