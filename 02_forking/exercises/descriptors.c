/* Exercise 02/descriptors: a process for every connection, and one that counts.
 * The task is in 02_forking/exercises/descriptors.md.
 * Manual pages: fork(2), close(2), pipe(2), listen(2)
 */
#include "classroom/exercises/plain.h"

#include <fcntl.h>
#include <signal.h>

static int listener;
static int served[2]; /* a pipe: what is written to served[1] can be read from served[0] */

/* The counter's whole life: it reads until the pipe ends, and prints the sum. */
static _Noreturn void count_visitors(void)
{
    char bytes[64];
    long visitors = 0;
    ssize_t n;
    signal(SIGINT, SIG_IGN); /* Ctrl-C is for the parent, and we are to end after it */
    while ((n = read(served[0], bytes, sizeof(bytes))) > 0)
        visitors += n;
    printf("%ld visitors\n", visitors);
    fflush(stdout);
    _exit(0);
}

/* A child's whole life: one visitor, and one byte. */
static _Noreturn void serve_in_child(int client)
{
    close(listener);     /* only the parent accepts */
    plain_serve(client); /* owns client now, closes it */
    _exit(write(served[1], ".", 1) == 1 ? 0 : 1);
}

static void fork_child(int client)
{
    pid_t pid = fork();
    if (pid == 0)
        serve_in_child(client);
    if (pid < 0)
        plain_refuse(client); /* no process left: 503; owns client now, closes it */
    else
        close(client); /* the child has a copy */
}

static void start_counter(const struct options *options)
{
    pid_t pid = pipe2(served, O_CLOEXEC) == 0 ? fork() : -1;
    if (pid < 0)
        process_die(options->name, "no counter: %s", strerror(errno));
    if (pid == 0)
        count_visitors();
    close(served[0]); /* only the counter reads */
}

int main(int argc, char **argv)
{
    struct options options = {.name = "descriptors"};
    options_parse(&options, argc, argv);
    process_start();
    listener = net_listen(&options, true);
    start_counter(&options);

    signal(SIGCHLD, SIG_IGN); /* the kernel keeps no zombies for us */
    stop_catch_signals(true);
    net_announce(&options, listener);
    while (!stop_requested()) {
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0)
            fork_child(client);
        else
            net_handle_accept_error();
    }
    return 0;
}
