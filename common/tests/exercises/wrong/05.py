"""Wrong answers to the exercises of chapter 5: see test_exercises."""

# ---- little --------------------------------------------------------------------------------

SMALLER = "    return 1000 * (wanted < most ? wanted : most);\n"

LITTLE = {
    "a table of the answers of one run": [
        (SMALLER, "    return pause ? 18 : clients > workers ? 36 : 9;\n")],
}

# ---- full ----------------------------------------------------------------------------------

WAITS = "    down(&places_free);\n"
TAKES = "    int client = clients[out++ % PLACES];\n    pthread_mutex_unlock(&lock);\n"

FULL = {
    "a place for everybody": [("PLACES = 10", "PLACES = 1000")],
    "it looks again and again": [(WAITS, "    while (sem_trywait(&places_free) < 0)\n        sched_yield();\n")],
    "it looks again after a nap": [(WAITS, "    while (sem_trywait(&places_free) < 0)\n        usleep(1000);\n")],
    "workers that nap": [("    down(&places_filled);\n", "    while (sem_trywait(&places_filled) < 0)\n        usleep(1000);\n")],
    "workers that take no lock": [("    down(&places_filled);\n    pthread_mutex_lock(&lock);\n", "    down(&places_filled);\n"),
                                  (TAKES, "    int client = clients[out++ % PLACES];\n")],
}

# ---- p99 -----------------------------------------------------------------------------------

CHOICE = "        if (!visit->wants_page || pages < WORKERS - 1)\n            return visit;\n"
SEEN = "    bool page = wants_page(client);\n"

P99 = {
    "last in, first out": [(CHOICE, "        if (!STAILQ_NEXT(visit, next))\n            return visit;\n")],
    "the thread that accepts serves the files": [
        (SEEN, SEEN + "    if (!page) {\n"
         "        serve_client(team.own, client, &team.redis);\n        return true;\n    }\n")],
}

ANSWERS = {"little": LITTLE, "full": FULL, "p99": P99}
