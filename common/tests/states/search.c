/* search: all sequences of events with a few mishaps, the short ones first. A sequence is played
 * from its beginning. At its end it is known how many events may follow, and each makes a longer
 * one. But if the state at its end was there before, with as many mishaps, nothing new can follow.
 *
 *    states_poll [MISHAPS]    in each scene of world.c at most so many
 */
#include "states.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LONGEST = 100,       /* sequence; with two mishaps it is 41 */
    SEQUENCES = 1 << 23, /* of a scene; with two mishaps it is 1.7 million */
    STATES = SEQUENCES,  /* places in the table; a page that is not used costs nothing */
    STORY = 1000,        /* sentences */
    ALARM_SECONDS = 20,
};

static int path[LONGEST]; /* what is chosen, */
static int path_len, at;  /* and how much of it has been */
bool search_is_free, search_is_over;
static int usual, followers; /* so many events may follow; the usual ones come first */
static int mishaps;          /* in the path */

static struct {
    const char *sentence, *who;
} story[STORY];
static int story_len;
static const char *scene_name;

/* The event `choice` behind another sequence. The first one is empty. */
static struct sequence {
    unsigned before;
    uint8_t choice, len, mishaps;
} sequences[SEQUENCES];
static unsigned count;

static uint64_t hash, states[STATES]; /* hashes; 0: a free place */
static unsigned states_count;

/* ---- states -------------------------------------------------------------------------------- */

void search_mix(uint64_t number)
{
    hash = (hash ^ number) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
}

static uint64_t *place_of(uint64_t state)
{
    size_t i = state % STATES;
    while (states[i] != 0 && states[i] != state)
        i = (i + 1) % STATES;
    return &states[i];
}

static bool is_new_state(void)
{
    hash = 1;
    kernel_mix();
    world_mix();
    tested_mix();
    for (int fewer = 0; fewer <= mishaps; fewer++)
        if (*place_of((hash | 1) + 2 * (uint64_t)fewer))
            return false;
    *place_of((hash | 1) + 2 * (uint64_t)mishaps) = (hash | 1) + 2 * (uint64_t)mishaps;
    must(++states_count < STATES / 2, "too many states");
    return true;
}

/* ---- one sequence -------------------------------------------------------------------------- */

int search_choose(int usual_ones, int of, bool asleep)
{
    if (search_is_free || search_is_over)
        return 0;
    if (at < path_len)
        return path[at++];
    search_is_over = true;
    usual = usual_ones;
    followers = asleep && !is_new_state() ? 0 : of;
    return 0;
}

void search_tell(const char *sentence, const char *who)
{
    if (story_len < STORY && !search_is_over) {
        story[story_len].sentence = sentence;
        story[story_len++].who = who;
    }
}

void search_found(const char *wrong)
{
    printf("%s, %s: %s\n", tested_name, scene_name, wrong);
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
    search_is_free = search_is_over = false;
    kernel_begin();
    world_begin(scene);
    tested_begin(password);
    int before = next_descriptor();
    tested_play();
    must(next_descriptor() == before, "a file stays open");
    must(kernel_connections() == 0, "a descriptor is open at the end");
}

/* ---- all of them --------------------------------------------------------------------------- */

static void add_sequence(unsigned before, int choice, int of_them_mishaps)
{
    must(count < SEQUENCES && path_len < LONGEST, "too many sequences, or too long ones");
    sequences[count++] = (struct sequence){before, (uint8_t)choice, (uint8_t)(path_len + 1),
                                           (uint8_t)of_them_mishaps};
}

static void every_state_has_a_way_out(const struct scene *scene, const char *password,
                                      int most_mishaps)
{
    memset(states, 0, sizeof(states));
    states_count = 0;
    sequences[0] = (struct sequence){0};
    count = 1;
    for (unsigned i = 0; i < count; i++) {
        path_len = sequences[i].len;
        mishaps = sequences[i].mishaps;
        for (unsigned s = i, n = (unsigned)path_len; n > 0; s = sequences[s].before)
            path[--n] = sequences[s].choice;
        play(scene, password);
        int most = mishaps < most_mishaps || usual > followers ? followers : usual;
        for (int choice = 0; choice < most; choice++)
            add_sequence(i, choice, mishaps + (choice >= usual));
    }
    printf("%s, %s, up to %d mishap%s: %u sequences of up to %d events, %u states ... ok\n",
           tested_name, scene_name, most_mishaps, most_mishaps == 1 ? "" : "s", count, path_len,
           states_count);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int most_mishaps = argc > 1 ? atoi(argv[1]) : 1;
    const struct scene *scene;
    const char *password;
    signal(SIGALRM, hang);
    signal(SIGSEGV, hang);
    for (int i = 0; (scene = world_scene(i, &scene_name, &password)); i++)
        every_state_has_a_way_out(scene, password, most_mishaps);
    return 0;
}
