/* Chapter 1: iterative. One process, one client at a time.
 *
 * The model: accept a client, serve it to the end, close it, accept the next.
 *
 * What blocks whom: every client blocks all others. serve_client() sleeps in
 * recv() for the client's bytes, in send() for room, and until Redis replies.
 * Meanwhile no other client is served. They wait in the kernel's accept queue.
 * Their handshakes are finished, so they believe that they are being served.
 *
 * What it costs: no process, no thread and no memory for each client.
 *
 * accept4(2), listen(2), socket(7)
 */
#include "app.h"
#include "net.h"
#include "process.h"
#include "serve.h"

#include <sys/socket.h>
#include <unistd.h>

/* Until the server is asked to stop: waits for a client, and serves it to the end
 * before it accepts another. accept4() returns without a client after a tick (see
 * net_listen), so that a signal is not overlooked for longer than that. */
static void serve_everybody(struct worker *worker, struct redis_pool *redis)
{
    while (!stop_requested()) {
        int client = accept4(worker->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0)
            serve_client(worker, client, redis); /* owns client now, closes it */
        else
            net_handle_accept_error(); /* a tick, a signal, a client that has left: weather */
    }
}

int main(int argc, char **argv)
{
    struct options options = {.name = "iterative"};
    struct redis_server server;
    struct redis_pool redis; /* a pool of one connection, opened when first needed */

    options_parse(&options, argc, argv);
    struct board *board = app_start(&options, &server, 1, "one process, one client at a time");
    struct worker worker = {
        .options = &options,
        .board = board,
        .slot = board_claim(board, getpid()),
        .listener = net_listen(&options, true),
        .count_waiting = serve_waiting_in_queue,
    };
    stop_catch_signals(true);
    redis_pool_open(&redis, &server, 1);
    net_announce(&options, worker.listener);

    serve_everybody(&worker, &redis);

    close(worker.listener);
    redis_pool_close(&redis);
    process_report(&options, board_requests(board), board_connections(board));
    return 0;
}
