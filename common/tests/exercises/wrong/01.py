"""Wrong answers to chapter 1's exercises."""

LOOP = """\
    while (len < sizeof(head)) {
        ssize_t n = receive(client, head + len, sizeof(head) - len);
        if (n <= 0)
            return 0;
        size_t from = len < 3 ? 0 : len - 3; /* the empty line may have begun in the last piece */
        len += (size_t)n;
"""
PREDICTION = "    return least(held, least(backlog, somaxconn) + 1);\n"
DEADLINE = "    visitor->deadline = clock_now_ms() + patience_ms;\n"

ANSWERS = {
    "queue": {
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
    "deadline": {
        "twenty calls a second": [
            (DEADLINE, "    int calls = 0;\n" + DEADLINE),
            ('            return "431 Request Header Fields Too Large";\n', """\
            return "431";
        if (++calls > patience_ms / 50)
            return "408 Request Timeout";
        visitor->deadline = clock_now_ms() + patience_ms;
""")],
    },
    "reader": {
        "only the new piece is searched": [
            (LOOP, LOOP.replace("len < 3 ? 0 : len - 3", "len"))],
    },
    "attacker": {
        "eight each, for four": [("    for (int i = 0; i < CONNECTIONS; i++)\n",
                                  "    fork();\n    fork();\n    for (int i = 0; i < CONNECTIONS; i++)\n")],
    },
}
