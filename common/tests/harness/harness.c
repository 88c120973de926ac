#include "harness.h"

#include <ctype.h>
#include <stdarg.h>
#include <sys/prctl.h>

/* Each test is a process of its own: what is static here is one test's. */
const char *server_name;
const char *server_says;
pid_t server_pid;
char server_host[64];
int server_port;

static bool server_runs;
static int server_out = -1; /* its standard output */
static char *output;        /* what has been read of that */
static size_t output_len;

/* ---- time, and what went wrong ------------------------------------------------------------- */

int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t patience(int64_t ms)
{
    const char *times = getenv("PATIENCE");
    return ms * (times ? atoll(times) : 1);
}

const char *describe(const char *condition, const char *format, ...)
{
    static char text[24 * 1024];
    va_list arguments;
    int n = snprintf(text, sizeof(text), "%s: not true: %s: ", server_name, condition);
    va_start(arguments, format);
    n += vsnprintf(text + n, sizeof(text) - (size_t)n, format, arguments);
    va_end(arguments);
    if ((size_t)n < sizeof(text))
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%s", last_exchange());
    const char *errors = server_errors();
    if (*errors && (size_t)n < sizeof(text))
        snprintf(text + n, sizeof(text) - (size_t)n, "\nThe server said: %s", errors);
    for (char *at = text; *at; at++) /* what a test sends is not fit for every terminal */
        if (*at != '\n' && !isprint((unsigned char)*at))
            *at = '?';
    return text;
}

/* ---- the server ---------------------------------------------------------------------------- */

bool server_is(const char *name)
{
    return strcmp(server_name, name) == 0;
}

#define OR_IT_IS(server, call, nothing) || server_is(#server)

bool server_is_loop(void)
{
    return false FOR_LOOPS(OR_IT_IS, );
}

bool server_has_pool(void)
{
    return false FOR_POOLS(OR_IT_IS, );
}

bool server_is_ours(void)
{
    return !getenv("CALLS_ITSELF");
}

bool server_has_sanitizer(void)
{
    char path[4096];
    size_t len = 0;
    const char *directory = getenv("SERVERS");
    snprintf(path, sizeof(path), "%s/%s", directory ? directory : ".", server_name);
    const char *program = read_whole(path, &len);
    return program &&
           (memmem(program, len, "__asan_init", 11) || memmem(program, len, "__tsan_init", 11));
}

bool server_has_workers(void)
{
    return server_has_pool() FOR_MAKERS(OR_IT_IS, );
}

const char *server_errors(void)
{
    const char *errors = read_whole(place("errors"), NULL);
    return errors ? errors : "";
}

const char *server_output(void)
{
    return output ? output : "";
}

int count_parts(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

int count_lines(const char *text)
{
    return count_parts(text, "\n");
}

enum { OUTPUT_MOST = 16 * 1024 * 1024 }; /* bytes: nobody has so much to say */

/* The line of its output that begins so, or NULL if there is no such line yet. */
static const char *output_line(const char *start)
{
    const char *line = output;
    while (line && strncmp(line, start, strlen(start)) != 0) {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return line && strchr(line, '\n') ? line : NULL;
}

/* Reads on until there is a line that begins so; without one, until nobody is left who could write
 * to it, its children included. */
static void read_output(const char *start, int limit_ms)
{
    int64_t limit = now_ms() + patience(limit_ms);
    ssize_t n = 1;
    while (n > 0 && !(start && output_line(start))) {
        struct pollfd fd = {.fd = server_out, .events = POLLIN};
        int64_t left = limit - now_ms();
        bool in_time = left > 0 && poll(&fd, 1, (int)left) > 0;
        check(in_time, "the server neither %s: %s",
              start ? "got ready nor ended" : "ended nor closed its output", server_output());
        check(output_len < OUTPUT_MOST, "it writes and writes: %.80s", output);
        output = realloc(output, output_len + 4097);
        n = read(server_out, output + output_len, 4096);
        output_len += n > 0 ? (size_t)n : 0;
        output[output_len] = '\0';
    }
}

static const char *under[32]; /* what run_under() was given */

void run_under_with(const char *const *words)
{
    int count = 0;
    for (; words[count]; count++)
        under[count] = words[count];
    under[count] = NULL;
}

/* Whoever does not know --workers is told of it in cases about that only. */
static void launch(const char *const *options, bool may_be_told)
{
    static char binary[4096], where[300];
    const char *const own[] = {binary, "-p", "0", "-r", where};
    const char *words[96], *directory = getenv("SERVERS");
    int count = 0, ends[2];
    for (; under[count]; count++)
        words[count] = under[count];
    under[0] = NULL;
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        words[count++] = own[i];
    snprintf(binary, sizeof(binary), "%s/%s", directory ? directory : ".", server_name);
    snprintf(where, sizeof(where), "unix:%s", place("redis"));
    if (server_has_pool() && !getenv("NO_WORKERS")) {
        words[count++] = "--workers";
        words[count++] = "8";
    }
    for (options++; *options && count < 95; options++)
        if (strcmp(*options, "--workers") == 0 && !may_be_told)
            options++;
        else
            words[count++] = *options;
    words[count] = NULL;

    int err = open(place("errors"), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    check(pipe2(ends, O_CLOEXEC) == 0 && err >= 0, "%s", strerror(errno));
    if (server_out >= 0)
        close(server_out);
    server_out = ends[0];
    free(output);
    output = NULL;
    output_len = 0;
    server_pid = spawn(words, ends[1], err);
    server_runs = true;
    close(ends[1]);
    close(err);
}

void start_server_with(const char *const *options)
{
    char start[64];
    launch(options, server_has_workers() && !getenv("NO_WORKERS"));
    snprintf(start, sizeof(start), "%s: listening on http://", server_says);
    read_output(start, SOON_MS);
    const char *banner = output_line(start), *host = banner ? banner + strlen(start) : "";
    const char *colon = memrchr(host, ':', strcspn(host, "\n"));
    char *end = NULL;
    if (colon && colon > host) {
        snprintf(server_host, sizeof(server_host), "%.*s", (int)(colon - host), host);
        server_port = (int)strtol(colon + 1, &end, 10);
    }
    check(end && *end == '\n' && server_port > 0 && server_port < 65536, "the banner is: %s",
          server_output());
    /* gcc 12's thread sanitizer loses a signal that comes while a thread begins its first blocking
     * call. In chapter 5 that call follows the banner, and one SIGTERM in some hundreds was lost.
     * (A later SigCtx() of LLVM loses none.) */
    if (server_has_sanitizer())
        wait_until(process_sleeps(server_pid), SOON_MS, "it is ready, and does not sleep");
}

void start_server_again(void)
{
    char port[16];
    snprintf(port, sizeof(port), "%d", server_port);
    start_server("--port", port);
}

static void check_for_sanitizers(void)
{
    static const char *const reports[] = {"ERROR: AddressSanitizer", "ERROR: LeakSanitizer",
                                          "runtime error:", "WARNING: ThreadSanitizer"};
    for (size_t i = 0; i < sizeof(reports) / sizeof(reports[0]); i++)
        check(!strstr(server_errors(), reports[i]), "a sanitizer has found something");
}

int await_exit(int limit_ms)
{
    int status = 0;
    wait_until(waitpid(server_pid, &status, WNOHANG) == server_pid, limit_ms,
               "it has not ended within %d ms", limit_ms);
    server_runs = false;
    check_for_sanitizers();
    return status;
}

struct statistics await_server(void)
{
    enum { STOPPED_MS = 8000 };
    struct statistics s = {0};
    char pattern[256];
    double system_s = 0;
    int n = 0;
    read_output(NULL, STOPPED_MS);
    int status = await_exit(STOPPED_MS);
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "wait status 0x%x", (unsigned)status);
    check(waitpid(-server_pid, NULL, WNOHANG) < 0, "it left a child behind");

    const char *last = output_len > 1 ? memrchr(output, '\n', output_len - 1) : NULL;
    snprintf(pattern, sizeof(pattern),
             "\n%s: %%llu requests on %%llu connections; CPU %%lf s user, %%lf s system; peak "
             "memory %%ld KiB; context switches %%*d voluntary, %%*d involuntary%%n",
             server_says);
    s.told = last &&
             sscanf(last, pattern, &s.requests, &s.connections, &s.cpu_s, &system_s, &s.peak_kib,
                    &n) == 5 &&
             last[n] == '\n';
    s.cpu_s += system_s;
    check(s.told || !server_is_ours(), "the last line is no statistics: %s", server_output());
    return s.told ? s : (struct statistics){0};
}

bool has_counted(struct statistics s, unsigned long long requests, unsigned long long connections)
{
    return (s.requests == requests && s.connections == connections) || !s.told;
}

struct statistics stop_server(void)
{
    check(kill(server_pid, SIGTERM) == 0, "the server is gone: %s", strerror(errno));
    return await_server();
}

int run_server_with(const char *const *options)
{
    launch(options, true);
    read_output(NULL, SOON_MS);
    int status = await_exit(SOON_MS);
    check(WIFEXITED(status), "wait status 0x%x", (unsigned)status);
    return WEXITSTATUS(status);
}

/* ---- what several cases prepare -------------------------------------------------------------- */

const char *make_root_with_file(int64_t size)
{
    const char *root = make_root();
    write_file("root/public/file.bin", "", 0);
    check(truncate(place("root/public/file.bin"), (off_t)size) == 0, "%s", strerror(errno));
    return root;
}

int keep_port(char port[16])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(bind(taken, (struct sockaddr *)&address, size) == 0 &&
              getsockname(taken, (struct sockaddr *)&address, &size) == 0,
          "%s", strerror(errno));
    snprintf(port, 16, "%d", ntohs(address.sin_port));
    return taken;
}

/* ---- a case -------------------------------------------------------------------------------- */

void run_case(const char *server, void (*body)(void))
{
    const char *own_name = getenv("CALLS_ITSELF");
    server_name = server;
    server_says = own_name ? own_name : server;
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* orphans of the server come to us, who count them */
    signal(SIGPIPE, SIG_IGN);
    unsetenv("REDISCLI_AUTH"); /* for another Redis than ours */
    make_folder();
    body();
    hang_up_all();
    if (server_runs)
        stop_server();
}

/* Criterion calls this however the test has ended, if it lives; if not, those we started have lost
 * their parent and see to themselves. */
static void clean_up(void)
{
    kill_group(&server_pid);
    kill_redis();
    remove_folder();
}

#define SUITE(server, call, nothing) TestSuite(server, .fini = clean_up, .timeout = 300);
FOR_ALL(SUITE, )
