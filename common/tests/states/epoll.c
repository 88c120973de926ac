/* states_epoll: chapter 7's loop. */
#define main chapter_main
int main(int, char **);
#include "../07_epoll/main.c"
#undef main

#define LOOP_NAME "epoll"
#define MOVED     watch_client
#include "tested.h"

static void open_loop(void)
{
    epoll = KERNEL_EPOLL;
    listener_interest = 0;
    must(set_interest(loop.signals, 0, EPOLLIN, &loop.signals), "epoll_ctl");
}
