/* Exercise 05/p99: one thread accepts, four threads serve, and a queue connects them.
 * The task is in 05_prethreading/exercises/p99.md.
 * Manual pages: pthread_cond_wait(3), recv(2) MSG_PEEK, tcp(7) TCP_DEFER_ACCEPT
 */
#include "classroom/exercises/team.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

/* Does this client want a page? Looks at its request and leaves it in the socket. */
static bool wants_page(int client)
{
    static const char page[] = "GET /guestbook";
    char begin[sizeof(page) - 1];
    ssize_t n = recv(client, begin, sizeof(begin), MSG_PEEK | MSG_DONTWAIT);
    return n == (ssize_t)sizeof(begin) && memcmp(begin, page, sizeof(begin)) == 0;
}

/* False if there is no memory for it. */
static bool put(int client)
{
    bool page = wants_page(client);
    pthread_mutex_lock(&queue.lock);
    struct visit *visit = queue_add(client);
    if (visit)
        visit->wants_page = page;
    pthread_mutex_unlock(&queue.lock);
    pthread_cond_signal(&queue.changed);
    return visit;
}

/* The next client, as soon as there is one. -1: no more will come. */
static int take(void)
{
    pthread_mutex_lock(&queue.lock);
    while (STAILQ_EMPTY(&queue.visits) && !queue.closed)
        pthread_cond_wait(&queue.changed, &queue.lock);
    int client = queue_remove();
    pthread_mutex_unlock(&queue.lock);
    return client;
}

int main(int argc, char **argv)
{
    const int seconds = 1; /* accept4() leaves out who has said nothing, for so long */
    team_start(argc, argv, "p99", take);
    setsockopt(team.own->listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof(seconds));
    team_accept(put);
    return team_end();
}
