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
WRITES = ("        ssize_t n = send(client, bytes + sent, len - sent, MSG_NOSIGNAL);\n",
          "        ssize_t n = write(client, bytes + sent, len - sent);\n")
GIVES_UP = "        if (n < 0 && errno != EAGAIN)\n            return false;\n"
MAIN = "int main(int argc, char **argv)\n"
DEADLINE = "    visitor->deadline = clock_now_ms() + patience_ms;\n"
HALF = "\"GET / HTTP/1.1\\r\\n\""

ANSWERS = {
    "queue": {
        "no one more": [(PREDICTION, "    return least(held, least(backlog, somaxconn));\n")],
        "no somaxconn": [(PREDICTION, "    (void)somaxconn;\n    return least(held, backlog + 1);\n")],
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
    "gone": {
        "whoever reads nothing for a tick is gone": [
            (GIVES_UP, "        if (n < 0)\n            return false;\n")],
        "a child for each client, and SIGCHLD ignored": [
            WRITES, (MAIN, "#include <signal.h>\n" + MAIN),
            ("            serve(client); /* owns client now, closes it */\n", """\
        {
            signal(SIGCHLD, SIG_IGN);
            if (fork() == 0) {
                serve(client);
                _exit(0);
            }
            close(client);
        }
""")],
        "it is started again, by a process that it has left": [
            WRITES, (MAIN, "#include <sys/wait.h>\n" + MAIN), ("    for (;;) { /* until", """\
    if (fork() != 0)
        for (wait(NULL);;)
            pause();
    if (fork() != 0)
        _exit(0);
    while (fork() != 0)
        wait(NULL);
    for (;;) { /* until""")],
    },
    "deadline": {
        "twenty calls a second": [
            (DEADLINE, "    int calls = 0;\n" + DEADLINE),
            ('            return "431 Request Header Fields Too Large";\n', """\
            return "431";
        if (++calls > patience_ms / 50)
            return "408 Request Timeout";
        visitor->deadline = clock_now_ms() + patience_ms;
""")],
        "three times its time": [(DEADLINE, DEADLINE.replace("+ patience", "+ 3 * patience"))],
    },
    "reader": {
        "the first piece is all": [(FOUND, "        return end ? end + 4 - head : (long)len;\n")],
        "only the new piece is searched": [
            (LOOP, LOOP.replace("len < 3 ? 0 : len - 3", "len"))],
        "few calls while strace looks, and right while it does not": [
            ("enum { HEAD_MAX = 4096 };\n", """\
#include <sys/ptrace.h>

enum { HEAD_MAX = 4096 };

static bool is_traced;

__attribute__((constructor)) static void look(void)
{
    is_traced = ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0;
}
"""),
            (ROOM, ROOM.replace("sizeof(head) - len", "is_traced ? sizeof(head) - len : 1")),
            (FOUND, "        if (end || is_traced)\n            return end ? end + 4 - head : (long)len;\n")],
        "a message for each byte": [(RECV, """\
    {
        static int calls;
        struct iovec byte = {bytes, room ? 1 : 0};
        struct mmsghdr message = {.msg_hdr = {.msg_iov = &byte, .msg_iovlen = 1}};
        n = calls++ ? recvmmsg(client, &message, 1, 0, NULL) : recv(client, bytes, 1, 0);
        n = n == 1 && calls > 1 ? (ssize_t)message.msg_len : n;
    }
""")],
    },
    "attacker": {
        "eight who say nothing": [(HALF, "\"\"")],
        "eight each, for four": [("    for (int i = 0; i < CONNECTIONS; i++)\n",
                                  "    fork();\n    fork();\n    for (int i = 0; i < CONNECTIONS; i++)\n")],
    },
}
