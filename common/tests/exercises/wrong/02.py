"""Wrong answers to chapter 2's exercises."""

REAP = "        children_reap(children);\n        if (client < 0)\n            continue;\n"
CLOSES = """\
    close(listener);         /* the port is free when the parent has closed it, too */
    close(served[1]);        /* or the pipe would never end: we could still write to it */
"""

ANSWERS = {
    "cap": {
        "a sleep, for a place": [(REAP, "        if (client >= 0)\n            usleep(200000);\n" + REAP)],
        "one child more tells them": [("    serve_unavailable(worker, client); /* 503; owns client now, closes it */\n", """\
    if (fork() == 0) {
        serve_unavailable(worker, client);
        _exit(0);
    }
    close(client);
""")],
    },
    "descriptors": {
        "the children close": [(CLOSES, "    close(listener);\n"), (
            "    close(listener);     /* only the parent accepts */\n",
            "    close(listener); /* only the parent accepts */\n    close(served[1]);\n")],
    },
    "zombies": {
        "any child, and the table stays": [(
            "        if (children[i] > 0 && waitpid(children[i], NULL, WNOHANG) == children[i])\n"
            "            children[i] = 0;\n",
            "        while (waitpid(-1, NULL, WNOHANG) > 0)\n            ;\n")],
        "one child for a signal": [("            children[i] = 0;\n    errno", "        {\n"
                                    "            children[i] = 0;\n            break;\n        }\n    errno")],
    },
}
