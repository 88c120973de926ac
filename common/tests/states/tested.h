/* tested: what chapters 6 and 7 have in common for states.h. Their main.c is included above, and
 * below stands what only one of them has. */
#include "process.h"
#include "tests/states/states.h"

#include <poll.h>
#include <utlist.h>

const char *const tested_name = LOOP_NAME;

static struct options options = {
    .root = ".", .redis = "unix:made-up", .keep_alive_ms = 5000, .timeout_ms = 10000};
static struct redis_server server;

static void open_loop(void);

/* What main() does before its loop. The number of connections to Redis goes on from run to run,
 * since watch_redis() remembers it. */
void tested_begin(const char *password)
{
    static struct board *board;
    unsigned opened = loop.redis.opened;
    if (!board) {
        options.name = tested_name;
        process_start();
        app_load(&options);
        server = (struct redis_server){.connect_ms = options.timeout_ms / CONNECT_PART,
                                       .command_ms = options.timeout_ms / REDIS_PART};
        static char where[] = "unix:made-up";
        redis_parse_address(&server, where);
        board = board_open(1);
    }
    server.password = password;
    loop = (struct loop){.worker = {.options = &options,
                                    .board = board,
                                    .slot = board_claim(board, 1),
                                    .listener = KERNEL_LISTENER,
                                    .count_waiting = loop_count_waiting},
                         .signals = KERNEL_SIGNALS,
                         .moved = MOVED};
    loop_start(&loop, &server);
    loop.redis.opened = opened + 1;
    open_loop();
}

/* What main() does with the loop. */
void tested_play(void)
{
    while (!search_is_over && !loop_is_over(&loop))
        run_once();
    search_is_over = true;
    loop_close(&loop);
    for (int state = 0; state < CONN_STATES; state++)
        must(loop.worker.slot->connections_by_state[state] == 0,
             "a connection is left on the board");
    board_release(loop.worker.slot);
}

/* ---- between two rounds -------------------------------------------------------------------- */

/* Every state has a way out: a time at which it is over. What wakes the loop up, world.c finds out.
 */
void tested_check(int timeout)
{
    struct client *client;
    for (unsigned state = 0; state < CONN_STATES; state++)
        DL_FOREACH (loop.queues[state], client) {
            const struct conn *c = &client->conn;
            short wanted = state == CONN_WRITING ? POLLOUT : c->ended ? 0 : POLLIN;
            must(state == CONN_ASKING || kernel_watches(c->fd) == wanted,
                 "the loop does not hear what a client waits for");
            must(state == CONN_ASKING || c->deadline > world_now,
                 "a deadline has passed, and nothing was done");
            must(world_now + timeout <= c->deadline + TICK_MS, "the loop sleeps beyond a deadline");
        }
    must(kernel_connections() == loop.count + (loop.redis.fd >= 0), "a descriptor stays open");
    must(loop.redis.unanswered == loop.redis.sent || !loop.redis.connected, "a command is unsent");
    must(loop.redis.fd < 0 || kernel_watches(loop.redis.fd) == loop.redis.events,
         "the loop does not hear what it waits for of Redis");
    must((timeout < 0) == (!tested_has_work() && loop_accepts(&loop)),
         "the loop sleeps for ever, or wakes up, and should not");
}

/* ---- the state ----------------------------------------------------------------------------- */

static void mix_client(const struct conn *c)
{
    mix(c->fd), mix(c->state), mix(c->deadline - world_now);
    mix(c->in.len), mix(c->used), mix(c->parser.step), mix(c->parser.at);
    mix(c->parser.continue_due), mix(c->silent), mix(c->refused), mix(c->ended);
    mix(c->answering), mix(c->sent), mix(c->head.len), mix(c->app.response.status);
    mix(c->app.content.len), mix(c->app.file.left);
    mix(c->app.guestbook.step), mix(c->app.guestbook.page);
}

void tested_mix(void)
{
    const struct client *client;
    for (int state = 0; state < CONN_STATES; state++)
        DL_FOREACH (loop.queues[state], client)
            mix_client(&client->conn);
    mix(loop.accept_paused_until > world_now ? loop.accept_paused_until - world_now : 0);
    mix(loop.stop_asked ? world_now - loop.stop_asked : -1);
    int64_t redis_until = redis_async_deadline(&loop.redis);
    mix(redis_until == INT64_MAX ? redis_until : redis_until - world_now);
    mix(loop.redis.fd), mix(loop.redis.events), mix(loop.redis.connected);
    mix(loop.redis.out.buffer.len - loop.redis.out.gone), mix(loop.redis.sent);
    mix(loop.redis.reader ? loop.redis.reader->len - loop.redis.reader->pos : 0);
    for (int i = 0; i < loop.redis.unanswered; i++) { /* those who wait for it, in their order */
        const struct redis_queue *line = &loop.redis.askers;
        const struct client *asker;
        memcpy(&asker, line->buffer.bytes + line->gone + (size_t)i * sizeof(void *), sizeof(asker));
        mix(asker ? asker->conn.fd : 0); /* AUTH has none */
    }
}

bool tested_has_work(void)
{
    return loop.count > 0 || loop.redis.unanswered > 0;
}
