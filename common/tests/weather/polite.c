/* Three hundred clients that all want to be kept, where four can be served, or one. */
#include "tests/harness/harness.h"

enum { CROWD = 300 };

/* Starts a program that loads the server; what it has to say goes to a file of its name. */
static pid_t start_load(const char *const *words)
{
    char url[64];
    const char *all[16];
    int count = 0;
    for (; words[count]; count++)
        all[count] = words[count];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", server_port);
    all[count] = url;
    all[count + 1] = NULL;
    int out = open(place(words[0]), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    pid_t pid = spawn(all, out, out);
    close(out);
    return pid;
}

static const char *finish_load(const char *name, pid_t pid)
{
    int status = 0;
    wait_until(waitpid(pid, &status, WNOHANG) == pid, 2 * SOON_MS, "%s does not end", name);
    const char *said = read_whole(place(name), NULL);
    check(status == 0, "%s: %s", name, said);
    return said;
}

/* By time, not by number: when ab has begun its last request it falls silent on what it was told
 * is kept, is given up for that after a tick, and complains. */
static const char *run_ab(void)
{
    static const char *const words[] = {"ab", "-q", "-k", "-c300", "-t1", "-n300000", NULL};
    return finish_load(words[0], start_load(words));
}

/* wrk does not count those who are never served: a visitor who comes after all of them is. */
static const char *run_wrk(void)
{
    char duration[16], timeout[16];
    snprintf(duration, sizeof(duration), "-d%ds", (int)patience(5));
    snprintf(timeout, sizeof(timeout), "%ds", (int)patience(2));
    const char *const words[] = {"wrk", "-t1", "-c300", duration, "--timeout", timeout, NULL};
    pid_t pid = start_load(words);
    wait_until(count_descriptors(pid) > CROWD, SOON_MS, "wrk does not connect");
    check_file(get("/"), "public/index.html");
    check(waitpid(pid, NULL, WNOHANG) == 0, "served only when the crowd had gone");
    return finish_load(words[0], pid);
}

static bool ab_is_content(const char *said)
{
    return strstr(said, "\nFailed requests:        0\n") && !strstr(said, "\nNon-2xx");
}

static bool wrk_is_content(const char *said)
{
    return strstr(said, " requests in ") && !strstr(said, "Socket errors") &&
           !strstr(said, "Non-2xx");
}

/* A client that the machine keeps from running for a whole tick is silent like any other, and is
 * given up like any other: that is no fault of the server. Nor does it happen every time. */
static void check_contentment(const char *(*run)(void), bool (*is_content)(const char *))
{
    enum { ATTEMPTS = 3 };
    const char *said = run();
    for (int i = 1; i < ATTEMPTS && !is_content(said); i++)
        said = run();
    check(is_content(said), "%d times: %s", ATTEMPTS, said);
}

BLOCKING_SERVERS(three_hundred_keep_alive_clients_see_no_error)
{
    if (access("/usr/bin/wrk", X_OK) < 0 || access("/usr/bin/ab", X_OK) < 0)
        cr_skip_test("wrk and ab are not both installed");
    start_server("--workers", "4");
    check_contentment(run_wrk, wrk_is_content);
    check_contentment(run_ab, ab_is_content);
}
