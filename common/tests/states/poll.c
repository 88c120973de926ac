/* states_poll: chapter 6's loop. */
#define main chapter_main
int main(int, char **);
#include "../06_poll/main.c"
#undef main

#define LOOP_NAME "poll"
#include "loop.h"

static void open_loop(void)
{
    grow_arrays(CLIENTS);
    accept_paused_until = 0;
}

static void mix_loop(void)
{
    mix(accept_paused_until > world_now ? accept_paused_until - world_now : 0);
}
