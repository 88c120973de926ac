/* What a test has around it, and to itself: a folder, processes, a Redis. */
#include "harness.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/prctl.h>

static char folder[64];
static FILE *folder_lease; /* while this is open, the folder stays */
static pid_t redis_pid;
static redisContext *redis_context; /* the test's own connection */

/* ---- the folder ---------------------------------------------------------------------------- */

/* Removing it is the business of a process that outlives the test, so that it goes even if the test
 * crashes or is killed. */
void make_folder(void)
{
    char command[128];
    snprintf(folder, sizeof(folder), "/tmp/zerohttpd-XXXXXX"); /* a socket's path holds 107 bytes */
    check(mkdtemp(folder), "%s: %s", folder, strerror(errno));
    snprintf(command, sizeof(command), "trap '' INT; cat; exec rm -rf %s", folder);
    folder_lease = popen(command, "we");
    check(folder_lease, "%s", strerror(errno));
}

void remove_folder(void)
{
    if (folder_lease)
        pclose(folder_lease);
}

const char *place(const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? "" : path;
}

void write_file(const char *name, const char *bytes, size_t len)
{
    FILE *file = fopen(place(name), "we");
    check(file && fwrite(bytes, 1, len, file) == len && fclose(file) == 0, "cannot write %s", name);
}

const char *read_whole(const char *path, size_t *len)
{
    enum { PIECE = 16 * 1024 };
    FILE *file = fopen(path, "re");
    char *bytes = NULL;
    size_t got = 0, n = 1;
    if (!file)
        return NULL;
    while (n > 0) {
        bytes = realloc(bytes, got + PIECE + 1);
        n = fread(bytes + got, 1, PIECE, file);
        got += n;
    }
    fclose(file);
    bytes[got] = '\0';
    if (len)
        *len = got;
    return bytes;
}

const char *make_root(void)
{
    char templates[4096];
    check(realpath("templates", templates), "no templates/ here");
    check(mkdir(place("root"), 0755) == 0 && mkdir(place("root/public"), 0755) == 0 &&
              symlink(templates, place("root/templates")) == 0,
          "%s", strerror(errno));
    write_file("root/public/index.html", "home", 4);
    write_file("root/secret", SECRET, strlen(SECRET));
    return place("root");
}

/* ---- processes ----------------------------------------------------------------------------- */

pid_t spawn(const char *const *words, int out, int err)
{
    pid_t parent = getpid(), pid = fork();
    check(pid >= 0, "fork: %s", strerror(errno));
    if (pid == 0) {
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        dup2(out, STDOUT_FILENO);
        dup2(err, STDERR_FILENO);
        closefrom(STDERR_FILENO + 1);
        signal(SIGPIPE, SIG_DFL); /* the test ignores it, and that would be inherited */
        execvp(words[0], (char *const *)words);
        _exit(127);
    }
    setpgid(pid, pid); /* here too: whoever comes first */
    return pid;
}

void kill_group(pid_t *leader)
{
    pid_t ended;
    while (*leader > 0 && (ended = waitpid(-*leader, NULL, WNOHANG)) >= 0) {
        if (ended == 0) {
            kill(-*leader, SIGKILL);
            poll(NULL, 0, 1);
        }
    }
    *leader = 0;
}

int count_descriptors(pid_t pid)
{
    char path[64];
    int count = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *directory = opendir(path);
    if (!directory && errno == ENOENT)
        return 0; /* it has just ended */
    check(directory, "%s: %s", path, strerror(errno));
    while (readdir(directory))
        count++;
    closedir(directory);
    return count - 2; /* . and .. */
}

/* Of /proc/PID/stat, what follows the process's name, which may hold any bytes; "" without one. */
static const char *behind_name(pid_t pid)
{
    static char text[1024];
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *stat = fopen(path, "re");
    text[stat ? fread(text, 1, sizeof(text) - 1, stat) : 0] = '\0';
    if (stat)
        fclose(stat);
    const char *behind = strrchr(text, ')');
    return behind ? behind : "";
}

int list_children(pid_t pid, pid_t *children, int room, char *states)
{
    int count = 0, parent;
    struct dirent *entry;
    DIR *directory = opendir("/proc");
    check(directory, "/proc: %s", strerror(errno));
    while (count < room && (entry = readdir(directory))) {
        char state;
        if (isdigit((unsigned char)entry->d_name[0]) &&
            sscanf(behind_name(atoi(entry->d_name)), ") %c %d", &state, &parent) == 2 &&
            parent == pid) {
            if (children)
                children[count] = atoi(entry->d_name);
            if (states)
                states[count] = state;
            count++;
        }
    }
    closedir(directory);
    return count;
}

pid_t serving_process(void)
{
    enum { ROOM = 64 };
    pid_t children[ROOM];
    char states[ROOM];
    if (!server_is("preforking"))
        return server_pid;
    wait_until(list_children(server_pid, children, ROOM, states) == 1 && states[0] != 'Z', 2000,
               "not one worker");
    return children[0];
}

int count_children(void)
{
    return list_children(server_pid, NULL, INT_MAX, NULL);
}

/* The server and its present children: how many of `processes` were filled in. */
static int list_server(pid_t *processes, int room)
{
    processes[0] = server_pid;
    return 1 + list_children(server_pid, processes + 1, room - 1, NULL);
}

bool process_sleeps(pid_t pid)
{
    return strncmp(behind_name(pid), ") S", 3) == 0;
}

const char *read_process(pid_t pid, const char *name)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    const char *text = read_whole(path, NULL);
    return text ? text : "";
}

int64_t server_cpu_ms(void)
{
    enum { ROOM = 4096 };
    pid_t *processes = calloc(ROOM, sizeof(*processes));
    int64_t ticks = 0;
    for (int i = list_server(processes, ROOM) - 1; i >= 0; i--) {
        unsigned long user = 0, system = 0;
        sscanf(behind_name(processes[i]), ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
               &user, &system);
        ticks += (int64_t)(user + system);
    }
    free(processes);
    return ticks * 1000 / sysconf(_SC_CLK_TCK);
}

void check_it_sleeps(int ms, const char *when)
{
    enum { CPU_MS = 100 };
    int64_t before = server_cpu_ms();
    poll(NULL, 0, ms); /* not for something to happen, but for nothing to */
    int64_t used = server_cpu_ms() - before;
    check(used < patience(CPU_MS), "%lld ms of CPU in %d ms, %s", (long long)used, ms, when);
}

/* Of a file in /proc, the number behind "\nNAME:". */
static long number_in(const char *text, const char *name)
{
    const char *line = strstr(text, name);
    return line ? strtol(line + strlen(name), NULL, 10) : 0;
}

long process_number(pid_t pid, const char *name)
{
    return number_in(read_process(pid, "status"), name);
}

long server_pss_kib(void)
{
    enum { ROOM = 4096 };
    pid_t *processes = calloc(ROOM, sizeof(*processes));
    long kib = 0;
    for (int i = list_server(processes, ROOM) - 1; i >= 0; i--) {
        const char *rollup = read_process(processes[i], "smaps_rollup");
        kib += number_in(rollup, "\nPss_Anon:") + number_in(rollup, "\nPss_Shmem:");
    }
    free(processes);
    check(kib > 0, "this kernel does not tell what they occupy (Pss_Anon, Linux 5.3)");
    return kib;
}

/* ---- Redis --------------------------------------------------------------------------------- */

redisContext *open_redis(void)
{
    const struct timeval limit = {.tv_sec = patience(SOON_MS) / 1000};
    redisContext *context = redisConnectUnixWithTimeout(place("redis"), limit);
    if (context && !context->err && redisSetTimeout(context, limit) == REDIS_OK)
        return context;
    redisFree(context);
    return NULL;
}

bool redis_answers(void)
{
    int status;
    if (redis_context)
        return true;
    if (waitpid(redis_pid, &status, WNOHANG) == redis_pid) {
        redis_pid = 0;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
            cr_skip_test("neither redis-server nor valkey-server is installed");
        check(false, "redis-server has ended: wait status 0x%x", (unsigned)status);
    }
    redis_context = open_redis();
    redisReply *reply = redis_context ? redisCommand(redis_context, "PING") : NULL;
    bool ready = reply && reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "PONG") == 0;
    freeReplyObject(reply);
    if (!ready) {
        redisFree(redis_context);
        redis_context = NULL;
    }
    return ready;
}

void launch_redis_with(const char *const *options)
{
    static const char either[] = "export LC_ALL=C; command -v redis-server >/dev/null && exec "
                                 "redis-server \"$@\"; exec valkey-server \"$@\"";
    const char *const own[] = {
        "sh",           "-c",           either,          "redis", "--port",     "0",
        "--unixsocket", place("redis"), "--dir",         folder,  "--save",     "",
        "--appendonly", "no",           "--tcp-backlog", "4096",  "--loglevel", "warning"};
    const char *words[64];
    int count = 0;
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        words[count++] = own[i];
    for (options++; *options && count < 63; options++)
        words[count++] = *options;
    words[count] = NULL;
    int log = open(place("redis.log"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    check(log >= 0, "%s", strerror(errno));
    redis_pid = spawn(words, log, log);
    close(log);
}

void start_redis_with(const char *const *options)
{
    launch_redis_with(options);
    wait_until(redis_answers(), SOON_MS, "Redis does not answer: %s",
               read_whole(place("redis.log"), NULL));
}

void kill_redis(void)
{
    redisFree(redis_context);
    redis_context = NULL;
    kill_group(&redis_pid);
}

void freeze_redis(void)
{
    int status;
    check(kill(redis_pid, SIGSTOP) == 0 && waitpid(redis_pid, &status, WUNTRACED) == redis_pid &&
              WIFSTOPPED(status),
          "Redis cannot be stopped");
}

void thaw_redis(void)
{
    check(kill(redis_pid, SIGCONT) == 0, "%s", strerror(errno));
}

static redisReply *redis_with(const char *command, va_list arguments)
{
    redisReply *reply = redisvCommand(redis_context, command, arguments);
    check(reply && reply->type != REDIS_REPLY_ERROR, "%s: %s", command,
          reply ? reply->str : redis_context->errstr);
    return reply;
}

redisReply *redis(const char *command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    redisReply *reply = redis_with(command, arguments);
    va_end(arguments);
    return reply;
}

long long redis_number(const char *command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    redisReply *reply = redis_with(command, arguments);
    va_end(arguments);
    return reply->type == REDIS_REPLY_STRING ? atoll(reply->str) : reply->integer;
}

void fill_guestbook_with_quotes(void)
{
    char entry[1100] = "2026-01-05T09:00:00Z\nAda\n";
    memset(entry + strlen(entry), '"', 1000);
    redis("RPUSH guestbook:entries %s", "2026-01-05T09:00:00Z\nAda\nhello");
    for (int i = 0; i < 20; i++)
        redis("RPUSH guestbook:entries %s", entry);
}
