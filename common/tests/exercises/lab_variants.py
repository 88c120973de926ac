"""lab_variants: what readers may make of a chapter's bare.c, as edits of it: (old, new), and of its ask.c ("6/ask").
WRONG: and what the lab says of it, a pattern. RIGHT passes, and so do PYTHON, whole servers behind one beginning, and
NODE.
"""

ACCEPT, FORKED = "        int client = accept(listener, NULL, NULL);", "        if (child == 0) {"
IGNORED = '    check(sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_IGN}, NULL), "sigaction");\n'
RECV, SEND = "recv(client, request, sizeof(request), 0)", "send(client, answer, sizeof(answer) - 1, MSG_NOSIGNAL);"
BIND = '    check(bind(listener, (struct sockaddr *)&here, sizeof(here)), "bind");\n'
LISTEN, CLOSE, WAIT, PAUSE = 'check(listen(listener, 10), "listen");', "        close(client);\n", "            wait(NULL);", "    pause();"
FEW = (LISTEN, 'check(listen(listener, 5), "listen");')
ORPHAN = ("    if (getppid() != parent)\n        return 1;", "    if (!parent)\n        return 1;")
ARGUMENT, PASSED = "    int client = (int)(intptr_t)argument;", "(void *)(intptr_t)client"
COPIED = (PASSED, "memcpy(malloc(4), &client, 4)")
LOCK = ("static void *work(", "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\nstatic void *work(")
REST, FREE = "    return *client->rest != '\\0';", "        free(client);\n    }"
NOT_YET = "return n < 0 && (errno == EAGAIN || errno == EINTR);"
TAKEN = "accept4(listener, NULL, NULL, SOCK_NONBLOCK)"
IPV6 = [("struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};",
         "struct sockaddr_in6 here = {.sin6_family = AF_INET6, .sin6_port = htons(port)};"), ("socket(AF_INET,", "socket(AF_INET6,")]
STREAM = [(SEND, "{ FILE *stream = fdopen(dup(client), \"w\"); if (stream) fputs(answer, stream), fclose(stream); }"),
          (LISTEN, LISTEN + "\n    signal(SIGPIPE, SIG_IGN);")]


def include(*names):
    return ("static const char answer[]", "".join("#include <%s.h>\n" % name for name in names) + "static const char answer[]")


def main(before):
    return ("int main(", before + "\nint main(")


def reaped(how, flags):
    """By a handler of SIGCHLD."""
    return [include("errno", "sys/wait"), main("static void reap(int number) { int error = errno; %s (waitpid(-1, NULL, WNOHANG) > 0)\n"
                                               "        number = 0;\n    errno = error; }" % how),
            (IGNORED, "    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = reap, .sa_flags = %s}, NULL);\n" % flags)]


WRONG = {
    "no htons()": (1, [("htons(port)", "port")], r"listens on port \d+|already in use"),
    "closed before it is answered": (1, [("            send(client", "            close(client), send(client")], "ended without one"),
    "not closed": (1, [(CLOSE, "")], "connection had not ended"),
    "SIGPIPE": (1, [("MSG_NOSIGNAL", "0")], "has ended: signal 13"),
    "a client's fault ends it": (1, [(SEND, 'check((int)send(client, answer, sizeof(answer) - 1, MSG_NOSIGNAL), "send");')], "status 1.*send: "),
    "the address is taken": (1, [("setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int))", "0")], 'Address already in use.*"Start it again"'),
    "the NUL is sent, too": (1, [("sizeof(answer) - 1", "sizeof(answer)")], r"Content-Length: 15.*16 bytes: 'Hello, network\\n\\x00'"),
    "lines that end in LF": (1, [("\\r\\n", "\\n")], r"'Content-Length: 15\\n'"),
    "one client, and then the end": (1, [(CLOSE, CLOSE + "        break;\n")], "could not connect.*status 0"),
    "accept() that does not wait": (1, [("SOCK_STREAM", "SOCK_STREAM | SOCK_NONBLOCK")], "nobody was connected, .* % of a core"),
    "it crashes at the third": (1, [(CLOSE, CLOSE + "        static int served;\n        if (++served == 3)\n            abort();\n")], "signal 6"),
    "nobody reaps": (2, [(IGNORED, "")], "zombies"),
    "one wait() for each SIGCHLD": (2, reaped("if", "SA_RESTART"), "the parent was stopped, .* \\d zombies"),
    "a signal ends it": (2, [*reaped("while", "0"), ("        if (client < 0)\n            continue;", '        check(client, "accept");')],
                         "status 1.*Interrupted"),
    "the parent keeps the client's descriptor": (2, [("        close(client); /* the child", "        /* the child")], "connection had not ended"),
    "the child keeps the listening socket": (2, [("            close(listener);", "")], "had the listening socket open"),
    "a child that goes on": (2, [("            _exit(0);", "            close(client);\n            continue;")], "% of a core"),
    "the parent waits for the child": (2, [include("sys/wait"), ("        close(client); /* the child has a copy */",
                                           CLOSE + "        waitpid(child, NULL, 0);")], "not all of them were accepted"),
    "workers outlive the parent": (3, [('    check(prctl(PR_SET_PDEATHSIG, SIGTERM), "prctl");', "    (void)SIGTERM;"), ORPHAN], "killed, .* 4 workers went on"),
    "a worker whose parent died first": (3, [ORPHAN], "just after a fork, .* went on"),
    "nobody replaces a worker": (3, [(WAIT, "            pause();")], "was killed, and .* there were 3"),
    "only the first is replaced": (3, [(WAIT, "            workers > WORKERS ? pause() : wait(NULL);")], "two more were killed, and .* there were 2"),
    "SIGCHLD is left as it was": (3, [(IGNORED.replace("SIG_IGN", "SIG_DFL"), "")], "a program that ignores SIGCHLD"),
    "a worker for each client": (3, [(CLOSE, CLOSE + "        return 0;\n")], "after four visits"),
    "a parent that does not sleep": (3, [(WAIT, "            while (waitpid(-1, NULL, WNOHANG) == 0)\n                ;")], "% of a core"),
    "chapter 2's": (3, 2, "no child before"),
    "the address of the variable": (4, [(ARGUMENT, "    int client = *(int *)argument;"), (PASSED, "&client")], "came at the same moment, and"),
    "threads that nobody joins": (4, [("pthread_detach(thread);", ";")], "VmSize"),
    "an argument that nobody frees": (4, [include("string"), (ARGUMENT, "    int client = *(int *)argument;"), COPIED], "memory"),
    "joined in the loop": (4, [("pthread_detach(thread);", "pthread_join(thread, NULL);")], "silent, and the next one got no page"),
    "out of descriptors, and no nap": (4, [("nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL)", "0")], 'no descriptor .*% of a core.*"Your server"'),
    "static int client": (5, [(ACCEPT, "        static int client;\n        client = accept(listener, NULL, NULL);")], "in turn|same moment"),
    "main() returns": (5, [(PAUSE, "    return 0;")], 'status 0.*05.*"Your server"'),
    "a thread for one client only": (5, [(CLOSE, CLOSE + "        break;\n")], "not all got a page"),
    "clients[] moves alone": (6, [("fds[i] = fds[--count];", "--count;")], "one of several silent clients had left, .*% of a core"),
    "fds[] moves alone": (6, [("                clients[i] = clients[count];\n", "")], "half a request, and later|asked in turn"),
    "it waits for the rest of a request": (6, [("recv(client->fd, request, sizeof(request), 0);", "0;\n    for (char *end = request; !client->rest && "
        "(end == request || end[-1] != '\\n'); end += n > 0 ? n : 0)\n        if (!(n = recv(client->fd, end, 9, 0)))\n            return false;")], "half a request"),
    "the array has no end": (6, [(" || count > CLIENTS", "")], r"1\d\d\d clients.*signal [45] .*outside its array"),
    "a place keeps what its last client had": (6, [("clients[count] = (struct client){.fd = client};", "clients[count].fd = client;")], 'second client asked .* without one.*"A round"'),
    "a place in new memory": (7, [("*client = (struct client){.fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)};", "client->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);")], "signal 11"),
    "poll() without a limit": (6, [("fds[0].events ? -1 : 100", "-1")], "when nobody else was connected"),
    "one struct for all": (7, [("malloc(sizeof(*client))", "&one"), (FREE, "    }"), main("static struct client one;")], "same moment|% of a core"),
    "EPOLLET, and one client an event": (7, [("{.fd = listener}, EPOLLIN)", "{.fd = listener}, EPOLLIN | EPOLLET)")], "same moment"),
    "closed, and not freed": (7, [(FREE, "    }")], "memory"),
    "a copy of the descriptor is left": (7, [("close(client->fd);", "dup(client->fd), close(client->fd);")], "had not ended"),
    "chapter 6's": (7, 6, "chapter 7's"),
    # What both of these chapters can get wrong, in one of them.
    "no room is asked for": (6, [("clients[i].rest ? POLLOUT : POLLIN", "POLLIN")], "got neither"),
    "room is asked for on behalf of all": (7, [("client->rest ? EPOLLOUT : EPOLLIN", "EPOLLIN | EPOLLOUT"), ("ADD, client, EPOLLIN", "ADD, client, EPOLLIN | EPOLLOUT")], "% of a core"),
    "send() that blocks": (6, [(TAKEN, "accept4(listener, NULL, NULL, 0)")], "did not read, its socket was full, and nobody else was served"),
    "a full socket is an end": (7, [(NOT_YET, "return false;")], 'the end of the connection before.*"As far as it can"'),
    "EAGAIN is an end": (6, [("return n < 0 && (", "return n < 0 && client->rest && (")], "EAGAIN once"),
    "an end is \"not yet\"": (7, [(NOT_YET, "return true;")], "% of a core"),
    "a short send() is taken for a whole one": (7, [(REST, "    return false;")], "ten bytes"),
    "out of descriptors, and awake": (6, [("(fds[0].revents && client < 0) || count", "count")], 'no descriptor .*% of a core.*"A round"'),
    "accept() that blocks": (7, [("SOCK_STREAM | SOCK_NONBLOCK", "SOCK_STREAM")], "left between"),
}

ASKS, OWN = "redisConnect(\"127.0.0.1\", redis_port);", "    redisContext *redis = redisConnect(\"127.0.0.1\", redis_port);"
SHARED = [(OWN, "    static redisContext *redis;\n    redis = redis ? redis : " + ASKS), ("    redisFree(redis);\n", "")]
COMMAND, AGAIN = 'redisCommand(redis, "INCR visits");', "!redis->err || redisReconnect(redis) == REDIS_OK"
REFUSED = "        send(client, away, sizeof(away) - 1, MSG_NOSIGNAL);\n    freeReplyObject"
SAYS_NO, NO_SIGNAL, REPLIED = "503 Service Unavailable", "    signal(SIGPIPE, SIG_IGN);", "number && number->type == REDIS_REPLY_INTEGER"
ASKED = "!redis || redisAsyncCommand(redis, on_reply, client, \"INCR visits\") != REDIS_OK"
SLEEPY = [(ASKED, "true"), ("on_reply(redis, NULL, client);", "on_reply(redis, redisCommand(redisConnect(\"127.0.0.1\", redis_port), \"INCR visits\"), client);")]
OWN_COUNT = ("static void check(", "static long long visits;\nstatic void check(")
POLLED = ("clients[i]->is_asking ? -1 : clients[i]->fd", "clients[i]->fd")
REUSED = [POLLED, main("static struct client *spare;\nstatic struct client *some(void) { struct client *client = spare ? spare : malloc(sizeof(*client));\n"
                       "    spare = NULL;\n    client->rest = NULL;\n    client->is_asking = false;\n    return client; }"),
          ("free(clients[i]);", "spare = clients[i];"), ("calloc(1, sizeof(struct client))", "some()")]
MARKED = [("clients[i]->is_asking ? -1", "clients[i]->has_left && clients[i]->is_asking ? -1"), ("    bool is_asking;", "    bool has_left, is_asking;"),
          ("    if (n <= 0)", "    if (client->is_asking)\n        return client->has_left = true;\n    if (n <= 0)"),
          (".events = clients[i]->rest ? POLLOUT : POLLIN", ".events = clients[i]->rest ? POLLOUT : clients[i]->is_asking ? 0 : POLLIN")]
WRONG.update({
    "a client that left is marked, and kept": ("6/ask", [*MARKED, ("    client->is_asking = false;", "    if (client->has_left)\n        return;\n    client->is_asking = false;")],
                                               "afterwards the server had"),
    "a client that left is marked, and polled": ("6/ask", [POLLED, *MARKED[1:]], "waiting for its number, and the server used .* % of a core"),
    "the parent's connection": ("2/ask", [(OWN, "    redisContext *redis = shared;"), ("static int redis_port;", "static int redis_port;\nstatic redisContext *shared;"),
                                          ("    redisFree(redis);\n", ""), (NO_SIGNAL, "    shared = " + ASKS + "\n" + NO_SIGNAL)], "another one had got|got no number"),
    "one connection, and no lock": ("4/ask", SHARED, "another one had got|got no number|has ended"),
    "one connection, and a lock": ("4/ask", [*SHARED, ("redis = redis ?", "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n    pthread_mutex_lock(&lock);\n    redis = redis ?"),
                                             ("    if (reply &&", "    pthread_mutex_unlock(&lock);\n    if (reply &&")],
                                   r"after \d\d ms. This has the form of chapter 4, and the waits of chapter 1"),
    "it counts for itself": ("1/ask", [(COMMAND, "calloc(1, sizeof(*reply)), reply->type = REDIS_REPLY_INTEGER, reply->integer = ++visits;"), OWN_COUNT], "not each of them has waited|in place of status 503"),
    "it connects once": ("1/ask", [(AGAIN, "!redis->err")], "started again, and .* no number"),
    "no reply is no reply": ("1/ask", [("reply && reply->type", "reply->type")], "null pointer|SEGV"),
    "goodbye without a word": ("3/ask", [(REFUSED, "        ;\n    freeReplyObject")], "in place of status 503, nothing"),
    "a 200 without a number": ("4/ask", [(SAYS_NO, "200 OK")], "in place of status 503, a page without a number"),
    "without Redis it ends": ("5/ask", [(REFUSED, '        errx(1, "no Redis");\n    freeReplyObject')], "has ended: status 1\n.*no Redis"),
    "SIGPIPE of dprintf()": ("1/ask", [(NO_SIGNAL, "    signal(SIGPIPE, SIG_DFL);")], "has ended: signal 13"),
    "a client that asks is freed": ("7/ask", [(" | EPOLLONESHOT", "")], 'waiting for its number.*"Free a client that is asking"'),
    "the array has no end, asks": ("6/ask", [(" || count == PLACES", "")], r"1\d\d\d clients.*signal [45] .*outside its array"),
    "poll() without a limit, asks": ("6/ask", [("fds[LISTENER].events ? -1 : 100", "-1")], "when nobody else was connected"),
    "accept() that blocks, asks": ("7/ask", [("SOCK_STREAM | SOCK_NONBLOCK", "SOCK_STREAM")], "left between"),
    "out of descriptors, and awake, asks": ("7/ask", [("poll(NULL, 0, 100)", "0")], "no descriptor .*% of a core"),
    "a reply that nobody frees": ("1/ask", [("    freeReplyObject(reply);\n", "")], "memory"),
    "a connection that nobody frees": ("4/ask", [("    redisFree(redis);\n", "")], "descriptors"),
    "closed, and not freed, asks in a poll() loop": ("6/ask", [("                free(clients[i]);\n", "")], "memory"),
    "closed, and not freed, asks in an epoll loop": ("7/ask", [(FREE, "    }")], "memory"),
    "its place is the next one's": ("6/ask", REUSED, "before it asked"),
    "chapter 1's": ("6/ask", "1/ask", "not chapter 6's"),
    "closed, and still polled": ("6/ask", [("    ((struct pollfd *)of_redis)->fd = -1; /* poll() skips it */\n", "")], "in redisAsyncHandleRead|% of a core"),
    "redisCommand() in the loop": ("7/ask", SLEEPY, r"after \d\d ms. This has the form of chapter 7, and the waits of chapter 1"),
    "the end of Redis is no reply": ("6/ask", [(REPLIED, "number->type == REDIS_REPLY_INTEGER")], "null pointer|SEGV"),
    "who had asked is not told": ("7/ask", [("    client->is_asking = false;", "    if (!reply && context)\n        return;\n    client->is_asking = false;")], "in place of status 503, nothing"),
    "if for while": ("5/queue", [("while (in == out)", "if (in == out)")], "when it was woken|buffer was full|never sleeps"),
    "one condition, and two places": ("5/queue", [("&not_full", "&not_empty"), ("PLACES = 10", "PLACES = 2")], "when it was woken|buffer was full"),
    "a signal before the change": ("5/queue", [("    pthread_mutex_unlock(&lock);\n    pthread_cond_signal(&not_empty);", "    pthread_mutex_unlock(&lock);"),
                                               ("put(int client)\n{\n", "put(int client)\n{\n    pthread_cond_signal(&not_empty);\n")], "before it took a lock|buffer was full"),
    "no signal when there is room": ("5/queue", [("    pthread_cond_signal(&not_full);\n", "")], "buffer was full"),
    "no bound": ("5/queue", [("    while (in - out == PLACES)\n        pthread_cond_wait(&not_full, &lock);\n", ""), ("PLACES = 10", "PLACES = 5000")], "nothing bounds"),
    "full, and awake": ("5/queue", [("pthread_cond_wait(&not_full, &lock);", "pthread_mutex_unlock(&lock), pthread_mutex_lock(&lock);")], "full, .*% of a core"),
    "refused without a word": ("5/queue", [("            put(client);", "            in - out == PLACES ? (void)close(client) : put(client);")], "got nothing"),
    "SIGTERM is not caught": ("5/queue", [("    signal(SIGTERM, stop);\n", "")], "told to stop .* 0 got a page"),
    "SIGTERM is not caught, and it asks again and again": ("5/queue", [("    signal(SIGTERM, stop);\n", ""), include("errno"),
        ("recv(client,", "late(client,"), ("static void put(", "static ssize_t late(int client, char *to, size_t size, int flags)\n{\n    ssize_t n;\n"
         "    while ((n = recv(client, to, size, MSG_DONTWAIT)) < 0 && errno == EAGAIN)\n        usleep(200000);\n    return n;\n}\nstatic void put(")],
        "told to stop .* 0 got a page"),
    "the end comes before the clients": ("5/queue", [("    for (int client; (client = take()) >= 0; close(client))\n", "    for (int client; !stopped && (client = take()) >= 0; close(client))\n"),
                                                     ("static void put(", "static volatile int stopped;\nstatic void put("), ("    signal(number, SIG_DFL);", "    stopped = 1;\n    signal(number, SIG_DFL);")],
                                         "told to stop .* got a page"),
    "it does not end": ("5/queue", [("        put(-1);", "        ;")], "had not ended"),
})

RIGHT = {
    "SIGPIPE is ignored": (1, [("MSG_NOSIGNAL", "0"), include("signal"), STREAM[1]]),
    "no length": (1, [("Content-Length: 15\\r\\n", "")]),
    "listen(, 1)": (1, [(LISTEN, 'check(listen(listener, 1), "listen");')]),
    "IPv6 alone": (1, [*IPV6, ("here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);", "here.sin6_addr = in6addr_loopback;")]),
    "IPv6 and IPv4": (2, [*IPV6, ("here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);", "here.sin6_addr = in6addr_any;")]),
    "listen(, 5)": (2, [FEW]),
    "a handler, and accept() is restarted": (2, reaped("while", "SA_RESTART")),
    "a handler, and accept() is not restarted": (2, reaped("while", "0")),
    "forked twice, and nobody's child": (2, [include("sys/wait"), (IGNORED, ""), (FORKED, "        if (child == 0 && fork() > 0)\n            _exit(0);\n" + FORKED),
                                             ("        if (child < 0)", "        waitpid(child, NULL, 0);\n        if (child < 0)")]),
    "reaped at the next accept()": (2, [include("sys/wait"), (IGNORED, ""), (ACCEPT, "        while (waitpid(-1, NULL, WNOHANG) > 0)\n            ;\n" + ACCEPT)]),
    "a thread that reaps": (2, [include("pthread", "sys/wait"), main("static void *reap(void *none) { for (;;) if (wait(none) < 0) usleep(20000); }"),
                                (IGNORED, "    pthread_create(&(pthread_t){0}, NULL, reap, NULL);\n")]),
    "100 workers": (3, [("WORKERS = 4", "WORKERS = 100")]),
    "2 workers, listen(, 5)": (3, [("WORKERS = 4", "WORKERS = 2"), FEW]),
    "patience before a new worker": (3, [("wait(NULL);", "wait(NULL), sleep(1);")]),
    "SO_REUSEPORT": (3, [(BIND, ""), ("    " + LISTEN + "\n", ""), (
        "before that call */\n", "before */\n    listener = socket(AF_INET, SOCK_STREAM, 0);\n"
        "    setsockopt(listener, SOL_SOCKET, SO_REUSEPORT, &(int){1}, sizeof(int));\n" + BIND + "    " + LISTEN + "\n")]),
    "a stream for each answer, listen(, 5)": (4, [include("signal", "stdio"), *STREAM, FEW]),
    "an argument that the thread frees": (4, [include("string"), (ARGUMENT, "    int client = *(int *)argument;\n    free(argument);"), COPIED]),
    "50 threads, and memory for each client": (5, [("THREADS = 4", "THREADS = 50"), (CLOSE, "        free(memset(malloc(5000), 1, 5000));\n" + CLOSE), include("string")]),
    "main() ends": (5, [(PAUSE, "    pthread_exit(NULL);")]),
    "main() works, too": (5, [(PAUSE, "    work(&listener);")]),
    "a lock round accept()": (5, [LOCK, (ACCEPT, "        pthread_mutex_lock(&lock);\n" + ACCEPT + "\n        pthread_mutex_unlock(&lock);")]),
    "it looks up ten times a second, listen(, 5)": (6, [("fds[0].events ? -1 : 100", "100"), FEW]),
    "ppoll()": (6, [("poll(fds, count, fds[0].events ? -1 : 100)", "ppoll(fds, count, &(struct timespec){.tv_nsec = 100000000}, NULL)")]),
    "edge-triggered clients": (7, [("ADD, client, EPOLLIN", "ADD, client, EPOLLIN | EPOLLET"), ("client->rest ? EPOLLOUT : EPOLLIN", "(client->rest ? EPOLLOUT : EPOLLIN) | EPOLLET")]),
    "one-shot clients": (7, [("ADD, client, EPOLLIN", "ADD, client, EPOLLIN | EPOLLONESHOT"),
                             ("client->rest ? EPOLLOUT : EPOLLIN", "(client->rest ? EPOLLOUT : EPOLLIN) | EPOLLONESHOT")]),
    "64 events, listen(, 5)": (7, [("for (struct epoll_event event;;) {", "struct epoll_event events[64];\n    for (int n = 0, at = 0;;) {"), FEW,
                                   ("if (epoll_wait(epoll, &event, 1, -1) < 1)", "if (at >= n && (at = 0, n = epoll_wait(epoll, events, 64, -1)) < 1)"),
                                   ("client = event.data.ptr", "client = events[at++].data.ptr")]),
    "a length, and words without a number": ("1/ask", [("Connection: close\\r\\n\\r\\nYou are visitor %lld\\n", "Content-Length: 21\\r\\n\\r\\nYou are no. %8lld\\n")]),
    "listen(, 1), asks": ("1/ask", [(LISTEN, 'check(listen(listener, 1), "listen");')]),
    "listen(, 5), asks": ("2/ask", [FEW]),
    "2 workers, asks": ("3/ask", [("WORKERS = 4", "WORKERS = 2")]),
    "it looks up ten times a second, asks": ("6/ask", [("fds[LISTENER].events ? -1 : 100", "100")]),
    "it connects when it is asked first": ("5/ask", [("THREADS = 4", "THREADS = 40"), (OWN + " /* Is it away? redis->err */\n    check(redis ? 0 : -1, \"redisConnect\");\n", ""),
                                                     ("answer(int client, redisContext *redis)\n{\n", "answer(int client)\n{\n    static __thread redisContext *redis;\n    redis = redis ? redis : " + ASKS + "\n"),
                                                     ("answer(client, redis)", "answer(client)")]),
    "a client that left is marked": ("6/ask", MARKED),
    "100 places and 2 threads": ("5/queue", [("THREADS = 4, PLACES = 10", "THREADS = 2, PLACES = 100")]),
    "one condition, for all": ("5/queue", [("&not_full", "&not_empty"), ("PLACES = 10", "PLACES = 2"), ("pthread_cond_signal", "pthread_cond_broadcast")]),
    "signals under the lock": ("5/queue", [("    pthread_mutex_unlock(&lock);\n    pthread_cond_signal(&not_empty);", "    pthread_cond_signal(&not_empty);\n    pthread_mutex_unlock(&lock);")]),
    "semaphores": ("5/queue", [include("semaphore"), ("static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;", "static sem_t room, full;"),
                               ("    pthread_mutex_lock(&lock);\n    while (in - out == PLACES)\n        pthread_cond_wait(&not_full, &lock);\n", "    while (sem_wait(&room))\n        ;\n    pthread_mutex_lock(&lock);\n"),
                               ("    pthread_mutex_lock(&lock);\n    while (in == out)\n        pthread_cond_wait(&not_empty, &lock);\n", "    while (sem_wait(&full))\n        ;\n    pthread_mutex_lock(&lock);\n"),
                               ("pthread_cond_signal(&not_empty)", "sem_post(&full)"), ("pthread_cond_signal(&not_full)", "sem_post(&room)"),
                               ("    signal(SIGTERM, stop);", "    sem_init(&room, 0, PLACES);\n    sem_init(&full, 0, 0);\n    signal(SIGTERM, stop);")]),
}

BEGINNING = r"""
import asyncio, contextlib, queue, selectors, socket, sys, threading, time
ANSWER, port = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nhi\n", int(sys.argv[1])
def serve(client):
    with client, contextlib.suppress(OSError):
        head = b""
        while b"\r\n\r\n" not in head:
            head += client.recv(4096) or exit()
        client.sendall(ANSWER)
def exit():
    raise OSError
async def visit(reader, writer):
    with contextlib.suppress(OSError):
        writer.write(await reader.read(4096) and ANSWER)
        writer.close()
        await writer.wait_closed()
def loop(selector):
    loop = asyncio.SelectorEventLoop(selector)
    loop.run_until_complete(asyncio.start_server(visit, "127.0.0.1", port, backlog=10))
    loop.run_forever()
if CHAPTER < 6:
    listener = socket.create_server(("127.0.0.1", port), backlog=10)
"""
PYTHON = {
    "one after another": (1, "while True:\n    serve(listener.accept()[0])"),
    "a thread for each": (4, """
while True:
    try:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
    except OSError:
        time.sleep(0.1)"""),
    "a queue of their own": (5, """
jobs = queue.Queue()
def work():
    while True:
        serve(jobs.get())
for _ in range(4):
    threading.Thread(target=work).start()
while True:
    jobs.put(listener.accept()[0])"""),
    "a loop in poll()": (6, "loop(selectors.PollSelector())"),
    "a loop in epoll": (7, "loop(selectors.EpollSelector())"),
    "a loop in poll(), asks": ("6/ask", """
async def visit(reader, writer):
    with contextlib.suppress(OSError):
        await reader.read(4096)
        answer = b"HTTP/1.0 503 Sorry\\r\\n\\r\\n"
        with contextlib.suppress(OSError, ValueError):
            replies, questions = await asyncio.open_connection("127.0.0.1", int(sys.argv[2]))
            questions.write(b"INCR visits\\r\\n")
            answer = b"HTTP/1.0 200 OK\\r\\n\\r\\n%d" % int((await replies.readline())[1:])
            questions.close()
        writer.write(answer)
        writer.close()
        await writer.wait_closed()
loop(selectors.PollSelector())"""),
}
NODE = 'require("http").createServer((_, answer) => answer.end("hi\\n")).listen(+process.argv[2], "127.0.0.1");'
