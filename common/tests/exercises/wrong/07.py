"""Wrong answers to the exercises of chapter 7 (see test_exercises)."""

LOOP = "    while (!loop_is_over(&loop))\n        run_once();\n"
QUEUE = """\
    for (int left = net_accept_queue_length(loop->worker.listener); left > 0;
         left -= ACCEPTS_A_ROUND)
        loop_accept(loop);        /* they have connected before the signal */
"""

ANSWERS = {
    "edge": {
        "a larger buffer": [
            ("        if (n < 0 && errno == EAGAIN)\n            return;\n", ""),
            ("    while (!client->over) {\n        ssize_t n = recv(", "    for (int i = 0; i < 1; i++) {\n        ssize_t n = recv("),
            ("        } else if (n == 0 || errno != EINTR) {\n", "        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {\n"),
            ("ROOM = 4096,", "ROOM = 1 << 17,")],
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
        "runs on for ten seconds": [
            (LOOP, "    int64_t began = 0;\n    while (!began || clock_now_ms() - began < 10000) {\n"
             "        run_once();\n        if (loop.worker.listener < 0 && !began)\n"
             "            began = clock_now_ms();\n    }\n")],
    },
    "workers": {
        "all are woken": [("EPOLLIN | EPOLLEXCLUSIVE :", "EPOLLIN :")],
        "the first gets them all": [("    if (accepted < ACCEPTS_A_TURN)\n", "    if (accepted >= 0)\n")],
    },
    "uring": {
        "what one send takes is the page": [("client->sent == PAGE_SIZE", "client->sent > 0")],
        "the first bytes are the request": [(
            '    if (memmem(client->request, client->received, "\\r\\n\\r\\n", 4))\n', "    if (client->received > 0)\n")],
        "who has left is never freed": [("    free(client);\n", "")],
    },
}
