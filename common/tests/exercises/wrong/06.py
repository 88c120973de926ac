"""Wrong answers to the exercises of chapter 6 (see test_exercises)."""

INTEREST = "    return conn->state == CONN_WRITING ? POLLOUT : conn->ended ? 0 : POLLIN;\n"
ANSWERS_TO = """\
    conn_reply(&client->conn, reply, why);
    loop_advance((struct loop *)client->conn.worker, client);
"""
LOOP = "    while (!loop_is_over(&loop))\n        run_once();\n"
WITH_NAPS = """\
    while (!loop_is_over(&loop)) {
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
        "a new child for each client, however many": [
            ("{\"forking\", 0, 1}", "{\"forking\", 0, 0}"),
            ("{\"threading\", 0, 1}", "{\"threading\", 0, 0}")],
    },
    "deaf": {
        "asks for everything, and naps": [
            (INTEREST, "    return conn->state == CONN_WRITING ? POLLIN | POLLOUT : POLLIN;\n"),
            (LOOP, WITH_NAPS % 50)],
        "a client that is written to is forgotten": [
            (INTEREST, "    return conn->state == CONN_WRITING ? 0 : POLLIN;\n")],
    },
    "limit": {
        "counts questions, not clients": [
            ("    if (asking == MOST_ASKING)", "    if (asking >= MOST_ASKING)"),
            ("    asking--;\n" + ANSWERS_TO, ANSWERS_TO + "    asking--;\n")],
        "a command that cannot be handed over keeps its place": [
            ("    asking += why == 0;\n", "    asking++;\n")],
        "counts connections": [("    if (asking == MOST_ASKING)", "    if (loop->count > MOST_ASKING)")],
        "only a reply gives the place back": [("    asking--;\n", "    asking -= reply != NULL;\n")],
    },
}
