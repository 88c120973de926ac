/* search: all sequences of events with a few mishaps, the short ones first. A sequence is played
 * from its beginning. At its end it is known how many events may follow, and each makes a longer
 * one. But if the state at its end was there before, with as many mishaps, nothing new can follow.
 *
 *    states_poll [MISHAPS [EVENTS]]    in each scene of world.c at most so many
 */
#include "states.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST = 100, STORY = 1000, ALARM_SECONDS = 20 };

static int path[LONGEST]; /* what is chosen, */
static int path_len, at;  /* and how much of it has been */
static bool free_run, over;
static int usual, followers; /* so many events may follow; the usual ones come first */
static int mishaps;          /* in the path */

static struct {
    const char *sentence, *who;
} story[STORY];
static int story_len;
static const char *scene_name;

/* ---- sequences ----------------------------------------------------------------------------- */

/* The event `choice` behind another sequence. The first one is empty. */
static struct sequence {
    unsigned before;
    uint8_t choice, len, mishaps;
} * sequences;
static unsigned count, room;

static void *grow(void *old, size_t count_of, size_t size)
{
    void *new = reallocarray(old, count_of, size);
    if (!new)
        exit(2);
    return new;
}

static void add_sequence(unsigned before, int choice, int len, int of_them_mishaps)
{
    if (count == room)
        sequences = grow(sequences, room = 2 * room + 1024, sizeof(*sequences));
    sequences[count++] =
        (struct sequence){before, (uint8_t)choice, (uint8_t)len, (uint8_t)of_them_mishaps};
}

static void write_path(unsigned sequence)
{
    path_len = sequences[sequence].len;
    mishaps = sequences[sequence].mishaps;
    for (int i = path_len; i > 0; sequence = sequences[sequence].before)
        path[--i] = sequences[sequence].choice;
}

/* ---- states -------------------------------------------------------------------------------- */

static uint64_t hash;
static uint64_t *states; /* hashes, in a table; 0: a free place */
static size_t states_count, states_room;

void search_mix(uint64_t number)
{
    hash = (hash ^ number) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
}

static uint64_t *place_of(uint64_t state)
{
    size_t i = state % states_room;
    while (states[i] != 0 && states[i] != state)
        i = (i + 1) % states_room;
    return &states[i];
}

static void make_room_for_states(void)
{
    uint64_t *old = states;
    size_t old_room = states_room;
    states_room = 2 * states_room + 1023;
    states = calloc(states_room, sizeof(*states));
    if (!states)
        exit(2);
    for (size_t i = 0; i < old_room; i++)
        if (old[i])
            *place_of(old[i]) = old[i];
    free(old);
}

static bool is_new_state(void)
{
    hash = 1;
    kernel_mix();
    world_mix();
    loop_mix();
    if (2 * states_count >= states_room)
        make_room_for_states();
    for (int fewer = 0; fewer < mishaps; fewer++)
        if (*place_of((hash | 1) + 2 * (uint64_t)fewer))
            return false;
    uint64_t state = (hash | 1) + 2 * (uint64_t)mishaps, *place = place_of(state);
    bool new = *place == 0;
    *place = state;
    states_count += new;
    return new;
}

/* ---- one sequence -------------------------------------------------------------------------- */

int search_choose(int usual_ones, int of)
{
    if (free_run || over)
        return 0;
    if (at < path_len)
        return path[at++];
    over = true;
    usual = usual_ones;
    followers = of;
    return 0;
}

int search_choose_asleep(int usual_ones, int of)
{
    bool ends = at == path_len;
    int choice = search_choose(usual_ones, of);
    if (ends && !is_new_state())
        followers = 0;
    return choice;
}

void search_let_go(void)
{
    free_run = true;
}

void search_stop(void)
{
    over = true;
}

bool search_is_over(void)
{
    return over;
}

void search_tell(const char *sentence, const char *who)
{
    if (story_len < STORY && !over) {
        story[story_len].sentence = sentence;
        story[story_len++].who = who;
    }
}

void search_found(const char *wrong)
{
    printf("%s, %s: %s\n", loop_name, scene_name, wrong);
    for (int i = 0; i < story_len; i++) {
        printf("%3d. ", i + 1);
        printf(story[i].sentence, story[i].who);
        printf("\n");
    }
    fflush(stdout);
    _exit(1);
}

static void hang(int signal)
{
    (void)signal;
    search_found("it crashes, or a round has no end");
}

/* The real one that is free. */
static int next_descriptor(void)
{
    int fd = dup(STDIN_FILENO);
    close(fd);
    return fd;
}

static void play(const struct scene *scene, const char *password)
{
    alarm(ALARM_SECONDS);
    at = followers = story_len = 0;
    free_run = over = false;
    kernel_begin();
    world_begin(scene);
    loop_begin(password);
    int before = next_descriptor();
    while (!over && !loop_is_over())
        loop_round();
    over = true;
    loop_end();
    must(next_descriptor() == before, "a file stays open");
    must(kernel_connections() == 0, "a descriptor is open at the end");
}

/* ---- all of them --------------------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void search(const struct scene *scene, const char *password, int most_mishaps, int longest)
{
    double began = seconds();
    count = 0;
    states_count = 0;
    memset(states, 0, states_room * sizeof(*states));
    add_sequence(0, 0, 0, 0);
    for (unsigned i = 0; i < count; i++) {
        write_path(i);
        play(scene, password);
        int most = mishaps < most_mishaps ? followers : usual;
        for (int choice = 0; choice < most && choice < followers && path_len < longest; choice++)
            add_sequence(i, choice, path_len + 1, mishaps + (choice >= usual));
    }
    printf("%s, %s, up to %d mishap%s: %u sequences of up to %d events, %zu states, %.1f s\n",
           loop_name, scene_name, most_mishaps, most_mishaps == 1 ? "" : "s", count, path_len,
           states_count, seconds() - began);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int most_mishaps = argc > 1 ? atoi(argv[1]) : 1;
    int longest = argc > 2 ? atoi(argv[2]) : LONGEST;
    const struct scene *scene;
    const char *password;
    if (most_mishaps < 0 || longest < 1 || longest > LONGEST)
        return 2;
    signal(SIGALRM, hang);
    signal(SIGSEGV, hang);
    make_room_for_states();
    for (int i = 0; (scene = world_scene(i, &scene_name, &password)); i++)
        search(scene, password, most_mishaps, longest);
    return 0;
}
