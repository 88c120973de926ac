"""Wrong answers to 05/p99 (see test_wrong)."""

CHOICE = "        if (!visit->wants_page || queue.pages < WORKERS - 1)\n            return visit;\n"
INSERT = "    STAILQ_INSERT_TAIL(&queue.visits, visit, next);\n"
SERVE = "        serve_client(argument, visit->client, &team.redis); /* owns client now, closes it */\n"

ANSWERS = {
    "p99": {
        "first in, first out": [(CHOICE, "        return visit;\n")],
        "last in, first out": [
            (CHOICE, "        return visit;\n"), (INSERT, INSERT.replace("INSERT_TAIL", "INSERT_HEAD"))],
        "pages are refused": [
            (SERVE, "        if (visit->wants_page)\n            serve_unavailable(argument, visit->client);\n"
             "        else\n    " + SERVE)],
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
    },
}
