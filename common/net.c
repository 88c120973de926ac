#include "net.h"

#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

_Noreturn void net_die(const char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", name);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

/* ---- options ------------------------------------------------------------------------------- */

static const char help[] =
    "Usage: %s [option]...\n"
    "Serves public/ and a guestbook over HTTP/1.1.\n"
    "\n"
    "  -p, --port N          port to listen on; 0 takes a free one (8000)\n"
    "  -b, --bind ADDR       IPv4 or IPv6 address to listen on (127.0.0.1)\n"
    "  -r, --redis WHERE     host:port, redis://:password@host:port, or unix:PATH\n"
    "                        (127.0.0.1:6379); the environment variable\n"
    "                        REDISCLI_AUTH may hold the password instead\n"
    "%s"
    "  -d, --root DIR        where public/ and templates/ are (.)\n"
    "  -k, --keep-alive SEC  how long an idle connection is kept; 0: not at all (5)\n"
    "  -t, --timeout SEC     for a whole request, and for a response that makes no\n"
    "                        progress; a new connection that says nothing gets half\n"
    "                        of it, a Redis command a fifth, connecting to Redis a\n"
    "                        tenth; fractions are allowed (10)\n"
    "  -l, --backlog N       how many connections may wait to be accepted (4096)\n"
    "  -v, --verbose         a line a request, in Common Log Format; left out where\n"
    "                        standard output is a pipe that is full\n"
    "  -h, --help            this text\n"
    "  -V, --version         the version\n";

static const char help_workers[] =
    "  -w, --workers N       processes or threads that serve, at once at most (%d)\n";

static const struct option long_options[] = {
    {"port", required_argument, NULL, 'p'},    {"bind", required_argument, NULL, 'b'},
    {"redis", required_argument, NULL, 'r'},   {"workers", required_argument, NULL, 'w'},
    {"root", required_argument, NULL, 'd'},    {"keep-alive", required_argument, NULL, 'k'},
    {"timeout", required_argument, NULL, 't'}, {"backlog", required_argument, NULL, 'l'},
    {"verbose", no_argument, NULL, 'v'},       {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},       {NULL, 0, NULL, 0},
};

_Noreturn void net_bad_option(const char *name, const char *what, const char *value,
                              const char *right)
{
    fprintf(stderr, "%s: %s '%s': %s\n", name, what, value, right);
    exit(2);
}

/* A whole number in [least, most], or the end of the program. */
static int whole_number(const char *name, const char *option, const char *text, int least, int most)
{
    char *end, right[64];
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno == 0 && end != text && *end == '\0' && n >= least && n <= most)
        return (int)n;
    snprintf(right, sizeof(right), "a whole number from %d to %d", least, most);
    net_bad_option(name, option, text, right);
}

/* Seconds, with fractions, as milliseconds. */
static int milliseconds(const char *name, const char *option, const char *text, int least_ms)
{
    enum { MOST_SECONDS = 3600 };
    char *end, right[64];
    errno = 0;
    double seconds = strtod(text, &end);
    if (errno == 0 && end != text && *end == '\0' && seconds * 1000 >= least_ms &&
        seconds <= MOST_SECONDS)
        return (int)(seconds * 1000 + 0.5);
    snprintf(right, sizeof(right), "seconds from %g to %d", least_ms / 1000.0, MOST_SECONDS);
    net_bad_option(name, option, text, right);
}

static _Noreturn void print_help(const char *name, int workers)
{
    char line[128] = "";
    if (workers > 0)
        snprintf(line, sizeof(line), help_workers, workers);
    printf(help, name, line);
    exit(0);
}

static void one_option(struct options *o, int option, const char *value, int workers)
{
    switch (option) {
    case 'p':
        o->port = whole_number(o->name, "--port", value, 0, 65535);
        break;
    case 'b':
        o->bind = value;
        break;
    case 'r':
        o->redis = value;
        break;
    case 'w':
        if (workers == 0)
            net_bad_option(o->name, "--workers", value,
                           "this server has one process and one thread");
        o->workers = whole_number(o->name, "--workers", value, 1, 30000);
        break;
    case 'd':
        o->root = value;
        break;
    case 'k':
        o->keep_alive_ms = milliseconds(o->name, "--keep-alive", value, 0);
        break;
    case 't':
        o->timeout_ms = milliseconds(o->name, "--timeout", value, 100);
        break;
    case 'l':
        o->backlog = whole_number(o->name, "--backlog", value, 1, 65535);
        break;
    case 'v':
        o->verbose = true;
        break;
    case 'h':
        print_help(o->name, workers);
    case 'V':
        printf("%s (ZeroHTTPd) %s\n", o->name, ZEROHTTPD_VERSION);
        exit(0);
    default:
        break;
    }
}

static const char short_options[] = ":p:b:r:w:d:k:t:l:vhV";

/* What getopt_long(3) did not know: a letter, perhaps among others (`-vx`); or the word, if there
 * is no letter (`--bogus`), or one that is known (`--verbose=3`). */
static const char *unknown_option(const char *word)
{
    static char letter[] = "-?";
    letter[1] = (char)optopt;
    return strchr(short_options, optopt) ? word : letter;
}

void net_options(struct options *o, int argc, char **argv, const char *name, int workers)
{
    *o = (struct options){
        .name = name,
        .port = 8000,
        .bind = "127.0.0.1",
        .redis = "127.0.0.1:6379",
        .workers = workers,
        .root = ".",
        .keep_alive_ms = 5000,
        .timeout_ms = 10000,
        .backlog = 4096,
    };
    int option;
    opterr = 0; /* the messages are ours */
    while ((option = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
        if (option == '?')
            net_bad_option(name, "unknown option", unknown_option(argv[optind - 1]), "see --help");
        if (option == ':')
            net_bad_option(name, "no value for", argv[optind - 1], "see --help");
        one_option(o, option, optarg, workers);
    }
    if (optind < argc)
        net_bad_option(name, "unexpected argument", argv[optind], "see --help");
}

int net_fresh_ms(const struct options *o)
{
    return o->timeout_ms / 2;
}

int net_redis_ms(const struct options *o)
{
    return o->timeout_ms / 5;
}

int net_connect_ms(const struct options *o)
{
    return o->timeout_ms / 10;
}

int net_linger_ms(const struct options *o)
{
    return o->timeout_ms / 10;
}

/* ---- the listener -------------------------------------------------------------------------- */

/* /proc/self/status, for the statistics at the end; opened at the start, because a server that runs
 * opens what is in public/ and templates/, and nothing else, unless it is asked for its status. */
static int own_status = -1;

/* What was used by this process and its children; times in seconds, sizes in KiB. */
struct usage {
    double user, system;
    long voluntary, involuntary; /* context switches */
    long own_kib, child_kib;     /* the largest that this process, and that any child, has been */
};

/* getrusage(2) counts from before execve(2), which may have been a shell's busy life. */
static struct usage before_start;

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static struct usage usage_so_far(void)
{
    struct rusage self, children;
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    return (struct usage){
        .user = seconds(self.ru_utime) + seconds(children.ru_utime),
        .system = seconds(self.ru_stime) + seconds(children.ru_stime),
        .voluntary = self.ru_nvcsw + children.ru_nvcsw,
        .involuntary = self.ru_nivcsw + children.ru_nivcsw,
        .own_kib = self.ru_maxrss,
        .child_kib = children.ru_maxrss,
    };
}

/* A client costs a descriptor or two; the soft limit is 1024 on most machines. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* The kernel enlarges the table for the highest number in use: one is, for a moment. */
void net_reserve_descriptors(int count)
{
    enum { OTHERS = 64 }; /* the listener, templates, files that are being sent */
    struct rlimit limit;
    int highest = count + OTHERS;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur <= (rlim_t)highest)
        highest = (int)limit.rlim_cur - 1;
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, highest);
    if (fd >= 0)
        close(fd);
}

/* What a socket takes and cannot send yet. Without such a bound it is 2.5 MB on loopback, and a
 * thousand clients that ask for a large file and do not read would use up what memory the kernel
 * has for all connections of the machine. What is under way comes on top: a fast client is not
 * slowed down. */
enum { UNSENT_BYTES = 128 * 1024 };

static void set_options(int listener, const struct options *o, bool blocking)
{
    const int on = 1, unsent = UNSENT_BYTES;
    const struct timeval tick = {.tv_usec = TICK_MS * 1000L};

    /* Without SO_REUSEADDR a restart would find the port taken by the last run's connections in
     * TIME_WAIT. The others are inherited by every socket accepted here. */
    if (setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
        setsockopt(listener, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent)) < 0 ||
        (blocking && (setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof(tick)) < 0 ||
                      setsockopt(listener, SOL_SOCKET, SO_SNDTIMEO, &tick, sizeof(tick)) < 0)))
        net_die(o->name, "cannot set socket options: %s", strerror(errno));
}

int net_listen(const struct options *o, bool blocking)
{
    struct addrinfo *address, hints = {
                                  .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                  .ai_socktype = SOCK_STREAM,
                              };
    char port[8];
    snprintf(port, sizeof(port), "%d", o->port);
    if (getaddrinfo(o->bind, port, &hints, &address) != 0)
        net_bad_option(o->name, "--bind", o->bind, "an IPv4 or IPv6 address");

    raise_descriptor_limit();
    memory_start();
    own_status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    before_start = usage_so_far();
    int type = SOCK_STREAM | SOCK_CLOEXEC | (blocking ? 0 : SOCK_NONBLOCK);
    int listener = socket(address->ai_family, type, 0);
    if (listener < 0)
        net_die(o->name, "cannot make a socket: %s", strerror(errno));
    set_options(listener, o, blocking);
    if (bind(listener, address->ai_addr, address->ai_addrlen) < 0 ||
        listen(listener, o->backlog) < 0)
        net_die(o->name, "cannot listen on %s port %d: %s%s", o->bind, o->port, strerror(errno),
                errno == EADDRINUSE ? "; choose another one with --port" : "");
    freeaddrinfo(address);
    return listener;
}

void net_ready(const struct options *o, int listener)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);
    char port[8] = "?";
    if (getsockname(listener, (struct sockaddr *)&address, &size) == 0)
        getnameinfo((struct sockaddr *)&address, size, NULL, 0, port, sizeof(port), NI_NUMERICSERV);
    bool ipv6 = strchr(o->bind, ':') != NULL;
    printf("%s: listening on http://%s%s%s:%s\n", o->name, ipv6 ? "[" : "", o->bind,
           ipv6 ? "]" : "", port);
    fflush(stdout); /* before anything forks: a child must not find this line in its buffer */
}

/* 127.0.0.0/8, ::1, and the former as IPv6 writes it, ::ffff:127.0.0.1, for a client of "::". */
bool net_is_loopback(const struct sockaddr *address)
{
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
    switch (address->sa_family) {
    case AF_INET:
        memcpy(&ipv4, address, sizeof(ipv4));
        return ntohl(ipv4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    case AF_INET6:
        memcpy(&ipv6, address, sizeof(ipv6));
        return IN6_IS_ADDR_LOOPBACK(&ipv6.sin6_addr) ||
               (IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr) &&
                ipv6.sin6_addr.s6_addr[12] == IN_LOOPBACKNET);
    default:
        return address->sa_family == AF_UNIX;
    }
}

bool net_peer_is_local(int fd)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof(address);
    return getpeername(fd, (struct sockaddr *)&address, &size) == 0 &&
           net_is_loopback((struct sockaddr *)&address);
}

/* Of a listener, this field is the length of its queue (Linux; inet_diag(7) shows the same). */
int net_how_many_wait(int listener)
{
    struct tcp_info about = {0};
    socklen_t size = sizeof(about);
    getsockopt(listener, IPPROTO_TCP, TCP_INFO, &about, &size);
    return (int)about.tcpi_unacked;
}

bool net_out_of_resources(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

void net_accept_failed(void)
{
    if (net_out_of_resources(errno))
        poll(NULL, 0, TICK_MS);
}

/* ---- signals and the clock ----------------------------------------------------------------- */

static _Atomic int64_t stop_asked; /* net_now(); set once, by a handler: for the whole process */

static void stop(int signal_number)
{
    (void)signal_number;
    if (stop_asked == 0)
        stop_asked = net_now();
}

void net_release_signals(void)
{
    signal(SIGTERM, SIG_DFL); /* signal-safety(7) allows that */
    signal(SIGINT, SIG_DFL);
}

/* The next signal, whichever of the two it is, meets the default action. */
static void stop_once(int signal_number)
{
    stop(signal_number);
    net_release_signals();
}

void net_catch_signals(bool once)
{
    /* No SA_RESTART: accept(2) is to return. */
    struct sigaction action = {.sa_handler = once ? stop_once : stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

bool net_stopping(void)
{
    return stop_asked != 0;
}

bool net_stop_is_over(void)
{
    return stop_asked != 0 && net_now() - stop_asked >= STOP_MS;
}

int net_stop_ms(const struct options *o)
{
    return STOP_MS + net_redis_ms(o) + 2 * TICK_MS;
}

static sigset_t stop_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
}

int net_open_signals(const struct options *o)
{
    sigset_t set = stop_signals();
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0)
        net_die(o->name, "signalfd: %s", strerror(errno));
    return signals;
}

void net_take_signal(int signals)
{
    struct signalfd_siginfo info;
    sigset_t set = stop_signals();
    while (read(signals, &info, sizeof(info)) > 0)
        ; /* taken before they are unblocked, or this one would end us */

    net_release_signals(); /* who started us may have ignored them */
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    stop(SIGTERM);
}

struct timespec net_time_from_now(int ms)
{
    struct timespec when;
    clock_gettime(CLOCK_MONOTONIC, &when);
    when.tv_sec += ms / 1000;
    when.tv_nsec += ms % 1000 * 1000000L;
    when.tv_sec += when.tv_nsec / 1000000000L;
    when.tv_nsec %= 1000000000L;
    return when;
}

int64_t net_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int net_earlier(int a, int b)
{
    if (a < 0 || b < 0)
        return a < 0 ? b : a;
    return a < b ? a : b;
}

/* ---- lines that somebody reads -------------------------------------------------------------- */

void net_write_visible(const char *text, size_t len, char *shown, size_t size)
{
    enum { LONGEST = 4 }; /* bytes that one becomes */
    size_t n = 0;
    for (size_t i = 0; i < len && size - n > LONGEST; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < ' ' || c >= 127 || c == '"' || c == '\\')
            n += (size_t)snprintf(shown + n, size - n, "\\x%02x", c);
        else
            shown[n++] = (char)c;
    }
    shown[n] = '\0';
}

bool net_wait_for_room(int fd, int ms)
{
    struct pollfd out = {.fd = fd, .events = POLLOUT};
    return poll(&out, 1, ms) == 1;
}

/* ---- the end ------------------------------------------------------------------------------- */

/* Peak memory of this process, in KiB. ru_maxrss is what is left without /proc: it survives exec(2)
 * and so may show the size of whoever started us. */
static long own_peak_kib(long maxrss)
{
    char text[4096];
    ssize_t n = pread(own_status, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    const char *peak = strstr(text, "VmHWM:");
    return peak ? strtol(peak + strlen("VmHWM:"), NULL, 10) : maxrss;
}

void net_report(const struct options *o, uint64_t requests, uint64_t connections)
{
    enum { PATIENCE_MS = 1000 };
    if (!net_wait_for_room(STDOUT_FILENO, PATIENCE_MS))
        return; /* a full pipe, which nobody reads: write(2) would wait for ever */
    struct usage now = usage_so_far();
    long peak = own_peak_kib(now.own_kib);
    if (now.child_kib > peak && now.child_kib > before_start.child_kib)
        peak = now.child_kib;
    printf("%s: %llu requests on %llu connections; CPU %.2f s user, %.2f s system; "
           "peak memory %ld KiB; context switches %ld voluntary, %ld involuntary\n",
           o->name, (unsigned long long)requests, (unsigned long long)connections,
           now.user - before_start.user, now.system - before_start.system, peak,
           now.voluntary - before_start.voluntary, now.involuntary - before_start.involuntary);
    fflush(stdout);
}
