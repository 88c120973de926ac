"""Wrong answers to chapter 2's exercises."""

REFUSE = "        serve_unavailable(worker, client); /* no process left: answer 503, close the client */\n"
RELEASE = REFUSE + "        board_release(worker->slot);\n"
RETURN = RELEASE + "        return;\n"
SAYS_503 = '        send(client, "HTTP/1.1 503 \\r\\nContent-Length: 0\\r\\n\\r\\n", 36, MSG_NOSIGNAL);\n'
FORK = "    pid_t pid = fork();\n"
COUNT = "(unsigned)worker->options->workers"
TURN_AWAY = "            turn_away(worker, client);\n"
REAP = "        children_reap(children);\n        if (client < 0)\n            continue;\n"
CLOSES = """\
    close(listener);         /* the port is free when the parent has closed it, too */
    close(served[1]);        /* or the pipe would never end: we could still write to it */
"""
NOTE = "    if (pid > 0)\n        children[place] = pid; /* the handler will reap it */\n"
BLOCK = "    sigprocmask(SIG_BLOCK, &ended, &before);\n"
RESTORE = "    sigprocmask(SIG_SETMASK, &before, NULL);\n"
UNBLOCKED = [(BLOCK, ""), (RESTORE, "")]
EXITS = "    _exit(0);\n"

ANSWERS = {
    "refused": {
        "no answer": [(REFUSE, "        close(client);\n")],
        "it goes on as if there were a child": [(RETURN, RELEASE)],
        "the slot is lost": [(RELEASE, REFUSE)],
        "closed twice": [(RETURN, RELEASE + "        close(client);\n        return;\n")],
        "never closed": [(REFUSE, SAYS_503)],
        "a sleep first": [(REFUSE, "        sleep(1);\n" + REFUSE)],
        "it tries again": [(FORK, "    pid_t pid;\n    while ((pid = fork()) < 0)\n        ;\n")],
        "it tries again, and sleeps between": [
            (FORK, "    pid_t pid;\n    while ((pid = fork()) < 0)\n        usleep(1000);\n")],
        "the parent waits for the request": [(REFUSE, """\
        char request[4096];
        while (recv(client, request, sizeof(request), 0) < 0 && errno == EAGAIN)
            ;
""" + SAYS_503 + "        close(client);\n")],
        "the parent serves": [(REFUSE, """\
        struct redis_pool redis;
        redis_pool_open(&redis, server, 1);
        serve_client(worker, client, &redis);
        redis_pool_close(&redis);
""")],
    },
    "cap": {
        "a constant": [(COUNT, "3")],
        "a sleep, for a place": [(REAP, "        if (client >= 0)\n            usleep(200000);\n" + REAP)],
        "a sleep before it refuses": [(TURN_AWAY, "        {\n            usleep(200000);\n" + TURN_AWAY + "        }\n")],
        "it reaps before it accepts": [
            (REAP, "        if (client < 0)\n            continue;\n"),
            ("        int client = accept4(", "        children_reap(children);\n        int client = accept4(")],
        "no answer": [(TURN_AWAY, "            close(client);\n")],
        "one child more tells them": [("    serve_unavailable(worker, client); /* 503; owns client now, closes it */\n", """\
    if (fork() == 0) {
        serve_unavailable(worker, client);
        _exit(0);
    }
    close(client);
""")],
        "the slot is lost": [("    board_release(worker->slot);\n}\n\n/* The parent's loop", "}\n\n/* The parent's loop")],
        "one too many": [(COUNT, "(unsigned)worker->options->workers + 1")],
        "nobody is refused": [("        if (HASH_COUNT(children->by_pid) >= " + COUNT + ")\n" + TURN_AWAY
                               + "        else\n    ", "    ")],
        "it never sleeps": [("        int client = accept4(worker->listener, NULL, NULL, SOCK_CLOEXEC);\n", """\
        int client = -1;
        if (net_accept_queue_length(worker->listener) > 0)
            client = accept4(worker->listener, NULL, NULL, SOCK_CLOEXEC);
""")],
    },
    "descriptors": {
        "only the listening socket": [(CLOSES, "    close(listener);\n")],
        "only the pipe": [(CLOSES, "    close(served[1]);\n")],
        "the wrong end": [(CLOSES, "    close(listener);\n    close(served[0]);\n")],
        "a constant": [(CLOSES, "    close(listener);\n"), (
            "        visitors += n;\n", "        if ((visitors += n) == 21)\n            break;\n")],
        **{what: [
            (CLOSES, "    close(listener);\n"),
            ("#include <fcntl.h>\n", "#include <fcntl.h>\n#include <poll.h>\n"),
            ("    while ((n = read(served[0], bytes, sizeof(bytes))) > 0)\n        visitors += n;\n", """\
    pid_t parent = getppid();
    struct pollfd more = {.fd = served[0], .events = POLLIN};
    while (poll(&more, 1, %d) > 0 || getppid() == parent)
        if (more.revents && (n = read(served[0], bytes, sizeof(bytes))) > 0)
            visitors += n;
""" % ms)] for what, ms in (("it gives up with its parent", 100), ("it waits a second for more", 1000))},
        "the children close": [(CLOSES, "    close(listener);\n"), (
            "    close(listener); /* only the parent accepts */\n",
            "    close(listener); /* only the parent accepts */\n    close(served[1]);\n")],
    },
    "zombies": {
        "the child waits a second": [*UNBLOCKED, (EXITS, "    sleep(1);\n" + EXITS)],
        "the child waits two seconds before it serves": [
            *UNBLOCKED,
            ("    struct redis_pool redis;\n    close(worker", "    struct redis_pool redis;\n    sleep(2);\n    close(worker")],
        "the child waits longer than the parent": [*UNBLOCKED, (EXITS, "    sleep(6);\n" + EXITS)],
        "blocked too late": [(BLOCK, ""), (NOTE, BLOCK + NOTE)],
        "restored too early": [(RESTORE, ""), (NOTE, RESTORE + NOTE)],
        "never restored": [(RESTORE, "")],
        "restored only if there is a child": [(RESTORE, "    if (pid > 0)\n    " + RESTORE)],
        "the kernel reaps": [*UNBLOCKED, (
            "    sigaction(SIGCHLD, &ended, NULL);\n", "    (void)ended;\n    signal(SIGCHLD, SIG_IGN);\n")],
        "any child, and the table stays": [(
            "        if (children[i] > 0 && waitpid(children[i], NULL, WNOHANG) == children[i])\n"
            "            children[i] = 0;\n",
            "        while (waitpid(-1, NULL, WNOHANG) > 0)\n            ;\n")],
        "one child for a signal": [("            children[i] = 0;\n    errno", "        {\n"
                                    "            children[i] = 0;\n            break;\n        }\n    errno")],
        "the parent waits while strace looks": [
            (BLOCK, ""), (RESTORE, "    if (pid > 0 && is_traced() && waitpid(pid, NULL, 0) > 0)\n"
                                   "        children[place] = 0;\n")],
        "the parent waits": [(RESTORE, RESTORE + "    if (pid > 0)\n        waitpid(pid, NULL, 0);\n")],
    },
}
