/* Which files a server opens, as strace(1) sees it. */
#include "harness.h"

#include <ctype.h>
#include <glob.h>

static bool watched, may_look_at_itself;
static char logs[32];   /* what the names of its logs begin with */
static char *inside[2]; /* the folders it may open, and what is in them, once it listens */

void skip_thread_sanitizer(void)
{
    const char *servers = getenv("SERVERS");
    if (servers && strstr(servers, "san-thread"))
        cr_skip_test("the thread sanitizer writes files of its own");
}

void watch_opens(void)
{
    skip_thread_sanitizer();
    if (system("strace -qqo /dev/null true 2>/dev/null") != 0)
        cr_skip_test("strace is not installed, or may not trace");
    watched = true;
}

void let_it_look_at_itself(void)
{
    may_look_at_itself = true;
}

#define CALLS "trace=/^(open|creat|mk|link|symlink|unlink|rm|rename|f?truncate|listen)"

/* Every call that could open a file or change one, by the server and all it starts: a log for each
 * process and thread, so that none breaks another's line; descriptors with their paths. A filter in
 * the kernel (seccomp) leaves all other calls as fast as they are. */
int watch_words(const char **words, const char *root)
{
    static const char *folders[] = {"public", "templates"};
    static int servers;
    char path[4096];
    if (!watched)
        return 0;
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%s", root, folders[i]);
        inside[i] = realpath(path, NULL);
    }
    snprintf(logs, sizeof(logs), "opens.%d", ++servers);
    const char *const strace[] = {"strace", "-DD", "-ffqy", "--seccomp-bpf",
                                  "-e",     CALLS, "-o",    place(logs)};
    memcpy(words, strace, sizeof(strace));
    return sizeof(strace) / sizeof(strace[0]);
}

static bool is_inside(const char *path)
{
    for (int i = 0; i < 2; i++) {
        size_t len = inside[i] ? strlen(inside[i]) : 0;
        if (len && strncmp(path, inside[i], len) == 0 && (path[len] == '/' || path[len] == '>'))
            return true;
    }
    return false;
}

/* malloc(3) asks the kernel, once, when many threads have come between. */
static bool is_mallocs(const char *path)
{
    return strcmp(path, "/sys/devices/system/cpu/online>") == 0 ||
           strcmp(path, "/proc/sys/vm/overcommit_memory>") == 0;
}

/* What the status is made of (proc(5)), of whatever process: a child looks at its parent too. */
static bool is_own_state(const char *path)
{
    static const char *const names[] = {"stat", "status", "smaps_rollup", "fd"};
    int at = 0;
    if (!may_look_at_itself || sscanf(path, "/proc/%*d/%n", &at) != 0 || at == 0)
        return false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(path + at, names[i], strlen(names[i])) == 0 &&
            strchr(">", path[at + (int)strlen(names[i])]))
            return true;
    return false;
}

/* `openat2(4</srv/public>, "a.html", {flags=O_RDONLY}, 24) = 8</srv/public/a.html>`: what was
 * opened is the path in the result. If the call failed, it is what was asked for, with the folder
 * that a relative name is looked for in. */
static bool opens_inside(const char *line)
{
    char path[8192] = "", name[4097] = "";
    const char *result = NULL;
    for (const char *at = line; (at = strstr(at, ") = ")); at++)
        result = at + strlen(") = ");
    if (result && sscanf(result, "%*d<%8191[^\n]", path) == 1)
        return is_inside(path) || is_own_state(path) || is_mallocs(path);
    const char *folder = strchr(line, '<'), *quote = strchr(line, '"');
    if (quote)
        sscanf(quote, "\"%4096[^\"]", name);
    if (name[0] != '/' && folder && folder < quote && sscanf(folder, "<%4000[^>]", path) == 1)
        strcat(path, "/");
    strcat(path, name);
    return is_inside(path) || is_own_state(path); /* whose process is gone */
}

/* Is it the call of another name than open, or for more than reading? */
static bool changes_something(const char *line)
{
    static const char *const words[] = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_TMPFILE"};
    bool opens = strncmp(line, "open", strlen("open")) == 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        opens = opens && !strstr(line, words[i]);
    return !opens;
}

/* A child of chapter 2 or 3 asks the kernel to end it before its parent. */
static bool offers_itself(const char *line)
{
    return (server_is("forking") || server_is("preforking")) &&
           strncmp(line, "openat(AT_FDCWD<", strlen("openat(AT_FDCWD<")) == 0 &&
           strstr(line, ">, \"/proc/self/oom_score_adj\", O_WRONLY|O_CLOEXEC) = ");
}

/* One process' log, or one thread's. The server's own begins before it listens, the others after.
 */
static void check_log(const char *path, bool listens)
{
    bool is_childs = listens;
    char *log = strdup(read_whole(path, NULL));
    for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, "listen(", strlen("listen(")) == 0)
            listens = true;
        else if (isalpha((unsigned char)line[0]) && !(is_childs && offers_itself(line)))
            check((!listens || opens_inside(line)) && !changes_something(line),
                  "it opens what is none of its business: %s", line);
    }
    check(listens, "strace has not seen it listen");
    free(log);
}

void check_opens(void)
{
    char own[64], pattern[64];
    const char *log;
    glob_t all;
    if (!watched)
        return;
    watched = false;
    snprintf(own, sizeof(own), "%s.%d", logs, (int)server_pid);
    snprintf(pattern, sizeof(pattern), "%s.*", logs);
    wait_until((log = read_whole(place(own), NULL)) && strstr(log, "+++ exited"), SOON_MS,
               "strace did not notice its end");
    check(glob(place(pattern), 0, NULL, &all) == 0, "no log");
    for (size_t i = 0; i < all.gl_pathc; i++)
        check_log(all.gl_pathv[i], strcmp(all.gl_pathv[i], place(own)) != 0);
    globfree(&all);
}
