"""Wrong answers to chapter 3's exercises."""

ACCEPT = "        [ACCEPT] = {1, 0},                /* the worker that has slept longest */\n"
FLOCK = "        [FLOCK] = {2, 0},                 /* that worker, and the next one to get the lock */\n"
SPREAD = "{1, 100 / workers}"
POLL = "{workers, 0}"

WAITING = "    return net_accept_queue_length(worker->listener);\n"
POLICY = """\
    if (stop_requested())
        return 1; /* the server stops, and no client is waited for any more */
""" + WAITING
AFTER_LOOKS = """\
    static int looks;
    (void)worker;
    return stop_requested() || ++looks %% %d == 0;
"""

CLEARED = "    busy[number] = false; /* whatever the last worker of that number was doing */\n"
COUNTS = """\
        busy[number] = true;
        serve_client(worker, client, &redis); /* owns client now, closes it */
        busy[number] = false;
"""
SUM = """\
    for (int number = 0; number < places; number++)
        now += busy[number];
"""
ONE_COUNT = [
    (COUNTS, """\
        atomic_fetch_add(count, 1);
        serve_client(worker, client, &redis); /* owns client now, closes it */
        atomic_fetch_sub(count, 1);
"""),
    ("static _Atomic bool *busy; ", "#include <stdatomic.h>\nstatic atomic_int *count;\nstatic _Atomic bool *busy; "),
    ("    if (!workers || busy == MAP_FAILED)\n",
     "    count = mmap(NULL, sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);\n"
     "    if (!workers || busy == MAP_FAILED)\n"),
    (SUM, "    (void)places;\n    now = *count;\n"),
]
REPLACED = "                start_worker(worker, server, number);\n"

WANTED = "    unsigned wanted = (unsigned)worker->options->workers;\n"
WAIT = "        children_wait(FIRST_BACKOFF_MS / 2);\n"
JUDGED = "            backoff_ms = life_ms < YOUNG_MS ? next_backoff(backoff_ms) : 0;\n"
UNTIL = "            not_before = clock_now_ms() + backoff_ms;\n"
REAPED = "        int64_t life_ms = children_reap(&children);\n"

ANSWERS = {
    "herd": {
        "a table for four workers": [(SPREAD, "{1, 25}"), (POLL, "{4, 0}")],
        "a table for five workers": [(SPREAD, "{1, 20}"), (POLL, "{5, 0}")],
        "accept wakes all": [(ACCEPT, "        [ACCEPT] = {workers, 0},\n")],
        "a lock wakes one": [(FLOCK, "        [FLOCK] = {1, 0},\n")],
        "a lock wakes all": [(FLOCK, "        [FLOCK] = {workers, 0},\n")],
        "poll wakes one": [(POLL, "{1, 0}")],
        "one way, under four names": [
            ("    enum way way = choose_way(options.name);\n", "    choose_way(options.name);\n    enum way way = ACCEPT;\n"),
            (FLOCK, "        [FLOCK] = {1, 0},\n"), (SPREAD, "{1, 0}"), (POLL, "{1, 0}")],
        "nobody waits": [(SPREAD, "{1, 0}")],
        "half of them wait": [(SPREAD, "{1, 50}")],
        "a number that is near the mean of most teams": [(SPREAD, "{1, 19}")],
        "all but one wait": [(SPREAD, "{1, 100 - 100 / workers}")],
    },
    "politeness": {
        "never": [(POLICY, "    (void)worker;\n    return stop_requested();\n")],
        "always": [(POLICY, "    (void)worker;\n    return 1;\n")],
        "not at the end": [(POLICY, WAITING)],
        **{"after %d looks" % looks: [(POLICY, AFTER_LOOKS % looks)] for looks in (5, 20, 30)},
        "for two clients only": [(WAITING, WAITING.replace(";", " > 1;"))],
        "for ever, once a client has waited": [
            (WAITING, "    static int waited;\n" + WAITING.replace("return", "waited +=") + "    return waited;\n")],
        "a sleep first": [(WAITING, "    poll(NULL, 0, 6000);\n" + WAITING),
                          ('#include "net.h"\n', '#include "net.h"\n#include <poll.h>\n')],
    },
    "scoreboard": {
        "one count": ONE_COUNT,
        "one count that only goes down when a worker dies": [*ONE_COUNT, (
            REPLACED, "            {\n                if (*count > 0)\n                    --*count;\n"
            + REPLACED + "                break;\n            }\n")],
        "a death sets it to 0": [*ONE_COUNT, (
            REPLACED, "            {\n                *count = 0;\n" + REPLACED
            + "                break;\n            }\n")],
        "a death clears all places": [(
            CLEARED, "    for (int i = 0; workers[number] && i < 5; i++)\n        busy[i] = false;\n")],
        "no place is cleared": [(CLEARED, "")],
        "memory of its own": [("MAP_SHARED | MAP_ANONYMOUS", "MAP_PRIVATE | MAP_ANONYMOUS")],
        "it only goes up": [(COUNTS, COUNTS.replace("        busy[number] = false;\n", ""))],
        "always 0": [(SUM, "    (void)places;\n")],
        "the workers that live": [(SUM, SUM.replace("busy[number]", "workers[number] > 0"))],
        "the dead are not replaced": [(REPLACED, "                busy[number] = false;\n")],
    },
    "supervisor": {
        "a constant": [(WANTED, "    unsigned wanted = 4;\n")],
        "a fixed wait for all": [(JUDGED, "            (void)next_backoff;\n            backoff_ms = 500;\n")],
        "a short wait for all": [(JUDGED, "            (void)next_backoff;\n            backoff_ms = 200;\n")],
        "a wait only if the plug-in is missing": [(JUDGED, JUDGED.replace("life_ms < YOUNG_MS", "!prepare()"))],
        "a sleep in the loop": [(WAIT, "        usleep(400000);\n")],
        "no wait": [(JUDGED + UNTIL, "            (void)next_backoff, (void)backoff_ms;\n")],
        "zombies stay": [(REAPED, "        int64_t life_ms = -1;\n")],
        "the kernel reaps": [(REAPED, "        int64_t life_ms = -1;\n"), (
            "    int backoff_ms = 0;\n", "    int backoff_ms = 0;\n    signal(SIGCHLD, SIG_IGN);\n")],
        "it gives up": [(JUDGED, """\
            static int young;
            (void)next_backoff;
            if (life_ms < YOUNG_MS && ++young > 3)
                wanted = 0;
""")],
        "one death for a signal": [(REAPED, """\
        int64_t life_ms = -1;
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        struct child *child = NULL;
        if (pid > 0)
            HASH_FIND_INT(children.by_pid, &pid, child);
        if (child) {
            life_ms = clock_now_ms() - child->born;
            HASH_DEL(children.by_pid, child);
        }
"""), (WAIT, "        children_wait(1000);\n"), ("#include <unistd.h>\n", "#include <sys/wait.h>\n#include <unistd.h>\n")],
        "a wait that gets too long": [("    ms = ms ? 2 * ms", "    ms = ms ? 1000 * ms"), (
            "    LONGEST_BACKOFF_MS = 2000,", "    LONGEST_BACKOFF_MS = 60000,")],
    },
}
