/* Exercise 04/flag: visitors wait until the door is open, and a thread serves each of them.
 *
 * GET /open/42 writes the number 42 on the door, and opens it. GET / waits until the
 * door is open, and answers with the number on it. A visitor who comes when the door is
 * open is answered at once. But visitors who have come before wait for ever, and each of
 * them keeps a core busy.
 *
 * pthread_mutex_lock(3), pthread_cond_wait(3)
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
    each_send(client, "200 OK", body);
}

int main(int argc, char **argv)
{
    struct options options;
    options_parse(&options, argc, argv, "flag", 0);
    each_run(&options, answer);
    return 0;
}
