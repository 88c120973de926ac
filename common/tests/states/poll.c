/* states_poll: chapter 6's loop. */
#define main chapter_main
int main(int, char **);
#include "../06_poll/main.c"
#undef main

#define LOOP_NAME "poll"
#define MOVED     NULL
#include "tested.h"

static void open_loop(void)
{
    grow_arrays(CLIENTS);
}
