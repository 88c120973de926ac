/* loop: what chapters 6 and 7 have in common for states.h. Their main.c is included above, and
 * below stands what only one of them has. */
#include "process.h"
#include "tests/states/states.h"

#include <poll.h>
#include <utlist.h>

const char *const loop_name = LOOP_NAME;

static struct options options = {
    .root = ".", .redis = "unix:made-up", .keep_alive_ms = 5000, .timeout_ms = 10000};
static struct redis_server server;

static void open_loop(void);
static void mix_loop(void);

/* What main() does before its loop. The number of connections to Redis goes on from run to run,
 * since watch_redis() remembers it. */
void loop_begin(const char *password)
{
    static struct board *board;
    unsigned opened = redis.opened;
    if (!board) {
        options.name = loop_name;
        process_start();
        app_start(&options);
        server = (struct redis_server){.connect_ms = options_connect_ms(&options),
                                       .command_ms = options_redis_ms(&options)};
        redis_parse_address(&server, "unix:made-up");
        board = board_open(1);
        worker = (struct worker){.options = &options,
                                 .slot = board_claim(board, 1),
                                 .claim_waiting_clients = claim_waiting_clients};
    }
    strcpy(server.password, password);
    waiting = (struct waiting){0};
    listener = KERNEL_LISTENER;
    signals = KERNEL_SIGNALS;
    redis_async_start(&redis, &server, on_reply);
    redis.opened = opened + 1;
    open_loop();
}

void loop_round(void)
{
    run_once();
}

bool loop_is_over(void)
{
    return waiting_is_over(&waiting);
}

/* What main() does behind its loop. */
void loop_end(void)
{
    redis_async_close(&redis);
    waiting_close(&waiting);
    for (int state = 0; state < BOARD_STATES; state++)
        must(worker.slot->connections_by_state[state] == 0, "a connection is left on the board");
}

/* ---- between two rounds -------------------------------------------------------------------- */

static int times_in_queue(const struct conn *c)
{
    int times = 0;
    for (int i = 0; i < redis.unanswered; i++)
        times += redis.askers[redis.first + i] == c;
    return times;
}

/* Every state has a way out: something that wakes the loop up, and a time at which it is over. */
static void check_client(const struct conn *c)
{
    short wanted = c->state == CONN_WRITING ? POLLOUT : POLLIN;
    bool asks = c->state == CONN_ASKING;
    must(c->state != CONN_DONE, "a connection that has ended is not closed");
    must(times_in_queue(c) == asks, "a client that asks is in Redis' queue once, others never");
    must(asks || kernel_watches(c->fd) == wanted, "the loop does not hear what a client waits for");
    must(asks || c->deadline > world_now, "a deadline has passed, and nothing was done");
    must(c->queued_as == c->state && c->queued_until == c->deadline, "it waits in a wrong queue");
    must(c->used <= c->in.len && c->in.len <= c->in.size && c->in.size <= 128 * 1024,
         "a buffer is too large");
    must(c->state != CONN_WRITING || c->answering || c->in.len > 0, "there is nothing to write");
}

void loop_check(int timeout)
{
    int clients = 0;
    struct conn *c;
    for (unsigned state = 0; state < CONN_STATES; state++) {
        unsigned in_state = 0;
        DL_FOREACH (waiting.queues[state], c) {
            check_client(c);
            must(timeout >= 0 && world_now + timeout <= c->deadline + TICK_MS,
                 "the loop sleeps longer than a deadline allows");
            in_state++;
        }
        must(worker.slot->connections_by_state[state] == in_state, "the board counts wrong");
        clients += (int)in_state;
    }
    must(waiting.count == clients, "a connection is in no queue");
    must(kernel_connections() == clients + (redis.fd >= 0), "a descriptor stays open");
    must(redis.unanswered == 0 || redis.fd >= 0, "somebody waits for a connection that is gone");
    must(redis.unanswered == redis.sent || !redis.connected, "a command was not sent");
    must(redis.sent == 0 || timeout >= 0, "the loop may wait for Redis for ever");
}

/* ---- the state ----------------------------------------------------------------------------- */

static void mix_client(const struct conn *c)
{
    mix(c->fd), mix(c->state), mix(c->deadline - world_now);
    mix(c->in.len), mix(c->used), mix(c->charged), mix(c->parser.step), mix(c->parser.at);
    mix(c->parser.continue_due), mix(c->read_full), mix(c->silent), mix(c->refused),
        mix(c->pipelined);
    mix(c->answering), mix(c->sent), mix(c->head.len), mix(c->app.response.status);
    mix(c->app.content.len), mix(c->app.file.left);
    mix(c->app.guestbook.step), mix(c->app.guestbook.page);
}

void loop_mix(void)
{
    struct conn *c;
    for (int state = 0; state < CONN_STATES; state++)
        DL_FOREACH (waiting.queues[state], c)
            mix_client(c);
    mix(waiting.stop_asked ? world_now - waiting.stop_asked : -1);
    mix(redis.fd), mix(redis.events), mix(redis.connected), mix(redis_async_timeout(&redis));
    mix(redis.out.len - redis.written), mix(redis.sent);
    mix(redis.reader ? redis.reader->len - redis.reader->pos : 0);
    for (int i = 0; i < redis.unanswered; i++) {
        const struct conn *asker = redis.askers[redis.first + i];
        mix(asker ? asker->fd : 0); /* AUTH has none */
    }
    mix_loop();
}

bool loop_has_work(void)
{
    return waiting.count > 0 || redis.unanswered > 0;
}
