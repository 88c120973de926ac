"""Wrong answers to 01/attacker (see test_wrong)."""

EIGHT = "CONNECTIONS = 8 };"
HALF = "\"GET / HTTP/1.1\\r\\n\""

ANSWERS = {
    "attacker": {
        "eight who say nothing": [(HALF, "\"\"")],
        "one who says half": [(EIGHT, "CONNECTIONS = 1 };")],
        "more than the rules allow": [(EIGHT, "CONNECTIONS = 50 };")],
        "eight each, for four": [("    for (int i = 0; i < CONNECTIONS; i++)\n",
                                  "    fork();\n    fork();\n    for (int i = 0; i < CONNECTIONS; i++)\n")],
        "eight who ask, and read no answer": [(HALF, "\"GET / HTTP/1.1\\r\\nHost: here\\r\\n\\r\\n\"")],
        "one who drips": [
            (EIGHT, "CONNECTIONS = 1 };"),
            ("    puts(\"ready\");\n", "    puts(\"ready\");\n    fflush(stdout);\n    for (;;) {\n"
             "        say(3, \"X\");\n        usleep(100 * 1000);\n    }\n")],
        "says that it is ready, and is not": [(EIGHT, "CONNECTIONS = 0 };")],
    },
}
