"""Wrong answers to chapter 1's exercises."""

LOOP = """\
    while (len < sizeof(head)) {
        ssize_t n = receive(client, head + len, sizeof(head) - len);
        if (n <= 0)
            return 0;
        size_t from = len < 3 ? 0 : len - 3; /* the empty line may have begun in the last piece */
        len += (size_t)n;
"""
ROOM = "        ssize_t n = receive(client, head + len, sizeof(head) - len);\n"
RECV = "        n = recv(client, bytes, room, 0);\n"
FOUND = "        if (end)\n            return end + 4 - head;\n"
PREDICTION = "    return least(held, least(backlog, somaxconn) + 1);\n"
REUSE = ("    check(options, setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), "
         "\"SO_REUSEADDR\");\n")
BIND = "    check(options, bind(listener, (struct sockaddr *)&here, sizeof(here)), \"bind\");\n"
WRITES = ("        ssize_t n = send(client, bytes + sent, len - sent, MSG_NOSIGNAL);\n",
          "        ssize_t n = write(client, bytes + sent, len - sent);\n")
ASKED = "    if (has_asked(client) && send_all(client, head, (size_t)len))\n"
GIVES_UP = "        if (n < 0 && errno != EAGAIN)\n            return false;\n"
MAIN = "int main(int argc, char **argv)\n"
DEADLINE = "    visitor->deadline = clock_now_ms() + patience_ms;\n"
ROUND = "    while (clock_now_ms() < visitor->deadline && !stop_requested()) {\n"
EIGHT = "CONNECTIONS = 8 };"
HALF = "\"GET / HTTP/1.1\\r\\n\""

ANSWERS = {
    "queue": {
        "a constant": [(PREDICTION, "    (void)backlog, (void)somaxconn, (void)held;\n    return 2;\n")],
        "a table of the answers": [(PREDICTION, """\
    static const long answers[][3] = {{10, 3, 3}, {1, 4, 2}, {6, 7, 7}, {6, 6, 6}};
    for (int i = 0; i < 4; i++)
        if (answers[i][0] == backlog && answers[i][1] == held)
            return answers[i][2];
    return somaxconn + 1;
""")],
        "no one more": [(PREDICTION, "    return least(held, least(backlog, somaxconn));\n")],
        "no somaxconn": [(PREDICTION, "    (void)somaxconn;\n    return least(held, backlog + 1);\n")],
        "always full": [(PREDICTION, "    (void)held;\n    return least(backlog, somaxconn) + 1;\n")],
        "one too many": [(PREDICTION, "    return least(held, least(backlog, somaxconn) + 2);\n")],
        "it tries it out on the machine where it runs": [
            ("#include <stdio.h>\n", "#include <netinet/in.h>\n#include <netinet/tcp.h>\n"
             "#include <stdio.h>\n#include <sys/socket.h>\n"), (PREDICTION, """\
    struct sockaddr_in here;
    struct tcp_info about;
    socklen_t size = sizeof(here), about_size = sizeof(about);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    listen(listener, (int)backlog);
    getsockname(listener, (struct sockaddr *)&here, &size);
    while (held-- > 0)
        connect(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), (struct sockaddr *)&here, size);
    getsockopt(listener, IPPROTO_TCP, TCP_INFO, &about, &about_size);
    return about.tcpi_unacked;
""")],
    },
    "again": {
        "SO_REUSEPORT": [(REUSE, REUSE.replace("REUSEADDR", "REUSEPORT"))],
        "both of them": [(REUSE, REUSE + REUSE.replace("REUSEADDR", "REUSEPORT"))],
        "a reset ends each connection": [(REUSE, """\
    struct linger linger = {.l_onoff = 1};
    check(options, setsockopt(listener, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), "linger");
""")],
        "it waits until the port is free": [(REUSE, ""), (BIND, """\
    while (bind(listener, (struct sockaddr *)&here, sizeof(here)) < 0)
        sleep(1);
""")],
        "it takes another port": [(REUSE, ""), (BIND, """\
    if (bind(listener, (struct sockaddr *)&here, sizeof(here)) < 0) {
        here.sin_port = 0;
        bind(listener, (struct sockaddr *)&here, sizeof(here));
    }
""")],
        "connections stay open": [("        close(client);\n", "")],
    },
    "gone": {
        "it tries for ever": [(GIVES_UP, "")],
        "whoever reads nothing for a tick is gone": [
            (GIVES_UP, "        if (n < 0)\n            return false;\n")],
        "the head alone is sent without a signal": [
            WRITES, (ASKED, "    if (has_asked(client) && send(client, head, (size_t)len, MSG_NOSIGNAL) == len)\n")],
        "it looks before it writes": [
            WRITES, (ASKED, """\
    char byte;
    if (has_asked(client) && recv(client, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN &&
        send_all(client, head, (size_t)len) &&
        (recv(client, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0 || errno == EAGAIN))
""")],
        "it says goodbye": [
            WRITES, (MAIN, "#include <signal.h>\n\nstatic void leave(int number)\n{\n    _exit(number);\n}\n\n" + MAIN),
            ("    memset(page,", "    signal(SIGPIPE, leave);\n    memset(page,")],
        "it is started again": [
            WRITES, (MAIN, "#include <sys/wait.h>\n#include <sys/prctl.h>\n#include <signal.h>\n" + MAIN),
            ("    for (;;) { /* until", """\
    while (fork() != 0)
        wait(NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) { /* until""")],
        "half a page": [(GIVES_UP, "        if (n < 0)\n            return false;\n"),
                        ("        send_all(client, page, sizeof(page));\n",
                         "        send(client, page, sizeof(page), MSG_NOSIGNAL | MSG_DONTWAIT);\n")],
    },
    "deadline": {
        "a constant": [(DEADLINE, "    (void)patience_ms;\n    visitor->deadline = clock_now_ms() + 1000;\n")],
        **{what: [
            (DEADLINE, "    int calls = 0;\n" + DEADLINE),
            ("            return 431;\n", """\
            return 431;
        if (++calls > %s)
            return 408;
        visitor->deadline = clock_now_ms() + patience_ms;
""" % most)] for what, most in (("twenty calls", "20"), ("twenty calls a second", "patience_ms / 50"))},
        "three times its time": [(DEADLINE, DEADLINE.replace("+ patience", "+ 3 * patience"))],
        "a new deadline for each call": [
            ("        ssize_t n = receive(visitor);\n",
             "        visitor->deadline = clock_now_ms() + patience_ms;\n"
             "        ssize_t n = receive(visitor);\n")],
        "the clock after a tick only": [
            (ROUND, "    do {\n"),
            ("            return -1;\n    }\n    return -1;\n", """\
            return -1;
    } while (clock_now_ms() < visitor->deadline && !stop_requested());
    return -1;
""")],
        "a deadline for all clients": [
            (DEADLINE, "    if (!visitor->deadline)\n        visitor->deadline = clock_now_ms() + patience_ms;\n"),
            ("    struct visitor visitor;\n", "    struct visitor visitor = {0};\n")],
        "the client is not told": [("            return 408;\n", "            return 0;\n")],
        "one call for a head": [
            (DEADLINE, DEADLINE + "    bool again = false;\n"),
            ("            return 431;\n", """\
            return 431;
        if (again)
            return 408;
        again = true;
""")],
    },
    "reader": {
        "always 92": [(FOUND, "        if (end || len > 92)\n            return 92;\n")],
        "the first piece is all": [(FOUND, "        return end ? end + 4 - head : (long)len;\n")],
        "only the new piece is searched": [
            (LOOP, LOOP.replace("len < 3 ? 0 : len - 3", "len"))],
        "the search begins before the buffer": [
            (LOOP, LOOP.replace("len < 3 ? 0 : len - 3", "len - 3"))],
        "what follows counts": [("            return end + 4 - head;\n", "            return (long)len;\n")],
        "a NUL behind the last byte": [
            ("        len += (size_t)n;\n", "        len += (size_t)n;\n        head[len] = 0;\n")],
        "the whole room each time": [(LOOP, LOOP.replace("sizeof(head) - len)", "sizeof(head))"))],
        "the whole room, and no limit": [
            (LOOP, LOOP.replace("sizeof(head) - len)", "sizeof(head))").replace(
                "while (len < sizeof(head))", "while (true)")),
            ("#include <errno.h>\n", "#include <errno.h>\n#include <stdbool.h>\n")],
        "a byte less": [(LOOP, LOOP.replace("sizeof(head) - len)", "sizeof(head) - 1 - len)").replace(
            "len < sizeof(head))", "len < sizeof(head) - 1)"))],
        "32 bytes at a time": [(LOOP, LOOP.replace(
            "sizeof(head) - len)", "sizeof(head) - len < 32 ? sizeof(head) - len : 32)"))],
        "it peeks until the end is there": [
            ("        n = recv(client, bytes, room, 0);\n    while (n < 0 &&",
             "        n = recv(client, bytes, room, MSG_PEEK);\n    while (n < 0 &&"),
            (LOOP, """\
    while (len < sizeof(head)) {
        size_t from = 0;
        ssize_t n = receive(client, head, sizeof(head));
        if (n <= 0)
            return 0;
        len = (size_t)n;
"""),
            (FOUND, "        if (end) {\n            recv(client, head, len, 0);\n"
             "            return end + 4 - head;\n        }\n")],
        "it never sleeps": [("        n = recv(client, bytes, room, 0);\n",
                             "        n = recv(client, bytes, room, MSG_DONTWAIT);\n")],
        "few calls while strace looks, and right while it does not": [
            (ROOM, ROOM.replace("sizeof(head) - len", "is_traced() ? sizeof(head) - len : 1")),
            (FOUND, "        if (end || is_traced())\n            return end ? end + 4 - head : (long)len;\n")],
        "a message for each byte": [(RECV, """\
    {
        static int calls;
        struct iovec byte = {bytes, room ? 1 : 0};
        struct mmsghdr message = {.msg_hdr = {.msg_iov = &byte, .msg_iovlen = 1}};
        n = calls++ ? recvmmsg(client, &message, 1, 0, NULL) : recv(client, bytes, 1, 0);
        n = n == 1 && calls > 1 ? (ssize_t)message.msg_len : n;
    }
""")],
        "a pipe, and each byte out of it": [("#include <errno.h>\n", "#include <errno.h>\n#include <fcntl.h>\n"), (RECV, """\
    {
        static int ends[2], inside;
        if (!ends[1]) {
            n = pipe(ends) ? -1 : recv(client, bytes, 1, 0);
        } else {
            n = inside ? inside : splice(client, NULL, ends[1], NULL, room, 0);
            inside = n > 0 ? (int)n - 1 : 0;
            n = n > 0 ? read(ends[0], bytes, 1) : n;
        }
    }
""")],
        "one long wait": [
            (LOOP, "    usleep(100000);\n" + LOOP),
            ("    return -1;\n}\n\nstatic void answer", "    return 0;\n}\n\nstatic void answer")],
    },
    "attacker": {
        "eight who say nothing": [(HALF, "\"\"")],
        "one who says half": [(EIGHT, "CONNECTIONS = 1 };")],
        "more than the rules allow": [(EIGHT, "CONNECTIONS = 50 };")],
        "eight each, for four": [("    for (int i = 0; i < CONNECTIONS; i++)\n",
                                  "    fork();\n    fork();\n    for (int i = 0; i < CONNECTIONS; i++)\n")],
        "eight who ask, and read no answer": [(HALF, "\"GET / HTTP/1.1\\r\\nHost: here\\r\\n\\r\\n\"")],
        "one who drips": [
            (EIGHT, "CONNECTIONS = 1 };"),
            ("    puts(\"ready\");\n", "    puts(\"ready\");\n    fflush(stdout);\n    for (;;) {\n"
             "        say(3, \"X\");\n        usleep(100 * 1000);\n    }\n")],
        "says that it is ready, and is not": [(EIGHT, "CONNECTIONS = 0 };")],
    },
}
