/* Exercise 02/zombies: a process for every connection, and a table of them.
 * The task is in 02_forking/exercises/zombies.md.
 * Manual pages: fork(2), waitpid(2), sigaction(2)
 */
#include "classroom/exercises/plain.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

static volatile pid_t *children; /* the table: --workers places; 0: a free one */
static int places;

/* Reaps the children that have ended. One signal may stand for many of them, so it asks for each.
 * WNOHANG: a handler must not sleep. The call that it interrupted finds its errno as it was. */
static void reap(int signal_number)
{
    (void)signal_number;
    int before = errno;
    for (int i = 0; i < places; i++)
        if (children[i] > 0 && waitpid(children[i], NULL, WNOHANG) == children[i])
            children[i] = 0;
    errno = before;
}

/* A place in the table; -1: all are taken. */
static int free_place(void)
{
    for (int i = 0; i < places; i++)
        if (children[i] == 0)
            return i;
    return -1;
}

static _Noreturn void serve_in_child(int listener, int client)
{
    close(listener);     /* only the parent accepts */
    plain_serve(client); /* owns client now, closes it */
    _exit(0);
}

static void fork_child(int listener, int client)
{
    int place = free_place();
    pid_t pid = place < 0 ? -1 : fork();
    if (pid == 0)
        serve_in_child(listener, client);
    if (pid < 0) {
        plain_refuse(client); /* no room, or no process: 503; owns client now */
        return;
    }
    children[place] = pid; /* the handler will reap it */
    close(client);         /* the child has a copy */
}

int main(int argc, char **argv)
{
    struct options options = {.name = "zombies", .workers = 256};
    options_parse(&options, argc, argv);
    process_start();
    places = options.workers;
    children = calloc((size_t)places, sizeof(*children));
    if (!children)
        process_die(options.name, "cannot start: %s", strerror(errno));
    int listener = net_listen(&options, true);

    struct sigaction ended = {.sa_handler = reap, .sa_flags = SA_RESTART | SA_NOCLDSTOP};
    sigaction(SIGCHLD, &ended, NULL);
    stop_catch_signals(true);
    net_announce(&options, listener);
    while (!stop_requested()) {
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0)
            fork_child(listener, client);
        else
            net_handle_accept_error();
    }
    return 0;
}
