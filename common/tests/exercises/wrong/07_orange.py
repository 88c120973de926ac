"""Wrong answers to 07/orange (see test_wrong)."""

CLOSE = "        close(fd); /* the request is on its way, and nobody looks whether we are still there */\n"
COUNT = "    int workers = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;\n"

ANSWERS = {
    "orange": {
        "eleven, whatever is asked for": [
            (COUNT, COUNT + "    workers = workers == 11 ? 7 : 11;\n")],
        "one more, and the wall has no worker": [("i < workers;", "i < workers + 1;")],
        "waits for the answer": [(CLOSE, "        char byte;\n        recv(fd, &byte, 1, 0);\n" + CLOSE)],
        "half a request": [("Host: here\\r\\n\\r\\n", "Host: here\\r\\n")],
        "all in one connection": [
            ("        int fd = connect_to(port);\n",
             "        static int fd = -1;\n        if (fd < 0)\n            fd = connect_to(port);\n"),
            (CLOSE, "")],
        "a file": [("GET /guestbook", "GET /style.css")],
    },
}
