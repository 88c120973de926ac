/* states_epoll: chapter 7's loop. */
#define main chapter_main
int main(int, char **);
#include "../07_epoll/main.c"
#undef main

#define LOOP_NAME "epoll"
#include "loop.h"

static void open_loop(void)
{
    epoll = KERNEL_EPOLL;
    accept_paused = false;
    must(set_interest(signals, 0, EPOLLIN, &signals) &&
             set_interest(listener, 0, EPOLLIN, &listener),
         "epoll_ctl");
}

static void mix_loop(void)
{
    struct conn *client;
    mix(accept_paused ? accept_paused_until - world_now : 0);
    for (int state = 0; state < CONN_STATES; state++)
        DL_FOREACH (waiting.queues[state], client)
            mix(((struct client *)client)->interest);
}
