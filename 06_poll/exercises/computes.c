/* Exercise 06/computes: who waits while a page computes?
 * The task is in 06_poll/exercises/computes.md.
 * Manual pages: fork(2), pthread_create(3), poll(2), epoll(7)
 */
#include <stdio.h>

struct guess {
    const char *server;
    int one_page;  /* one page is being computed, and the server has its default options */
    int two_pages; /* two are, and the four that have workers were started with --workers 2 */
};

static const struct guess guesses[] = {
    {"iterative", 0, 0},    {"forking", 0, 0}, {"preforking", 0, 0}, {"threading", 0, 0},
    {"prethreading", 0, 0}, {"poll", 0, 0},    {"epoll", 0, 0},
};

int main(void)
{
    for (size_t i = 0; i < sizeof(guesses) / sizeof(guesses[0]); i++)
        printf("%s %d %d\n", guesses[i].server, guesses[i].one_page, guesses[i].two_pages);
    return 0;
}
