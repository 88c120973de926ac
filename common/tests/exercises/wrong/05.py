"""Wrong answers to the exercises of chapter 5: see test_wrong."""

# ---- little --------------------------------------------------------------------------------

WANTED = "    double wanted = clients / (page + pause); /* if nobody has to wait for a worker */\n"
MOST = "    double most = workers / page;\n"
SMALLER = "    return 1000 * (wanted < most ? wanted : most);\n"

LITTLE = {
    "a constant": [(SMALLER, "    return 14;\n")],
    "a table of the answers of one run": [
        (SMALLER, "    return pause ? 18 : clients > workers ? 36 : 9;\n")],
    "the clients do not matter": [(SMALLER, "    return 1000 * most;\n")],
    "the workers do not matter": [(SMALLER, "    return 1000 * wanted;\n")],
    "the pause does not matter": [("(page + pause)", "page")],
    "the pause keeps a worker busy, too": [(MOST, "    double most = workers / (page + pause);\n")],
    "the larger of the two": [("wanted < most ?", "wanted > most ?")],
    "one command": [("3 * ms", "1 * ms")],
    "two commands": [("3 * ms", "2 * ms")],
    "four commands": [("3 * ms", "4 * ms")],
    "seconds for milliseconds": [("1000 * (wanted", "(wanted")],
}

# ---- wakeup --------------------------------------------------------------------------------

SIGNALS = ("    for (int i = 0; i < added; i++)\n        pthread_cond_signal(&queue.changed); "
           "/* wakes one worker, and each client needs one */\n")
SIGNAL = "    pthread_cond_signal(&queue.changed);\n"
BROADCAST = SIGNAL.replace("signal", "broadcast")
WAIT = ("    while (queue.count == 0 && !queue.closed)\n"
        "        pthread_cond_wait(&queue.changed, &queue.lock);\n")
TIMED = ("    while (queue.count == 0 && !queue.closed) {\n        struct timespec limit;\n"
         "        clock_gettime(CLOCK_REALTIME, &limit);\n        limit.tv_sec += %d;\n"
         "        limit.tv_nsec += %d;\n        if (limit.tv_nsec >= 1000000000) {\n"
         "            limit.tv_sec++;\n            limit.tv_nsec -= 1000000000;\n        }\n"
         "        pthread_cond_timedwait(&queue.changed, &queue.lock, &limit);\n    }\n")
TIME = ("#include <pthread.h>\n", "#include <pthread.h>\n#include <time.h>\n")
TICK = "            continue; /* a tick, or a signal */\n"
LATER = ("        {\n            if (queue.count > 0)\n                pthread_cond_signal(&queue.changed);\n"
         "            continue;\n        }\n")
LOOP = ("    while (queue.count == 0 && !queue.closed) {\n        pthread_mutex_unlock(&queue.lock);\n"
        "%s        pthread_mutex_lock(&queue.lock);\n    }\n")


def timed(seconds):
    return [TIME, (SIGNALS, SIGNAL), (WAIT, TIMED % (seconds, seconds % 1 * 1e9))]


WAKEUP = {
    **{"a timed wait of %g s" % seconds: timed(seconds) for seconds in (0.1, 1, 2, 3, 60)},
    "a busy loop": [(WAIT, LOOP % "")],
    "a loop that sleeps for a millisecond": [(WAIT, LOOP % "        usleep(1000);\n")],
    "a loop that sleeps for half a second": [(WAIT, LOOP % "        usleep(500000);\n")],
    "one signal, with the lock held": [
        ("    pthread_mutex_unlock(&queue.lock);\n" + SIGNALS,
         SIGNAL + "    pthread_mutex_unlock(&queue.lock);\n")],
    "one signal, after a while": [(SIGNALS, "    usleep(10000);\n" + SIGNAL)],
    "two signals": [(SIGNALS, SIGNAL + SIGNAL)],
    "one signal too few": [("for (int i = 0; i < added; i++)", "for (int i = 1; i < added; i++)"),
                           ("    return added;\n}\n\n/* The next", "    if (added == 1)\n    " + SIGNAL
                            + "    return added;\n}\n\n/* The next")],
    "a signal for each that is left in the queue, by the worker that comes back": [
        (SIGNALS, SIGNAL),
        ("        serve_client(argument, client, &team.redis); /* owns client now, closes it */\n",
         "    {\n        serve_client(argument, client, &team.redis);\n"
         "        pthread_cond_signal(&queue.changed);\n    }\n")],
    "the main thread wakes one more at each tick": [(SIGNALS, SIGNAL), (TICK, LATER)],
    "the main thread wakes one more again and again": [
        (SIGNALS, SIGNAL), (TICK, LATER),
        ("    int clients[64];\n    while", "    const struct timeval often = {.tv_usec = 2000};\n"
         "    setsockopt(worker->listener, SOL_SOCKET, SO_RCVTIMEO, &often, sizeof(often));\n"
         "    int clients[64];\n    while")],
    "a busy loop where waits return early, and if for while where they do not": [
        (WAIT, "    if (getenv(\"LD_PRELOAD\"))\n" + LOOP % ""
         + "    else if (queue.count == 0 && !queue.closed)\n"
           "        pthread_cond_wait(&queue.changed, &queue.lock);\n"),
        ("#include <pthread.h>\n", "#include <pthread.h>\n#include <stdlib.h>\n")],
    "the main thread takes no lock": [
        ("    pthread_mutex_lock(&queue.lock);\n    while (added", "    while (added"),
        ("clients[added++];\n    pthread_mutex_unlock(&queue.lock);\n", "clients[added++];\n")],
    "more workers": [("WORKERS = 4", "WORKERS = 8"), (SIGNALS, SIGNAL)],
    "a broadcast, and if for while": [(SIGNALS, BROADCAST),
                                      ("    while (queue.count == 0 &&", "    if (queue.count == 0 &&")],
    "enough signals, and if for while": [("    while (queue.count == 0 &&", "    if (queue.count == 0 &&")],
}

# ---- drain ---------------------------------------------------------------------------------

LEFT = "    if (queue.count > 0) { /* closed or not: all that are inside are served */\n"
CLOSE = "    close_queue();\n    for (int i"
AFTER = "    team_report("
POLL = ("    pthread_mutex_lock(&queue.lock);\n    while (queue.count > 0) {\n"
        "        pthread_mutex_unlock(&queue.lock);\n%s        pthread_mutex_lock(&queue.lock);\n    }\n"
        "    pthread_mutex_unlock(&queue.lock);\n")
AS_BEFORE = (LEFT, "    if (!queue.closed) {\n")
BEST = "    for (; queue.count > 0; queue.count--, queue.first = (queue.first + 1) % QUEUE_MOST)\n        "


def before_closing(text):
    return [AS_BEFORE, (CLOSE, text + CLOSE)]


DRAIN = {
    **{"%d s before it closes the queue" % seconds: before_closing("    sleep(%d);\n" % seconds)
       for seconds in (1, 4, 8)},
    "a second before it ends": [AS_BEFORE, (AFTER, "    sleep(1);\n" + AFTER)],
    "a busy loop until the queue is empty": before_closing(POLL % ""),
    "a loop that sleeps for a millisecond until the queue is empty":
        before_closing(POLL % "        usleep(1000);\n"),
    "a loop that sleeps for half a second until the queue is empty":
        before_closing(POLL % "        usleep(500000);\n"),
    "503 for all in the queue": [AS_BEFORE, (
        AFTER, BEST + "serve_unavailable(team.own, queue.clients[queue.first]);\n" + AFTER)],
    "503 for all in the queue, at once": [AS_BEFORE, (
        CLOSE, BEST + "serve_unavailable(team.own, queue.clients[queue.first]);\n" + CLOSE)],
    "twelve more for each worker": [
        (LEFT, "    static int more = 12 * WORKERS;\n    if (queue.count > 0 && (!queue.closed || more-- > 0)) {\n")],
    "the queue is never closed": [("    queue.closed = true;\n", "")],
    "the queue is closed when it is empty": [
        ("    queue.closed = true;\n", "    queue.closed = queue.count == 0;\n")],
    "nobody is told that it is closed": [("    pthread_cond_broadcast(&queue.changed);\n", "")],
    "one worker is told that it is closed": [
        ("    pthread_cond_broadcast(&queue.changed);\n", "    pthread_cond_signal(&queue.changed);\n")],
    "the workers are not joined": [("        pthread_join(team.threads[i], NULL);\n",
                                    "        pthread_detach(team.threads[i]);\n")],
    "a worker ends when the queue is empty": [
        ("    while (queue.count == 0 && !queue.closed)\n", "    while (queue.count == 0 && false)\n")],
    "a worker waits while it is closed": [
        ("    while (queue.count == 0 && !queue.closed)\n", "    while (queue.count == 0 || queue.closed)\n")],
    "the listener stays open": [("    close(worker->listener);\n", "")],
}

# ---- bounded -------------------------------------------------------------------------------

ROOM = "    bool room = queue.count < QUEUE_MOST; /* checked and taken under one lock */\n"
FEWER = "        queue.count--;\n"
FREE = "    else\n        free(visit);\n"
MORE = "        queue.count++;\n"
WAKES = "    if (room)\n        pthread_cond_signal(&queue.changed);\n"
TAKEN = "    pthread_mutex_unlock(&queue.lock);\n    int client = visit ? visit->client : -1;\n"
LOCKS = "    visit->client = client;\n    pthread_mutex_lock(&queue.lock);\n"
REFUSE = "            serve_unavailable(worker, client);\n"
SERVE = "        serve_client(argument, client, &team.redis); /* owns client now, closes it */\n"

BOUNDED = {
    "one too many": [("queue.count < QUEUE_MOST;", "queue.count <= QUEUE_MOST;")],
    "one too few": [("queue.count < QUEUE_MOST;", "queue.count < QUEUE_MOST - 1;")],
    "the count never goes down": [(FEWER, "        ;\n")],
    "whoever is served counts, too": [
        (FEWER, "        ;\n"),
        (SERVE, "    {\n" + SERVE + "        pthread_mutex_lock(&queue.lock);\n        queue.count--;\n"
         "        pthread_mutex_unlock(&queue.lock);\n    }\n")],
    "a smaller backlog": [(ROOM, "    bool room = true;\n"),
                          ("    accept_clients(team.own);\n", "    listen(team.own->listener, 9);\n    accept_clients(team.own);\n")],
    "the fifteenth client and all after it": [
        (ROOM, "    static int came;\n    bool room = ++came <= WORKERS + QUEUE_MOST;\n")],
    "the main thread waits until there is room": [
        (ROOM, "    while (queue.count == QUEUE_MOST)\n"
         "        pthread_cond_wait(&queue.changed, &queue.lock);\n    bool room = true;\n"),
        (FEWER, FEWER + "        pthread_cond_broadcast(&queue.changed);\n")],
    "the main thread sleeps until there is room": [
        (ROOM, "    while (queue.count == QUEUE_MOST) {\n        pthread_mutex_unlock(&queue.lock);\n"
         "        usleep(1000);\n        pthread_mutex_lock(&queue.lock);\n    }\n    bool room = true;\n")],
    "closed without a word": [(REFUSE, "            close(client);\n")],
    "refused, and not closed": [(REFUSE, '            send(client, "HTTP/1.1 503 No\\r\\n'
                                 'Content-Length: 0\\r\\n\\r\\n", 41, MSG_NOSIGNAL);\n')],
    "the first in line makes room": [
        (ROOM, "    bool room = true;\n    if (queue.count == QUEUE_MOST) {\n"
         "        struct visit *first = STAILQ_FIRST(&queue.visits);\n"
         "        STAILQ_REMOVE_HEAD(&queue.visits, next);\n        queue.count--;\n"
         "        int gone = first->client;\n        first->client = client;\n"
         "        visit->client = gone;\n        free(visit);\n        visit = first;\n"
         "        close(gone);\n    }\n")],
    "the one that is refused is not freed": [(FREE, "")],
    "the count goes down without the lock": [(FEWER, "        ;\n"), (TAKEN, TAKEN + "    queue.count -= visit != NULL;\n")],
    "the count goes up without the lock": [(MORE, ""), (WAKES, "    queue.count += room;\n" + WAKES)],
    "the room is looked for without the lock": [(ROOM, ""), (LOCKS, ROOM + LOCKS)],
    "a 503 when its turn comes": [
        (ROOM, "    bool room = true, late = queue.count >= QUEUE_MOST;\n"
         "    if (late)\n        visit->client = -client - 2;\n"),
        ("        serve_client(argument, client, &team.redis); /* owns client now, closes it */\n",
         "        if (client < -1)\n            serve_unavailable(argument, -client - 2);\n"
         "        else\n            serve_client(argument, client, &team.redis);\n"),
        ("    while ((client = take()) >= 0)\n", "    while ((client = take()) != -1)\n")],
}

# ---- p99 -----------------------------------------------------------------------------------

CHOICE = "        if (!visit->wants_page || queue.pages < WORKERS - 1)\n            return visit;\n"
INSERT = "    STAILQ_INSERT_TAIL(&queue.visits, visit, next);\n"
SERVE_VISIT = "        serve_client(argument, visit->client, &team.redis); /* owns client now, closes it */\n"

P99 = {
    "first in, first out": [(CHOICE, "        return visit;\n")],
    "last in, first out": [
        (CHOICE, "        return visit;\n"), (INSERT, INSERT.replace("INSERT_TAIL", "INSERT_HEAD"))],
    "pages are refused": [
        (SERVE_VISIT, "        if (visit->wants_page)\n            serve_unavailable(argument, visit->client);\n"
         "        else\n    " + SERVE_VISIT)],
    "more workers": [("enum { WORKERS = 4 };", "enum { WORKERS = 32 };")],
    "pages first": [("    return NULL;\n}\n\n/* The next visit", "    return STAILQ_FIRST(&queue.visits);\n}\n\n/* The next visit"),
                    ("if (!visit->wants_page || queue.pages < WORKERS - 1)", "if (visit->wants_page)")],
    "one page at a time": [("queue.pages < WORKERS - 1", "queue.pages < 1")],
    "the thread that accepts serves the files": [
        ("        else if (!put(client))\n", "        else if (!wants_page(client))\n"
         "            serve_client(worker, client, &team.redis);\n        else if (!put(client))\n")],
    "a page is a file of its own": [
        ("static const char page[] = \"GET /guestbook\";",
         "static const char page[] = \"GET /guestbooks\";")],
}

ANSWERS = {"little": LITTLE, "wakeup": WAKEUP, "drain": DRAIN, "bounded": BOUNDED, "p99": P99}
