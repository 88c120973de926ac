/* Exercise 01/again: stop, and start again.
 *
 * Greets every client. It opens its listening socket itself, call by call, so that
 * you can see all of it.
 *
 * Start it, ask it, stop it, and start it again: the last step fails. For a minute the
 * port is taken, although no program listens there.
 *
 * socket(7), bind(2), ip(7), tcp(7)
 */
#include "clock.h"
#include "net.h"
#include "options.h"
#include "process.h"
#include "stop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static void check(const struct options *options, int result, const char *what)
{
    if (result < 0)
        process_die(options->name, "%s: %s", what, strerror(errno));
}

static int open_listener(const struct options *options)
{
    const int on = 1;
    const struct timeval tick = {.tv_usec = TICK_MS * 1000L};
    struct sockaddr_in here = {
        .sin_family = AF_INET,
        .sin_port = htons((in_port_t)options->port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };

    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(options, listener, "socket");
    check(options, bind(listener, (struct sockaddr *)&here, sizeof(here)), "bind");

    /* Take the port even if connections of the last run are still in TIME_WAIT. Send small answers
     * at once. And let accept() return at least five times a second. */
    check(options, setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), "SO_REUSEADDR");
    check(options, setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), "TCP_NODELAY");
    check(options, setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof(tick)),
          "SO_RCVTIMEO");

    check(options, listen(listener, options->backlog), "listen");
    return listener;
}

int main(int argc, char **argv)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\n"
                                 "Content-Type: text/plain\r\n"
                                 "Content-Length: 6\r\n"
                                 "Connection: close\r\n"
                                 "\r\n"
                                 "Hello\n";
    struct options options;
    char request[4096];

    options_parse(&options, argc, argv, "again", 0);
    int listener = open_listener(&options);
    stop_catch_signals(true);
    net_announce(&options, listener);

    while (!stop_requested()) {
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0) {
            net_handle_accept_error();
            continue;
        }
        if (recv(client, request, sizeof(request), 0) > 0)
            send(client, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
        close(client);
    }
    close(listener);
    return 0;
}
