/* Exercise 03/herd: four ways to sleep until a client comes. Which workers are woken?
 *
 * WAY=accept, flock, reuseport or poll in the environment chooses one of them.
 * The program is then a server with --workers workers that sleep in that way.
 * `herd predictions 5` prints your predictions for five workers. Leave the four ways
 * as they are: read them, and fill in the numbers.
 *
 * accept(2), flock(2), socket(7) SO_REUSEPORT, poll(2)
 */
#include "children.h"
#include "clock.h"
#include "net.h"
#include "options.h"
#include "process.h"
#include "redis_pool.h"
#include "serve.h"
#include "stop.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum way { ACCEPT, FLOCK, REUSEPORT, POLL, WAYS };
static const char *const way_names[WAYS] = {"accept", "flock", "reuseport", "poll"};

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
        [FLOCK] = {-1, -1},
        [REUSEPORT] = {-1, -1},
        [POLL] = {-1, -1},
    };
    (void)workers; /* a prediction may depend on it */
    return predictions[way];
}

static int lock_file; /* in memory, for FLOCK */

/* Each worker opens the file for itself. If it inherited the parent's descriptor, all workers would
 * hold the lock together. */
static int open_lock(void)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", lock_file);
    return open(path, O_RDWR | O_CLOEXEC);
}

/* Sleeps until a client comes. Returns its descriptor; -1 if another worker was quicker. */
static int next_client(enum way way, int listener, int lock)
{
    struct pollfd coming = {.fd = listener, .events = POLLIN}; /* a client is in the queue */
    if (way == FLOCK)
        flock(lock, LOCK_EX);
    if (way == POLL)
        poll(&coming, 1, -1); /* one descriptor, and no time limit */
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (way == FLOCK)
        flock(lock, LOCK_UN);
    return client;
}

static _Noreturn void work(enum way way, struct worker *worker, const struct redis_server *server,
                           pid_t parent)
{
    struct redis_pool redis;
    children_reset_signals();
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* no worker outlives the parent */
    int lock = open_lock();
    if (getppid() != parent || !redis_pool_open(&redis, server, 1))
        _exit(1);
    while (!stop_requested()) {
        int client = next_client(way, worker->listener, lock);
        if (client >= 0)
            serve_client(worker, client, &redis); /* owns client now, closes it */
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
        options_bad_value(name, "WAY", wanted, "accept, flock, reuseport or poll");
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
    struct options options;
    struct redis_server server;
    static struct board_slot slot; /* each worker has a copy of its own */
    if (argc == 3 && strcmp(argv[1], "predictions") == 0)
        return print_predictions(atoi(argv[2]));
    options_parse(&options, argc, argv, "herd", 4);
    enum way way = choose_way(options.name);
    lock_file = memfd_create("lock", MFD_CLOEXEC);
    process_start();
    app_start(&options);
    redis_find(&server, &options);
    stop_catch_signals(true);
    children_block_signal();
    struct worker worker = {
        .options = &options,
        .slot = &slot,
        .claim_waiting_clients = serve_waiting_clients,
        .listener = open_listener(&options, way),
    };
    net_announce(&options, worker.listener);
    pid_t parent = getpid();
    for (int i = 0; i < options.workers; i++) {
        if (way == REUSEPORT && i > 0)
            worker.listener = open_listener(&options, way); /* one for each worker */
        if (fork() == 0)
            work(way, &worker, &server, parent);
    }
    while (!stop_requested())
        children_wait(TICK_MS);
    return 0; /* the workers end when the parent does */
}
