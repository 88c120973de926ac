/* Ends under load, and what clients see of it. They ask, hear, and ask again. A connection may end
 * without a byte: nobody had accepted it, or its client was silent for a moment. A response never
 * ends before its end.
 */
#include "tests/harness/harness.h"

/* ---- the load ------------------------------------------------------------------------------ */

enum { CLIENTS = 24 };

static struct client *callers[CLIENTS]; /* each has asked for something; NULL: it is gone */
static unsigned long long answers;      /* whole responses */

/* Every other one asks to be kept. */
static void call(int i)
{
    static const char *const targets[] = {"/", "/guestbook", "/tux.png"};
    static unsigned turn;
    char request[128];
    if (!callers[i])
        callers[i] = dial();
    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: test\r\n%s\r\n",
             targets[turn++ % 3], i % 2 ? "Connection: close\r\n" : "");
    try_to_say(callers[i], request, strlen(request));
}

static void leave(int i)
{
    if (callers[i])
        hang_up(callers[i]);
    callers[i] = NULL;
}

/* Hears a response, or an end without a byte; hear() sees to it that there is nothing between. */
static void hear_one(int i)
{
    char byte;
    struct pollfd fd = {.fd = callers[i]->fd, .events = POLLIN};
    check(poll(&fd, 1, (int)patience(SOON_MS)) > 0, "neither answered nor closed");
    if (callers[i]->len == callers[i]->used && recv(callers[i]->fd, &byte, 1, MSG_PEEK) <= 0) {
        leave(i);
        return;
    }
    check(hear(callers[i])->status == 200, "status %d", callers[i]->answer.status);
    answers++;
    if (!callers[i]->answer.kept)
        leave(i);
}

static void begin_load(void)
{
    answers = 0;
    for (int i = 0; i < CLIENTS; i++) {
        callers[i] = NULL;
        call(i);
    }
}

/* Whoever is answered asks again at once, so that all of them are waiting at the end. */
static void load_until_answers(unsigned long long more)
{
    for (unsigned long long goal = answers + more; answers < goal;) {
        struct pollfd fds[CLIENTS];
        for (int i = 0; i < CLIENTS; i++)
            fds[i] = (struct pollfd){.fd = callers[i]->fd, .events = POLLIN};
        check(poll(fds, CLIENTS, (int)patience(SOON_MS)) > 0, "nobody is answered");
        for (int i = 0; i < CLIENTS; i++)
            if (fds[i].revents) {
                hear_one(i);
                call(i);
            }
    }
}

/* What they have asked for comes, or they see the end. */
static void end_load(void)
{
    for (int i = 0; i < CLIENTS; i++) {
        if (callers[i])
            hear_one(i);
        leave(i);
    }
}

/* ---- the end of the server ----------------------------------------------------------------- */

/* In flight means accepted. An answer that the server has counted has arrived. */
EVERY_SERVER(a_stop_answers_every_client_that_was_accepted)
{
    start_redis();
    for (int i = 0; i < 10; i++) {
        start_server();
        begin_load();
        load_until_answers(200 + 17 * (unsigned)i);
        int64_t start = now_ms();
        check(kill(server_pid, i % 2 ? SIGTERM : SIGINT) == 0, "%s", strerror(errno));
        end_load();
        struct statistics s = await_server();
        check_took(start, 0, patience(5000));
        check(s.requests == answers, "stop %d: %llu sent, %llu arrived", i, s.requests, answers);
    }
}
