/* Exercise 03/herd: three ways to sleep until a client comes. Which workers are woken?
 *
 *     WAY=poll herd --workers 5     a server whose workers sleep in that way
 *     herd predictions 5            prints your predictions for five workers
 *
 * Leave the three ways as they are.
 * The task is in 03_preforking/exercises/herd.md.
 * Manual pages: accept(2), socket(7) SO_REUSEPORT, poll(2)
 */
#include "children.h"
#include "classroom/exercises/plain.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

enum way { ACCEPT, REUSEPORT, POLL, WAYS };
static const char *const way_names[WAYS] = {"accept", "reuseport", "poll"};

struct prediction {
    int woken, stuck;
};

/* So many workers sleep, and a client connects. How many workers does that wake? The client is
 * served, and stays. A hundred others come meanwhile: how many of them must wait until the first
 * leaves? Here: what are your predictions? -1 is none. */
static struct prediction predict(enum way way, int workers)
{
    const struct prediction predictions[WAYS] = {
        [ACCEPT] = {-1, -1},
        [REUSEPORT] = {-1, -1},
        [POLL] = {-1, -1},
    };
    (void)workers; /* a prediction may depend on it */
    return predictions[way];
}

/* Sleeps until a client comes. Returns its descriptor; -1 if another worker was quicker. */
static int next_client(enum way way, int listener)
{
    struct pollfd coming = {.fd = listener, .events = POLLIN}; /* a client is in the queue */
    if (way == POLL)
        poll(&coming, 1, -1); /* one descriptor, and no time limit */
    return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}

static _Noreturn void work(enum way way, int listener, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* no worker outlives the parent */
    if (getppid() != parent)
        _exit(1);
    while (!stop_requested()) {
        int client = next_client(way, listener);
        if (client >= 0)
            plain_serve(client); /* owns client now, closes it */
    }
    _exit(0);
}

/* Unlike net_listen(), without the tick, because the check would count its wake-ups too. With POLL
 * the socket does not block: a worker that finds no client goes back to poll(). If the port is 0,
 * the first call chooses one, and later calls take the same. */
static int open_listener(struct options *o, enum way way)
{
    const int on = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)o->port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t size = sizeof(address);
    int type = SOCK_STREAM | SOCK_CLOEXEC | (way == POLL ? SOCK_NONBLOCK : 0);
    int listener = socket(AF_INET, type, 0);
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0 ||
        bind(listener, (struct sockaddr *)&address, size) < 0 || listen(listener, o->backlog) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) < 0)
        process_die(o->name, "cannot listen: %s", strerror(errno));
    o->port = ntohs(address.sin_port);
    return listener;
}

/* The way that the environment asks for. */
static enum way choose_way(const char *name)
{
    enum way way = ACCEPT;
    const char *wanted = getenv("WAY");
    while (wanted && way < WAYS && strcmp(wanted, way_names[way]) != 0)
        way++;
    if (way == WAYS)
        options_bad_value(name, "WAY", wanted, "accept, reuseport or poll");
    return way;
}

static int print_predictions(int workers)
{
    for (enum way way = 0; way < WAYS; way++) {
        struct prediction mine = predict(way, workers);
        printf("%s: %d woken, %d stuck\n", way_names[way], mine.woken, mine.stuck);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct options options = {.name = "herd", .workers = 4};
    if (argc == 3 && strcmp(argv[1], "predictions") == 0)
        return print_predictions(atoi(argv[2]));
    options_parse(&options, argc, argv);
    enum way way = choose_way(options.name);
    process_start();
    stop_catch_signals(false); /* the workers inherit it */
    children_block_signal();
    int listener = open_listener(&options, way);
    net_announce(&options, listener);
    pid_t parent = getpid();
    for (int i = 0; i < options.workers; i++) {
        if (way == REUSEPORT && i > 0)
            listener = open_listener(&options, way); /* one for each worker */
        if (fork() == 0)
            work(way, listener, parent);
    }
    while (!stop_requested())
        children_wait(TICK_MS);
    return 0; /* the workers end when the parent does */
}
