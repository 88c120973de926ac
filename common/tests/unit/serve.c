/* What no client can be sure to see: who is refused, and who is not given up too early. The rest is
 * tested from outside, in servers/. The test is the client; a thread serves. */
#include "serve.h"
#include "net.h"
#include "process.h"
#include "unit.h"

#include <signal.h>
#include <stdatomic.h>

static struct options options;
static struct worker worker;
static int client = -1, served = -1;

static atomic_int asked; /* whether a crowd waits: not before the first response is on its way */

static int count_waiting(const struct worker *unused)
{
    (void)unused;
    return asked++ > 0 ? 150 : 0;
}

static void start(void)
{
    signal(SIGPIPE, SIG_IGN);
    unit_start_worker(&worker, &options, count_waiting);
}

TestSuite(serve, .timeout = 60, .init = start, .fini = scratch_remove);

static void *refuse(void *unused)
{
    (void)unused;
    serve_unavailable(&worker, served);
    return NULL;
}

static void *serve(void *unused)
{
    (void)unused;
    serve_client(&worker, served, NULL); /* no page is asked for */
    return NULL;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

Test(serve, a_busy_server_says_so_once_whatever_it_is_told)
{
    static char long_one[4000]; /* which takes more than one read */
    const char *const requests[] = {
        GET("/a.txt"),
        GET("/a.txt") GET("/a.txt"),
        "POST /guestbook HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
        long_one,
    };
    snprintf(long_one, sizeof(long_one), "GET / HTTP/1.1\r\nHost: a\r\nX: %03000d\r\n\r\n", 0);
    for (size_t i = 0; i < COUNT(requests); i++) {
        static char text[100000];
        pthread_t thread;
        tcp_pair(&served, &client, TICK_MS);
        say(client, requests[i]);
        cr_assert(pthread_create(&thread, NULL, refuse, NULL) == 0);
        read_to_end(client, text, sizeof(text));
        pthread_join(thread, NULL);
        expect_number("closed", fcntl(served, F_GETFD), -1);
        cr_expect(strncmp(text, "HTTP/1.1 503 ", 13) == 0, "%s", text);
        cr_expect(!strstr(text + 13, "HTTP/1.1 "), "%s", text);
        expect_part("503", text, "\r\nRetry-After: 1\r\n");
        expect_part("503", text, "\r\nConnection: close\r\n");
    }
}

/* Somebody comes just behind a response that says keep-alive: its client has a tick to go on. */
Test(serve, a_kept_client_is_not_given_up_before_a_tick)
{
    static char text[1000];
    pthread_t thread;
    tcp_pair(&served, &client, TICK_MS);
    cr_assert(pthread_create(&thread, NULL, serve, NULL) == 0);
    say(client, GET("/a.txt"));
    cr_assert(comes(client, POLLIN, PATIENCE_MS));
    int64_t answered = clock_now_ms();
    poll(NULL, 0, TICK_MS / 4);
    int looked = asked;
    if (clock_now_ms() - answered < TICK_MS / 2) /* else the machine stood still */
        expect_number("nobody looks yet", looked, 1);
    read_to_end(client, text, sizeof(text));
    pthread_join(thread, NULL);
    expect_part("kept", text, "Connection: keep-alive");
    expect_number("and then makes way", asked, 2);
}

/* A client is in the accept queue for a moment even if somebody is free to take it. */
Test(serve, somebody_waits_only_if_nobody_is_free)
{
    struct sockaddr_in address;
    socklen_t size = sizeof(address);
    struct board *board = board_open(2);
    struct board_slot *slots[] = {board_claim(board, 1), board_claim(board, 2)};
    options = (struct options){.name = "test", .bind = "127.0.0.1", .backlog = 8};
    worker = (struct worker){.board = board, .listener = net_listen(&options, true)};
    cr_assert(getsockname(worker.listener, (struct sockaddr *)&address, &size) == 0);
    expect_number("nobody there", serve_waiting_in_queue(&worker), 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert(connect(fd, (struct sockaddr *)&address, size) == 0 &&
              comes(worker.listener, POLLIN, PATIENCE_MS));
    for (int i = 0; i < 2; i++) {
        expect_number("somebody is free", serve_waiting_in_queue(&worker), 0);
        board_change_state(slots[i], CONN_NONE, CONN_IDLE, 1);
    }
    expect_number("nobody is free", serve_waiting_in_queue(&worker), 1);
    board_release(slots[0]);
    expect_number("and nobody is there", serve_waiting_in_queue(&worker), 1);
    board_change_state(slots[1], CONN_IDLE, CONN_NONE, 1);
    expect_number("one is done", serve_waiting_in_queue(&worker), 0);
    close(fd);
    close(worker.listener);
}

/* For two seconds a client does not make way for a crowd, and leaves the request to the others. */
Test(serve, a_new_client_takes_no_request_that_it_does_not_meet)
{
    pthread_t thread;
    worker.count_waiting = serve_waiting_on_board;
    worker.board->waiting = 150;
    tcp_pair(&served, &client, TICK_MS / 8);
    cr_assert(pthread_create(&thread, NULL, serve, NULL) == 0);
    poll(NULL, 0, TICK_MS);
    expect_number("still asked for", worker.board->waiting, 150);
    pthread_join(thread, NULL);
    expect_number("taken", worker.board->waiting, 0);
}
