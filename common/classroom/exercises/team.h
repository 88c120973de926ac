/* team: how the exercises of chapter 5 begin. The main thread accepts, a team of threads serves, a
 * queue connects them, and all share a pool of connections to Redis. Who comes into the queue, who
 * is next, and who is woken is the exercise itself.
 *
 * An exercise is one file, so it includes the code along with the declarations.
 */
#ifndef EXERCISES_TEAM_H
#define EXERCISES_TEAM_H

#include "app.h"
#include "net.h"
#include "options.h"
#include "process.h"
#include "redis_pool.h"
#include "serve.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

enum { WORKERS = 4 };

static struct {
    struct options options;
    struct redis_server server;
    struct board *board;
    struct redis_pool redis; /* locks itself */
    int (*take)(void);
    pthread_t threads[WORKERS];
    struct worker workers[WORKERS + 1];
    struct worker *own; /* the main thread's, behind those of the threads */
} team;

/* A client that waits for a worker. */
struct visit {
    int client;
    bool wants_page; /* for 05/p99 */
    STAILQ_ENTRY(visit) next;
};

/* All of them, in the order in which they came. Read and written with `lock` held. */
static struct {
    STAILQ_HEAD(, visit) visits;
    bool closed; /* no more clients will come */
    pthread_mutex_t lock;
    pthread_cond_t changed;
} queue = {
    .visits = STAILQ_HEAD_INITIALIZER(queue.visits),
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER,
};

/* With the lock held: puts a client at the queue's end. NULL if there is no memory for it. */
static inline struct visit *queue_add(int client)
{
    struct visit *visit = calloc(1, sizeof(*visit));
    if (visit) {
        visit->client = client;
        STAILQ_INSERT_TAIL(&queue.visits, visit, next);
    }
    return visit;
}

/* With the lock held: takes the first client out of the queue. -1 if it is empty. */
static inline int queue_remove(void)
{
    struct visit *visit = STAILQ_FIRST(&queue.visits);
    int client = visit ? visit->client : -1;
    if (visit)
        STAILQ_REMOVE_HEAD(&queue.visits, next);
    free(visit);
    return client;
}

/* A thread's whole life. */
static inline void *team_serve(void *worker)
{
    int client;
    while ((client = team.take()) >= 0)
        serve_client(worker, client, &team.redis); /* owns client now, closes it */
    return NULL;
}

/* Makes a server of that name with WORKERS threads. Each calls `take` for its next client, until
 * that returns -1. It listens, and the main thread takes all signals. If something fails, prints
 * one line and ends. */
static inline void team_start(int argc, char **argv, const char *name, int (*take)(void))
{
    sigset_t all, before;
    team.take = take;
    team.options.name = name;
    options_parse(&team.options, argc, argv);
    team.board = app_start(&team.options, &team.server, WORKERS + 1, "threads fed by a queue");
    redis_pool_open(&team.redis, &team.server, WORKERS);
    int listener = net_listen(&team.options, true);
    stop_catch_signals(true);
    team.own = &team.workers[WORKERS];
    for (struct worker *worker = team.workers; worker <= team.own; worker++)
        *worker = (struct worker){
            .options = &team.options,
            .board = team.board,
            .slot = board_claim(team.board, getpid()),
            .listener = listener,
            .count_waiting = serve_waiting_in_queue,
        };
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the threads inherit it */
    for (int i = 0; i < WORKERS; i++)
        if (pthread_create(&team.threads[i], NULL, team_serve, &team.workers[i]) != 0)
            process_die(name, "cannot create %d threads", WORKERS);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    net_announce(&team.options, listener);
}

/* The main thread's work, until the signal to stop. `put` returns false if it does not take a
 * client. */
static inline void team_accept(bool (*put)(int client))
{
    while (!stop_requested()) {
        int client = accept4(team.own->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0)
            net_handle_accept_error();
        else if (!put(client))
            serve_unavailable(team.own, client); /* 503; owns client now, closes it */
    }
}

/* Closes the queue, waits for all threads, and prints the last line. Returns the exit status. */
static inline int team_end(void)
{
    close(team.own->listener);
    pthread_mutex_lock(&queue.lock);
    queue.closed = true;
    pthread_mutex_unlock(&queue.lock);
    pthread_cond_broadcast(&queue.changed);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(team.threads[i], NULL);
    process_report(&team.options, board_requests(team.board), board_connections(team.board));
    return 0;
}

#endif
