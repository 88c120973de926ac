/* team: how the exercises of chapter 5 begin. The main thread accepts, a team of threads serves,
 * and all share a pool of connections to Redis. The queue between them is the exercise itself.
 *
 * An exercise is one file, so it includes the code along with the declarations.
 */
#ifndef EXERCISES_TEAM_H
#define EXERCISES_TEAM_H

#include "board.h"
#include "net.h"
#include "options.h"
#include "process.h"
#include "redis_pool.h"
#include "serve.h"
#include "start.h"
#include "stop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { TEAM_MOST = 64 };

struct team {
    struct options options;
    struct redis_server server;
    struct board *board;
    struct redis_pool redis; /* locks itself */
    pthread_t threads[TEAM_MOST];
    struct worker workers[TEAM_MOST + 1];
    struct worker *own; /* the main thread's, behind those of the threads */
};

/* Makes a server of that name with so many threads, each of which calls `serve` with its worker. It
 * listens, and the main thread takes all signals. If something fails, prints one line and ends. */
static inline void team_start(struct team *team, int argc, char **argv, const char *name, int size,
                              void *(*serve)(void *))
{
    sigset_t all, before;
    options_parse(&team->options, argc, argv, name, 0);
    team->board = start_server(&team->options, &team->server, size + 1, STATUS_THREADS,
                               "threads fed by a queue");
    if (!redis_pool_open(&team->redis, &team->server, size))
        process_die(name, "cannot start: %s", strerror(errno));
    int listener = net_listen(&team->options, true);
    stop_catch_signals(true);
    team->own = &team->workers[size];
    for (struct worker *worker = team->workers; worker <= team->own; worker++)
        *worker = (struct worker){
            .options = &team->options,
            .slot = board_claim(team->board, getpid()),
            .claim_waiting_clients = serve_waiting_clients,
            .listener = listener,
        };
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the threads inherit it */
    for (int i = 0; i < size; i++)
        if (pthread_create(&team->threads[i], NULL, serve, &team->workers[i]) != 0)
            process_die(name, "cannot create %d threads", size);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    net_announce(&team->options, listener);
}

/* Prints the last line. All threads have ended. */
static inline void team_report(const struct team *team)
{
    process_report(&team->options, board_requests(team->board), board_connections(team->board));
}

#endif
