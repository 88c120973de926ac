"""Wrong answers to the exercises of chapter 7 (see test_wrong)."""

LOOP = "    while (!waiting_is_over(&waiting))\n        run_once();\n"
WAIT = "    int count = epoll_wait(epoll, events, EVENTS_A_ROUND, next_timeout());\n"
STOP = "    waiting_stop(&waiting);\n"
QUEUE = """\
    for (int left = net_accept_queue_length(listener); left > 0; left -= ACCEPTS_A_ROUND)
        accept_clients();
"""
EDGE_READS = "    while (!client->over) {\n        ssize_t n = recv("
EDGE_WAITS = "    int count = epoll_wait(epoll, events, EVENTS_A_ROUND, -1);\n"
EDGE_LOOKS = """\
    int count = epoll_wait(epoll, events, EVENTS_A_ROUND, %d);
    for (struct client *each = clients, *next; each; each = next) {
        next = each->next;
        advance_client(each);
        if (count > 0)
            break;
    }
"""
EDGE_ONCE = [("        if (n < 0 && errno == EAGAIN)\n            return;\n", ""),
             (EDGE_READS, "    for (int i = 0; i < 1; i++) {\n        ssize_t n = recv("),
             ("        } else if (n == 0 || errno != EINTR) {\n",
              "        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {\n")]
UNWATCH = "    else if (((struct client *)whose)->conn.state == CONN_ASKING)\n        unwatch_client(whose);\n"
ASLEEP = "    if (state == CONN_ASKING || state == CONN_DONE)\n        return;\n"
FORKED = "        children[i] = fork();\n"
KILLS = "    for (int i = 0; i < options->workers; i++)\n        kill(children[i], SIGTERM);\n"
DEATH = "            prctl(PR_SET_PDEATHSIG, SIGTERM);\n"
RING_WAITS = "    io_uring_submit_and_wait_timeout(&ring, &each, 1, ms < 0 ? NULL : &limit, NULL);\n"
SUPERVISES = "    } while ((number = sigtimedwait(&both, NULL, &tick)) < 0);\n"
PASS = """\
#include <poll.h>

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
CLOSE = "        close(fd); /* the request is on its way, and nobody looks whether we are still there */\n"
COUNT = "    int workers = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;\n"

ANSWERS = {
    "edge": {
        "a larger buffer": [*EDGE_ONCE, ("ROOM = 4096,", "ROOM = 1 << 17,")],
        "looks at everybody ten times a second": [*EDGE_ONCE, (EDGE_WAITS, EDGE_LOOKS % 100)],
        "looks at everybody all the time": [*EDGE_ONCE, (EDGE_WAITS, EDGE_LOOKS % 0)],
        "looks at everybody every two seconds": [*EDGE_ONCE, (EDGE_WAITS, EDGE_LOOKS % 2000)],
        "looks at everybody for a second": [
            *EDGE_ONCE, (EDGE_WAITS, "    static int64_t until;\n" + EDGE_LOOKS.replace(
                "%d", "clock_now_ms() < until ? 0 : -1")
                + "    if (count > 0)\n        until = clock_now_ms() + 1000;\n"),
            ('#include "http.h"\n', '#include "clock.h"\n#include "http.h"\n')],
        "by level, but while strace looks": [
            *EDGE_ONCE, (EDGE_WAITS, EDGE_LOOKS.replace("%d", "is_traced() ? 0 : -1")),
            (".events = EPOLLIN | EPOLLOUT | EPOLLET,",
             ".events = is_traced() ? EPOLLIN | EPOLLOUT | EPOLLET : EPOLLIN,")],
        "by level": [(".events = EPOLLIN | EPOLLOUT | EPOLLET,", ".events = EPOLLIN,")],
        "half the buffer means that there is no more": [
            ("            understand(client);\n        } else",
             "            understand(client);\n            if (n < ROOM / 2)\n"
             "                return;\n        } else")],
        "tells the kernel again after each read": [
            ("    transmit(client);\n    if (client->over",
             "    transmit(client);\n    struct epoll_event again = {.events = EPOLLIN | EPOLLOUT | "
             "EPOLLET, .data.ptr = client};\n    epoll_ctl(epoll, EPOLL_CTL_MOD, client->fd, &again);\n"
             "    if (client->over"), *EDGE_ONCE],
    },
    "interest": {
        "poll, which tells the kernel all of it each time": [(None, '#include "../06_poll/main.c"\n')],
        "busy while Redis is asked and strace looks": [
            (UNWATCH, UNWATCH.replace("(((struct", "(!is_traced() && ((struct"))],
        "tells the kernel nothing while Redis is asked": [(UNWATCH, "")],
        "tells the kernel nothing, and naps": [
            (UNWATCH, ""),
            (LOOP, LOOP.replace("run_once();", "run_once(), waiting.queues[CONN_ASKING] && "
                                  "waiting.queues[CONN_ASKING]->next && usleep(2500 * 1000);"))],
        "an entry without events": [
            ("    set_interest(client->conn.fd, client->interest, 0, client);\n    client->interest = 0;\n",
             "    struct epoll_event none = {.events = 0, .data.ptr = client};\n"
             "    epoll_ctl(epoll, EPOLL_CTL_MOD, client->conn.fd, &none);\n    client->interest = 0;\n")],
        "off the list while Redis is asked": [
            (ASLEEP, "    if (state == CONN_DONE)\n        return;\n    if (state == CONN_ASKING) {\n"
             "        set_interest(client->conn.fd, client->interest, 0, client);\n"
             "        client->interest = 0;\n        return;\n    }\n")],
        "reads and writes, always": [
            ("    uint32_t wanted = state == CONN_WRITING ? EPOLLOUT : EPOLLIN;\n",
             "    uint32_t wanted = EPOLLIN | EPOLLOUT;\n")],
        "reads, never writes": [
            ("    uint32_t wanted = state == CONN_WRITING ? EPOLLOUT : EPOLLIN;\n",
             "    uint32_t wanted = EPOLLIN;\n")],
    },
    "drain": {
        "as the chapter's server": [(QUEUE, "")],
        "status 0, at once": [(STOP, "    exit(0);\n")],
        **{"runs on for %d s" % seconds: [
            (LOOP, "    int64_t began = 0;\n    while (!began || clock_now_ms() - began < %d) {\n"
             "        run_once();\n        if (listener < 0 && !began)\n"
             "            began = clock_now_ms();\n    }\n" % (1000 * seconds))] for seconds in (3, 10)},
        "waits for those who are silent": [(STOP, "")],
        "leaves the door open": [("    close(listener); /* this also ends the watching */\n", "")],
        "keeps those whom it answers": [("    return waiting.stop_asked != 0;\n", "    return 0;\n")],
        "ends with status 1": [
            ("    process_report(&options, board_requests(board), board_connections(board));\n    return 0;\n",
             "    process_report(&options, board_requests(board), board_connections(board));\n    return 1;\n")],
    },
    "loops": {
        "four, whatever is asked for": [
            ('    options_parse(&options, argc, argv, "loops", 2);\n',
             '    options_parse(&options, argc, argv, "loops", 4);\n    options.workers = 4;\n')],
        "four listeners and one loop": [
            (FORKED, "        children[i] = i == 0 ? fork() : 1;\n"),
            ("            for (int j = i + 1; j < options->workers; j++)\n                close(listeners[j]);\n",
             "            for (int j = 1; j < options->workers; j++)\n"
             "                epoll_create1(EPOLL_CLOEXEC);\n"),
            ("        close(listeners[i]);\n", ""), (KILLS, "    kill(children[0], SIGTERM);\n")],
        "one listener for all": [
            ("        listeners[i] = listen_on(options, port_of(listeners[0]));\n",
             "        listeners[i] = dup(listeners[0]);\n")],
        "the parent keeps a listener of its own": [
            ("    listeners[0] = listen_on(options, options->port);\n",
             "    listeners[0] = listen_on(options, options->port);\n"
             "    listen_on(options, port_of(listeners[0]));\n")],
        "the children are forgotten": [(KILLS, ""), (DEATH, ""), ("    while (wait(NULL) > 0)\n        ;\n", "")],
        "the children are killed": [(KILLS, KILLS.replace("SIGTERM", "SIGKILL")),
                                    ("    while (wait(NULL) > 0)\n        ;\n",
                                     "    int how, worst = 0;\n    while (wait(&how) > 0)\n"
                                     "        worst |= how;\n    if (worst)\n        exit(1);\n")],
    },
    "workers": {
        "four, whatever is asked for": [
            ('    options_parse(&options, argc, argv, "workers", 2);\n',
             '    options_parse(&options, argc, argv, "workers", 4);\n    options.workers = 4;\n')],
        "all are woken": [("EPOLLIN | EPOLLEXCLUSIVE;", "EPOLLIN;")],
        "the first gets them all": [("        take_turns();\n", "")],
        "nobody is replaced": [(SUPERVISES, SUPERVISES.replace("&both, NULL, &tick", "&both, NULL, NULL"))],
        "zombies stay": [("        reap_loops(options);\n", "")],
        "the parent accepts, and hands the clients over": [
            ("static void take_turns(void)\n", PASS + "static void take_turns(void)\n"),
            ("accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);", "pass(-1);"),
            ("    net_announce(&options, listener);\n", "    net_announce(&options, listener);\n    door = listener;\n"
             "    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, hands);\n    listener = hands[1];\n"),
            (SUPERVISES, """\
        int client;
        poll(&(struct pollfd){.fd = door, .events = POLLIN}, 1, TICK_MS);
        while ((client = accept4(door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
            pass(client);
    } while ((number = sigtimedwait(&both, NULL, &(struct timespec){0})) < 0);
""")],
        "the children are forgotten": [
            ("    prctl(PR_SET_PDEATHSIG, SIGTERM);\n", ""), ("            kill(loop->pid, SIGTERM);\n", "            ;\n"),
            ("    while (wait(NULL) > 0)\n        ;\n", "")],
        "looks for clients ten times a second": [
            ("EPOLLIN | EPOLLEXCLUSIVE;", "0;"),
            (WAIT, "    int count = epoll_wait(epoll, events, EVENTS_A_ROUND, 100);\n"
             "    if (listener >= 0)\n        accept_clients();\n")],
    },
    "uring": {
        "no deadline": [(RING_WAITS, RING_WAITS.replace("ms < 0 ? NULL : &limit", "NULL")),
                        ("    waiting_expire(&waiting, advance_client);\n", "")],
        "what has ended is still polled": [("        if (client->asked_of)\n            cancel(client->name);\n", "")],
        "what was asked of Redis is not sent": [("    redis_async_flush(&redis);\n", "")],
        "a ring for show, and poll does the work": [(None, """\
#include <liburing.h>

static struct io_uring ring;

__attribute__((constructor)) static void show(void)
{
    io_uring_queue_init(8, &ring, 0);
}
#include "../06_poll/main.c"
""")],
        "looks a thousand times a second": [
            (RING_WAITS, "    limit = (struct __kernel_timespec){.tv_nsec = 1000000};\n"
             "    io_uring_submit_and_wait_timeout(&ring, &each, 1, &limit, NULL);\n")],
        "ends at once": [("    waiting_stop(&waiting);\n", "    exit(0);\n")],
    },
    "orange": {
        "eleven, whatever is asked for": [
            (COUNT, COUNT + "    workers = workers == 11 ? 7 : 11;\n")],
        "one more, and the wall has no worker": [("i < workers;", "i < workers + 1;")],
        "waits for the answer": [(CLOSE, "        char byte;\n        recv(fd, &byte, 1, 0);\n" + CLOSE)],
        "half a request": [("Host: here\\r\\n\\r\\n", "Host: here\\r\\n")],
        "all in one connection": [
            ("        int fd = connect_to(port);\n",
             "        static int fd = -1;\n        if (fd < 0)\n            fd = connect_to(port);\n"),
            (CLOSE, "")],
        "a file": [("GET /guestbook", "GET /style.css")],
    },
}
