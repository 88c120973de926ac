/* Exercise 03/supervisor: workers made beforehand, and a parent that looks away.
 * The task is in 03_preforking/exercises/supervisor.md.
 * Manual pages: fork(2), waitpid(2), sigtimedwait(2), prctl(2) PR_SET_PDEATHSIG
 */
#include "children.h"
#include "classroom/exercises/plain.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

/* What the worker in a place needs before it can serve: here the file PLUGIN.3, in place 3, if
 * PLUGIN is in the environment. */
static bool prepare(int place)
{
    char path[4096];
    const char *plugin = getenv("PLUGIN");
    snprintf(path, sizeof(path), "%s.%d", plugin ? plugin : "", place);
    return !plugin || access(path, R_OK) == 0;
}

/* A worker's whole life. The check counts its first line. */
static _Noreturn void serve_clients(int listener, pid_t parent, int place)
{
    printf("worker %d begins in place %d\n", (int)getpid(), place);
    fflush(stdout);
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* no worker outlives the parent */
    if (getppid() != parent || !prepare(place))
        _exit(1);
    while (!stop_requested()) {
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0)
            plain_serve(client); /* owns client now, closes it */
        else
            net_handle_accept_error();
    }
    _exit(0);
}

/* Returns its process number; -1 if the machine has no process for it right now. */
static pid_t start_worker(int listener, int place)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        serve_clients(listener, parent, place);
    return pid;
}

/* The parent's whole life. As it is, children end and the parent never looks. */
static void supervise(int listener, int count)
{
    for (int i = 0; i < count; i++)
        start_worker(listener, i);
    while (!stop_requested())
        children_wait(TICK_MS);
}

int main(int argc, char **argv)
{
    struct options options = {.name = "supervisor", .workers = 4};
    options_parse(&options, argc, argv);
    process_start();
    int listener = net_listen(&options, true);

    stop_catch_signals(false); /* the workers inherit it */
    children_block_signal();
    net_announce(&options, listener);
    supervise(listener, options.workers); /* the workers end when the parent does */
    return 0;
}
