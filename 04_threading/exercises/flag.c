/* Exercise 04/flag: visitors wait until the door is open, and a thread serves each of them.
 * The task is in 04_threading/exercises/flag.md.
 * Manual pages: pthread_mutex_lock(3), pthread_cond_wait(3)
 */
#include "classroom/exercises/each.h"
#include "options.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

static int number_on_door;
static bool is_open; /* once it is, it stays open; but the number may change */

static void open_door(int number)
{
    number_on_door = number;
    is_open = true;
}

/* Waits until the door is open, and reads the number on it. */
static int wait_at_door(void)
{
    while (!is_open)
        ;
    return number_on_door;
}

static void answer(int client, const char *request)
{
    char body[32];
    int number;
    if (sscanf(request, "GET /open/%d ", &number) == 1)
        open_door(number);
    else
        number = wait_at_door();
    snprintf(body, sizeof(body), "%d\n", number);
    plain_send(client, "200 OK", body);
}

int main(int argc, char **argv)
{
    struct options options = {.name = "flag"};
    options_parse(&options, argc, argv);
    each_run(&options, answer);
    return 0;
}
