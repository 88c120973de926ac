"""Wrong answers to the exercises of chapter 6 (see test_wrong)."""

INTEREST = "    return client->state == CONN_WRITING ? POLLOUT : POLLIN;\n"
LOOP = "    while (!waiting_is_over(&waiting))\n        run_once();\n"
TIMEOUT = "    int ms = clock_earlier_timeout(waiting_timeout(&waiting), redis_async_timeout(&redis));\n"
FLUSH = "    redis_async_flush(&redis);   /* the commands of all clients, in one write */\n"
EXPIRE = "    redis_async_expire(&redis);\n"
WRITERS = "    add_clients(CONN_WRITING, POLLOUT);\n"
WITH_NAPS = """\
    while (!waiting_is_over(&waiting)) {
        run_once();
        poll(NULL, 0, %d);
    }
"""

ANSWERS = {
    "computes": {
        "a visitor always waits": [
            ("{\"forking\", 0, 1}", "{\"forking\", 1, 1}"),
            ("{\"preforking\", 0, 1}", "{\"preforking\", 1, 1}"),
            ("{\"threading\", 0, 1}", "{\"threading\", 1, 1}"),
            ("{\"prethreading\", 0, 1}", "{\"prethreading\", 1, 1}")],
        "in an event loop no visitor waits": [
            ("{\"poll\", 1, 1}", "{\"poll\", 0, 0}"), ("{\"epoll\", 1, 1}", "{\"epoll\", 0, 0}")],
        "a new child for each client, however many": [
            ("{\"forking\", 0, 1}", "{\"forking\", 0, 0}"),
            ("{\"threading\", 0, 1}", "{\"threading\", 0, 0}")],
        "threads share one core": [("{\"prethreading\", 0, 1}", "{\"prethreading\", 1, 1}")],
        "prints nothing": [("for (size_t i = 0;", "for (size_t i = 7;")],
    },
    "slope": {
        "the numbers for 10 and 500": [
            ("return silent + 4;", "return silent > 100 ? 504 : 14;")],
        "the silent clients alone": [("return silent + 4;", "return silent;")],
        "without the client that asks": [("return silent + 4;", "return silent + 3;")],
        "epoll returns all clients": [("    (void)silent;\n    return 1;", "    return silent + 1;")],
    },
    "deaf": {
        "asks for everything, and naps": [
            (INTEREST, "    return client->state == CONN_WRITING ? POLLIN | POLLOUT : POLLIN;\n"),
            (LOOP, WITH_NAPS % 50)],
        "asks for everything, and takes long naps": [
            (INTEREST, "    return client->state == CONN_WRITING ? POLLIN | POLLOUT : POLLIN;\n"),
            (LOOP, WITH_NAPS % 1500)],
        "a client that is written to is forgotten": [
            (INTEREST, "    return client->state == CONN_WRITING ? 0 : POLLIN;\n")],
        "asks always for room": [(INTEREST, "    (void)client;\n    return POLLIN | POLLOUT;\n")],
        "a client that does not read is thrown out": [
            ("    conn_advance(client);\n    while (client->state == CONN_ASKING) {",
             "    conn_advance(client);\n    if (client->state == CONN_WRITING)\n"
             "        conn_reset(client);\n    while (client->state == CONN_ASKING) {")],
    },
    "sleeper": {
        "503 for every page": [
            ("(why = ask_redis(client)) != 0) {", "(why = REDIS_NO_CONNECTION) != 0) {")],
        "as the chapter's server, without a limit": [("    if (asking == MOST_ASKING)", "    if (asking < 0)")],
        "counts up and never down": [("    asking--;\n", "")],
        "counts questions, not clients": [
            ("    if (asking == MOST_ASKING)", "    if (asking >= MOST_ASKING)"),
            ("    asking--;\n    conn_reply(client, reply, why);\n    advance_client(client);\n",
             "    conn_reply(client, reply, why);\n    advance_client(client);\n    asking--;\n")],
        "poll() does not know the time of Redis": [
            (TIMEOUT, "    int ms = waiting_timeout(&waiting);\n")],
        "Redis may take for ever": [(EXPIRE, "")],
        "what is asked is never sent": [(FLUSH, "")],
        "listens to clients that wait for Redis": [
            (WRITERS, WRITERS + "    add_clients(CONN_ASKING, POLLIN);\n")],
        "looks for a reply ten times a second": [
            ("    add_fd(redis.fd, redis.events, NULL);\n",
             "    add_fd(-1, 0, NULL);\n    fds[count - 1].revents = 0;\n"),
            (TIMEOUT, "    int ms = 100;\n"),
            ("    if (fds[REDIS].revents)\n        redis_async_ready(&redis, (unsigned)fds[REDIS].revents);",
             "    redis_async_ready(&redis, POLLIN | POLLOUT);")],
        "the client does not go on after a reply": [
            ("    conn_reply(client, reply, why);\n    advance_client(client);\n",
             "    conn_reply(client, reply, why);\n")],
    },
}
