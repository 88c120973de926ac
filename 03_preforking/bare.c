/* Processes made beforehand. Each worker is chapter 1's server, and all of them sleep in
 * accept() on the same listening socket. The parent only replaces those that die.
 * No client waits for a fork. As many slow clients as workers stop the server.
 * fork(2), accept(2), wait(2), prctl(2) PR_SET_PDEATHSIG
 */
#include <arpa/inet.h>
#include <err.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char answer[] = "HTTP/1.1 200 OK\r\n"
                             "Content-Type: text/plain\r\nContent-Length: 15\r\n"
                             "Connection: close\r\n\r\nHello, network\n";
enum { WORKERS = 4 };

static void check(int result, const char *what)
{
    if (result < 0)
        err(1, "%s", what); /* says why, and exits */
}

int main(int argc, char **argv)
{
    in_port_t port = argc > 1 ? (in_port_t)strtol(argv[1], NULL, 10) : 8000;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK); /* no other machine can reach us */
    char request[4096];

    int listener = socket(AF_INET, SOCK_STREAM, 0);
    check(listener, "socket");
    check(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)), "setsockopt");
    check(bind(listener, (struct sockaddr *)&here, sizeof(here)), "bind");
    check(listen(listener, 10), "listen");
    /* Whoever started us may ignore it. Then wait() would sleep until all workers have died. */
    check(sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL), "sigaction");

    pid_t pid, parent = getpid();
    for (int workers = 0; (pid = fork()) != 0;) { /* only the parent goes round here */
        if (pid < 0)
            sleep(1); /* no process left: try again */
        else if (++workers >= WORKERS)
            wait(NULL); /* sleeps until a worker has died */
    }
    check(prctl(PR_SET_PDEATHSIG, SIGTERM), "prctl"); /* no worker outlives the parent... */
    if (getppid() != parent)
        return 1; /* ...not even one whose parent died before that call */

    for (;;) {
        int client = accept(listener, NULL, NULL); /* sleeps until a client connects */
        if (client < 0)
            continue;
        if (recv(client, request, sizeof(request), 0) > 0) /* sleeps until it sends a byte */
            send(client, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
        close(client);
    }
}
