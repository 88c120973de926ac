/* Exercise 03/herd: four ways to sleep until a client comes. Who is woken?
 *
 * WAY=accept, flock, reuseport or epoll in the environment chooses one; the
 * program is then a server with --workers of them. `herd predictions` prints
 * your predictions. The ways stay as they are: read them, and fill in the numbers.
 *
 * accept(2), flock(2), socket(7) SO_REUSEPORT, epoll_ctl(2)
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
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum way { ACCEPT, FLOCK, REUSEPORT, EPOLL, WAYS };
static const char *const way_names[WAYS] = {"accept", "flock", "reuseport", "epoll"};

/* Four workers sleep. Here: how many of them does a client's coming wake? And while that client is
 * served and stays, a hundred others come: how many of those have to wait until it leaves? */
static const struct {
    int woken, stuck;
} predictions[WAYS] = {
    [ACCEPT] = {-1, -1},
    [FLOCK] = {-1, -1},
    [REUSEPORT] = {-1, -1},
    [EPOLL] = {-1, -1},
};

static int lock_file; /* in memory, for FLOCK */

/* What a worker waits with. Opened by each for itself: a lock that is inherited is held by all. */
static int open_helper(enum way way, int listener)
{
    struct epoll_event coming = {.events = EPOLLIN};
    char path[32];
    int helper = -1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", lock_file);
    if (way == FLOCK)
        helper = open(path, O_RDWR | O_CLOEXEC);
    if (way == EPOLL && (helper = epoll_create1(EPOLL_CLOEXEC)) >= 0)
        epoll_ctl(helper, EPOLL_CTL_ADD, listener, &coming);
    return helper;
}

/* Sleeps until a client comes. Returns it; -1: another worker was quicker. */
static int next_client(enum way way, int listener, int helper)
{
    struct epoll_event coming;
    if (way == FLOCK)
        flock(helper, LOCK_EX);
    if (way == EPOLL)
        epoll_wait(helper, &coming, 1, -1);
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (way == FLOCK)
        flock(helper, LOCK_UN);
    return client;
}

static _Noreturn void work(enum way way, struct worker *worker, const struct redis_server *server,
                           pid_t parent)
{
    struct redis_pool redis;
    children_reset_signals();
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* no worker outlives the parent */
    int helper = open_helper(way, worker->listener);
    if (getppid() != parent || !redis_pool_open(&redis, server, 1))
        _exit(1);
    while (!stop_requested()) {
        int client = next_client(way, worker->listener, helper);
        if (client >= 0)
            serve_client(worker, client, &redis); /* owns client now, closes it */
    }
    _exit(0);
}

/* Without the tick of net_listen(), whose wakings would be counted, too. The port is the same each
 * time: the first listener's, if it is 0. */
static int open_listener(struct options *o, enum way way)
{
    const int on = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)o->port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t size = sizeof(address);
    int type = SOCK_STREAM | SOCK_CLOEXEC | (way == EPOLL ? SOCK_NONBLOCK : 0);
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
        options_bad_value(name, "WAY", wanted, "accept, flock, reuseport or epoll");
    return way;
}

int main(int argc, char **argv)
{
    struct options options;
    struct redis_server server;
    static struct board_slot slot; /* each worker has a copy of its own */
    if (argc == 2 && strcmp(argv[1], "predictions") == 0) {
        for (int way = 0; way < WAYS; way++)
            printf("%s: %d woken, %d stuck\n", way_names[way], predictions[way].woken,
                   predictions[way].stuck);
        return 0;
    }
    options_parse(&options, argc, argv, "herd", 4);
    enum way way = choose_way(options.name);
    lock_file = memfd_create("lock", MFD_CLOEXEC);
    app_start(&options);
    redis_start(&server, &options);
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
    return 0; /* the workers end when we do */
}
