/* Exercise 06/slope: how much is looked at for one request?
 *
 * This is no server. It holds your guesses about chapters 6 and 7. Some clients
 * are connected and silent. One more client asks for a small file, reads it, and
 * asks again, a hundred times over the same connection.
 *
 * Here: write what each of these requests costs:
 *    poll(fds, nfds, ms)             how many entries it gets
 *    epoll_wait(...) = count         how many events it returns
 * The servers know of a Redis, but a file does not need it.
 *
 * poll(2), epoll_wait(2), and build_fds() in 06_poll/main.c
 */
#include <stdio.h>

struct guess {
    const char *server;
    int silent;    /* clients */
    int a_request; /* entries, or events */
};

static const struct guess guesses[] = {
    {"poll", 10, 0},
    {"poll", 500, 0},
    {"epoll", 10, 0},
    {"epoll", 500, 0},
};

int main(void)
{
    for (size_t i = 0; i < sizeof(guesses) / sizeof(guesses[0]); i++)
        printf("%s %d %d\n", guesses[i].server, guesses[i].silent, guesses[i].a_request);
    return 0;
}
