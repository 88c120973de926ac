"""Wrong answers to the exercises of chapter 7 (see test_exercises)."""

LOOP = "    while (!loop_is_over(&loop))\n        run_once();\n"
QUEUE = """\
    for (int left = net_accept_queue_length(loop->worker.listener); left > 0;
         left -= ACCEPTS_A_ROUND)
        loop_accept(loop);        /* they have connected before the signal */
"""
EDGE_READS = "    while (!client->over) {\n        ssize_t n = recv("
EDGE_WAITS = "    int count = epoll_wait(epoll, events, EVENTS_A_ROUND, -1);\n"
EDGE_ALL = [("static int epoll, listener;\n", "static int epoll, listener;\nstatic struct client *everybody[1024];\n"),
            ("    client->fd = fd;\n", "    client->fd = fd;\n    everybody[fd] = client;\n"),
            ("        close(client->fd);", "        everybody[client->fd] = NULL;\n        close(client->fd);")]
EDGE_LOOKS = """\
    int count = epoll_wait(epoll, events, EVENTS_A_ROUND, %d);
    for (int fd = 0; fd < 1024 && count <= 0; fd++)
        if (everybody[fd])
            advance_client(everybody[fd]);
"""
EDGE_ONCE = [("        if (n < 0 && errno == EAGAIN)\n            return;\n", ""),
             (EDGE_READS, "    for (int i = 0; i < 1; i++) {\n        ssize_t n = recv("),
             ("        } else if (n == 0 || errno != EINTR) {\n",
              "        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {\n")]
SUPERVISES = "    } while ((number = sigtimedwait(&both, NULL, &tick)) < 0);\n"
PASS = """\
#include <poll.h>
#include <sys/socket.h>

static int door, hands[2];

static int pass(int client)
{
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {0};
    struct msghdr message = {.msg_iov = &(struct iovec){&client, 1}, .msg_iovlen = 1,
                             .msg_control = room, .msg_controllen = sizeof(room)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    if (client < 0)
        return recvmsg(hands[1], &message, MSG_CMSG_CLOEXEC) > 0 ? *(int *)CMSG_DATA(rights) : -1;
    *rights = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    *(int *)CMSG_DATA(rights) = client;
    sendmsg(hands[0], &message, 0);
    return close(client);
}

"""

ANSWERS = {
    "edge": {
        "a larger buffer": [*EDGE_ONCE, ("ROOM = 4096,", "ROOM = 1 << 17,")],
        "looks at everybody for a second": [
            *EDGE_ONCE, *EDGE_ALL, (EDGE_WAITS, "    static int64_t until;\n" + EDGE_LOOKS.replace(
                "%d", "clock_now_ms() < until ? 0 : -1")
                + "    if (count > 0)\n        until = clock_now_ms() + 1000;\n"),
            ('#include "net.h"\n', '#include "net.h"\n#include "process.h"\n')],
    },
    "drain": {
        "a page for who was in the queue, and nothing on it": [(QUEUE, """\
    int fd;
    while ((fd = accept4(loop->worker.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        char request[4096];
        recv(fd, request, sizeof(request), 0);
        send(fd, "HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n", 57, 0);
        close(fd);
    }
""")],
        "three rounds more": [(QUEUE, "    for (int i = 0; i < 3; i++)\n        loop_accept(loop);\n")],
        "runs on for ten seconds": [
            (LOOP, "    int64_t began = 0;\n    while (!began || clock_now_ms() - began < 10000) {\n"
             "        run_once();\n        if (loop.worker.listener < 0 && !began)\n"
             "            began = clock_now_ms();\n    }\n")],
    },
    "workers": {
        "all are woken": [("EPOLLIN | EPOLLEXCLUSIVE :", "EPOLLIN :")],
        "the first gets them all": [("    if (accepted < ACCEPTS_A_TURN)\n", "    if (accepted >= 0)\n")],
        "the parent accepts, and hands the clients over": [
            ("/* ---- the queues", PASS + "/* ---- the queues"),
            ("accept4(loop->worker.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);", "pass(-1);"),
            ("    net_announce(&options, listener);\n", "    net_announce(&options, listener);\n    door = listener;\n"
             "    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, hands);\n    listener = hands[1];\n"),
            (SUPERVISES, """\
        int client;
        poll(&(struct pollfd){.fd = door, .events = POLLIN}, 1, TICK_MS);
        while ((client = accept4(door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
            pass(client);
    } while ((number = sigtimedwait(&both, NULL, &(struct timespec){0})) < 0);
""")],
    },
    "uring": {
        "a ring for show, and poll does the work": [(None, """\
#include <liburing.h>

static struct io_uring ring;

__attribute__((constructor)) static void show(void)
{
    io_uring_queue_init(8, &ring, 0);
}
#include "../06_poll/main.c"
""")],
        "what one send takes is the page": [("client->sent == PAGE_SIZE", "client->sent > 0")],
        "the first bytes are the request": [(
            '    if (memmem(client->request, client->received, "\\r\\n\\r\\n", 4))\n', "    if (client->received > 0)\n")],
        "who has left is never freed": [("    free(client);\n", "")],
    },
}
