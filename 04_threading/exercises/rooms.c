/* Exercise 04/rooms: eight rooms with visitors, and a thread for every client.
 * The task is in 04_threading/exercises/rooms.md. Manual pages: pthread_mutex_lock(3), gdb(1)
 */
#include "classroom/exercises/each.h"
#include "options.h"

#include <pthread.h>
#include <stdio.h>

enum { ROOMS = 8, VISITORS = 10, BODY_BYTES = 128 };

static struct room {
    pthread_mutex_t lock;
    int visitors; /* read and written with `lock` held */
} rooms[ROOMS];

/* Nobody may see that a visitor has left one room and has not come to the other, so both are
 * locked. */
static void move(int from, int to, char body[BODY_BYTES])
{
    pthread_mutex_lock(&rooms[from].lock);
    pthread_mutex_lock(&rooms[to].lock);
    if (rooms[from].visitors > 0) {
        rooms[from].visitors--;
        rooms[to].visitors++;
    }
    snprintf(body, BODY_BYTES, "Room %d has %d visitors, room %d has %d.\n", from,
             rooms[from].visitors, to, rooms[to].visitors);
    pthread_mutex_unlock(&rooms[to].lock);
    pthread_mutex_unlock(&rooms[from].lock);
}

/* This is the sum of one moment, so all rooms are locked. */
static void count(char body[BODY_BYTES])
{
    int sum = 0;
    for (int i = 0; i < ROOMS; i++)
        pthread_mutex_lock(&rooms[i].lock);
    for (int i = 0; i < ROOMS; i++)
        sum += rooms[i].visitors;
    for (int i = 0; i < ROOMS; i++)
        pthread_mutex_unlock(&rooms[i].lock);
    snprintf(body, BODY_BYTES, "All rooms have %d visitors.\n", sum);
}

static void answer(int client, const char *request)
{
    char body[BODY_BYTES];
    int from, to;
    if (sscanf(request, "GET /%d/%d ", &from, &to) == 2 && from >= 0 && from < ROOMS && to >= 0 &&
        to < ROOMS)
        move(from, to, body);
    else
        count(body);
    plain_send(client, "200 OK", body);
}

int main(int argc, char **argv)
{
    struct options options = {.name = "rooms"};
    options_parse(&options, argc, argv);
    for (int i = 0; i < ROOMS; i++) {
        pthread_mutex_init(&rooms[i].lock, NULL);
        rooms[i].visitors = VISITORS;
    }
    each_run(&options, answer);
    return 0;
}
