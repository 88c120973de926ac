"""Wrong answers to chapter 3's exercises."""

SPREAD = "{1, 100 / workers}"

CLEARED = "    busy[number] = false; /* whatever the last worker of that number was doing */\n"

NOT_BEFORE = "    place->not_before = now + place->backoff_ms;\n"

ANSWERS = {
    "herd": {
        "a number that is near the mean of most teams": [(SPREAD, "{1, 19}")],
    },
    "scoreboard": {
        "no place is cleared": [(CLEARED, "")],
    },
    "supervisor": {
        "a fixed wait": [(NOT_BEFORE, NOT_BEFORE.replace("place->backoff_ms", "500"))],
        "a wait only if the plug-in is missing": [
            ("static void empty(struct place *place)", "static void empty(struct place *place, int number)"),
            ("empty(&places[i]);", "empty(&places[i], i);"),
            ("    if (now - place->born >= YOUNG_MS)\n", "    if (prepare(number))\n")],
        "as in the chapter, one patience for all": [
            ("static void empty(", "static int64_t all_wait;\n\nstatic void empty("),
            (NOT_BEFORE, "    if (now >= all_wait)\n        all_wait = now + place->backoff_ms;\n"),
            ("clock_now_ms() >= places[i].not_before", "clock_now_ms() >= all_wait")],
        "one death for a signal": [("    while ((pid = waitpid", "    if ((pid = waitpid"),
                                   ("        children_wait(FIRST_BACKOFF_MS / 2);\n", "        children_wait(1000);\n")],
    },
}
