/* Exercise 06/slope: how much is looked at for one request?
 *
 * This is no server. It holds your guesses about chapters 6 and 7. Some clients
 * are connected and silent. One more client asks for a small file, reads it, and
 * asks again, a hundred times over the same connection.
 *
 * Here: write what each of these requests costs, for any number of silent clients:
 *    poll(fds, nfds, ms)             how many entries it gets
 *    epoll_wait(...) = count         how many events it returns
 * The servers know of a Redis, but a file does not need it.
 *
 * poll(2), epoll_wait(2), and build_fds() in 06_poll/main.c
 */
#include <stdio.h>
#include <stdlib.h>

static int entries_for_poll(int silent)
{
    (void)silent;
    return 0;
}

static int events_from_epoll(int silent)
{
    (void)silent;
    return 0;
}

int main(int argc, char **argv)
{
    int silent = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 10; /* clients */
    printf("poll %d\nepoll %d\n", entries_for_poll(silent), events_from_epoll(silent));
    return 0;
}
