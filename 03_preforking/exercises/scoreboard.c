/* Exercise 03/scoreboard: workers made beforehand, and how many of them are busy.
 * The task is in 03_preforking/exercises/scoreboard.md.
 * Manual pages: fork(2), waitpid(2)
 */
#include "children.h"
#include "classroom/exercises/plain.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static pid_t *workers; /* the processes, by their number from 0; only the parent's */
static int busy;       /* how many workers have a client right now; but in which process is this? */

/* Worker `number`'s whole life. When it has died, its successor gets the number. */
static _Noreturn void serve_clients(int listener, pid_t parent, int number)
{
    char name[24];
    snprintf(name, sizeof(name), "worker %d", number);
    prctl(PR_SET_NAME, name);         /* shown by ps(1); the kernel keeps 15 bytes */
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* no worker outlives the parent */
    if (getppid() != parent)
        _exit(1);
    while (!stop_requested()) {
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0) {
            net_handle_accept_error();
            continue;
        }
        busy++;
        plain_serve(client); /* owns client now, closes it */
        busy--;
    }
    _exit(0);
}

/* In the parent: makes worker `number`, the first one or the next. */
static void start_worker(int listener, int number)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        serve_clients(listener, parent, number);
    workers[number] = pid;
}

/* In the parent: reaps the workers that have died, and replaces them. */
static void replace_the_dead(int listener, int count)
{
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        for (int number = 0; number < count; number++)
            if (workers[number] == pid) {
                start_worker(listener, number);
                break;
            }
}

/* In the parent: prints how many workers are busy, if that has changed. */
static void say_busy(void)
{
    static int said = -1;
    if (said == busy)
        return;
    said = busy;
    printf("busy: %d\n", said);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct options options = {.name = "scoreboard", .workers = 4};
    options_parse(&options, argc, argv);
    process_start();
    int listener = net_listen(&options, true);

    workers = calloc((size_t)options.workers, sizeof(*workers));
    if (!workers)
        process_die(options.name, "no memory");
    stop_catch_signals(false); /* the workers inherit it */
    children_block_signal();
    net_announce(&options, listener);
    for (int number = 0; number < options.workers; number++)
        start_worker(listener, number);
    while (!stop_requested()) {
        replace_the_dead(listener, options.workers);
        say_busy();
        children_wait(TICK_MS / 4);
    }
    return 0; /* the workers end when the parent does */
}
