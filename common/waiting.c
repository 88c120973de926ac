#include "waiting.h"

#include "clock.h"
#include "memory.h"
#include "options.h"
#include "stop.h"

#include <stdlib.h>
#include <utlist.h>

/* clock_now_ms() is coarse. A loop that slept exactly until a deadline might wake just before it,
 * again and again. So it sleeps a little longer. */
enum { CLOCK_GRAIN_MS = 10 };

void waiting_add(struct waiting *w, struct conn *c)
{
    c->queued_as = c->state;
    c->queued_until = c->deadline;
    DL_APPEND(w->queues[c->state], c);
    w->count++;
}

static void leave(struct waiting *w, struct conn *c)
{
    DL_DELETE(w->queues[c->queued_as], c);
    w->count--;
}

void waiting_update(struct waiting *w, struct conn *c)
{
    if (c->queued_as == c->state && c->queued_until == c->deadline)
        return;
    leave(w, c);
    waiting_add(w, c);
}

int waiting_timeout(const struct waiting *w)
{
    int64_t next = INT64_MAX;
    for (int state = 0; state < CONN_STATES; state++)
        if (state != CONN_ASKING && w->queues[state] && w->queues[state]->deadline < next)
            next = w->queues[state]->deadline;
    int64_t left = next - clock_now_ms();
    int ms = next == INT64_MAX ? -1 : left < 0 ? 0 : (int)left + CLOCK_GRAIN_MS;
    bool make_way = w->stop_asked || (w->queues[CONN_IDLE] && memory_is_short());
    return make_way ? clock_earlier_timeout(ms, TICK_MS) : ms;
}

static struct conn *overdue(const struct waiting *w, enum conn_state state)
{
    struct conn *first = w->queues[state];
    return first && first->deadline <= clock_now_ms() ? first : NULL;
}

static void give_up(struct waiting *w, struct conn *c)
{
    conn_drop(c);
    waiting_update(w, c);
}

static void give_up_silent(struct waiting *w, enum conn_state state)
{
    struct conn *c, *next;
    DL_FOREACH_SAFE (w->queues[state], c, next)
        if (!conn_has_input(c) && conn_in_flight(c) == 0)
            give_up(w, c);
}

/* Memory is short: closes connections that were idle for a tick. The queue's head has been idle
 * longest. Its client may have taken the last response meanwhile. */
static void give_up_idle(struct waiting *w)
{
    struct conn *c, *next;
    DL_FOREACH_SAFE (w->queues[CONN_IDLE], c, next) {
        int64_t since = c->deadline - c->worker->options->keep_alive_ms;
        if (clock_now_ms() - since < TICK_MS)
            break;
        conn_check_in_flight(c);
        if (!conn_has_input(c) && c->in_kernel == 0)
            give_up(w, c);
    }
}

void waiting_expire(struct waiting *w, void (*advance)(struct conn *))
{
    struct conn *c;
    for (enum conn_state state = 0; state < CONN_DONE; state++)
        while (state != CONN_ASKING && (c = overdue(w, state))) {
            conn_expire(c);
            advance(c);
        }
    if (memory_is_short())
        give_up_idle(w);
    if (w->stop_asked && clock_now_ms() - w->stop_asked >= TICK_MS) {
        give_up_silent(w, CONN_FRESH);
        give_up_silent(w, CONN_IDLE);
        give_up_silent(w, CONN_LINGERING);
    }
}

void waiting_stop(struct waiting *w)
{
    w->stop_asked = clock_now_ms();
}

bool waiting_is_over(const struct waiting *w)
{
    const struct conn *asks = w->queues[CONN_ASKING];
    int ms = STOP_MS + (asks ? options_redis_ms(asks->worker->options) : 0);
    return w->stop_asked && (w->count == 0 || clock_now_ms() - w->stop_asked >= ms);
}

void waiting_free_done(struct waiting *w)
{
    struct conn *c;
    while ((c = w->queues[CONN_DONE])) {
        leave(w, c);
        conn_close(c);
        free(c);
    }
}

void waiting_close(struct waiting *w)
{
    for (enum conn_state state = 0; state < CONN_DONE; state++)
        while (w->queues[state])
            give_up(w, w->queues[state]);
    waiting_free_done(w);
}
