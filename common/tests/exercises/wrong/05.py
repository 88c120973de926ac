"""Wrong answers to the exercises of chapter 5: see test_exercises."""

# ---- little --------------------------------------------------------------------------------

SMALLER = "    return 1000 * (wanted < most ? wanted : most);\n"

LITTLE = {
    "a table of the answers of one run": [
        (SMALLER, "    return pause ? 18 : clients > workers ? 36 : 9;\n")],
    "the workers do not matter": [(SMALLER, "    return 1000 * wanted;\n")],
    "one command": [("3 * ms", "1 * ms")],
}

# ---- wakeup --------------------------------------------------------------------------------

EMPTY = "STAILQ_EMPTY(&queue.visits)"
SIGNALS = ("    for (int i = 0; i < added; i++)\n        pthread_cond_signal(&queue.changed); "
           "/* wakes one worker, and each client needs one */\n")
SIGNAL = "    pthread_cond_signal(&queue.changed);\n"
TICK = "            continue; /* a tick, or a signal */\n"
LATER = ("        {\n            if (!%s)\n                pthread_cond_signal(&queue.changed);\n"
         "            continue;\n        }\n" % EMPTY)

WAKEUP = {
    "the main thread wakes one more at each tick": [(SIGNALS, SIGNAL), (TICK, LATER)],
    "the main thread takes no lock": [
        ("    pthread_mutex_lock(&queue.lock);\n    while (added", "    while (added"),
        ("        added++;\n    pthread_mutex_unlock(&queue.lock);\n", "        added++;\n")],
    "enough signals, and if for while": [("    while (STAILQ", "    if (STAILQ")],
}

# ---- full ----------------------------------------------------------------------------------

WAITS = "    down(&places_free);\n"
TAKES = "    int client = clients[out++ % PLACES];\n    pthread_mutex_unlock(&lock);\n"

FULL = {
    "a place for everybody": [("PLACES = 10", "PLACES = 1000")],
    "503 for who finds no place": [(WAITS, "    if (sem_trywait(&places_free) < 0)\n        return client < 0;\n")],
    "it looks again and again": [(WAITS, "    while (sem_trywait(&places_free) < 0)\n        sched_yield();\n")],
    "workers that take no lock": [("    down(&places_filled);\n    pthread_mutex_lock(&lock);\n", "    down(&places_filled);\n"),
                                  (TAKES, "    int client = clients[out++ % PLACES];\n")],
    "the free places are not counted": [(WAITS, "")],
}

# ---- p99 -----------------------------------------------------------------------------------

CHOICE = "        if (!visit->wants_page || pages < WORKERS - 1)\n            return visit;\n"
SEEN = "    bool page = wants_page(client);\n"

P99 = {
    "last in, first out": [(CHOICE, "        if (!STAILQ_NEXT(visit, next))\n            return visit;\n")],
    "pages are refused": [(SEEN, SEEN + "    if (page)\n        return false;\n")],
    "the thread that accepts serves the files": [
        (SEEN, SEEN + "    if (!page) {\n"
         "        serve_client(team.own, client, &team.redis);\n        return true;\n    }\n")],
}

ANSWERS = {"little": LITTLE, "wakeup": WAKEUP, "full": FULL, "p99": P99}
