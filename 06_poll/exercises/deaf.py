"""06/deaf: does the loop sleep while clients do not read what they have asked for?"""

from sleeps import expect_asleep, expect_no_naps

REASON = "sleeps"

DEAF = 50
FILES = 100  # that each client asks for, all at once: five megabytes
ASK = b"GET /tux.png HTTP/1.1\r\nHost: here\r\n\r\n"
MOST_KB = 64  # of memory for each client


def check(ex):
    server = ex.serve("--timeout", "500", "--keep-alive", "500")
    idle = ex.client(server)
    ex.expect("serves", "a file", lambda: idle.get("/tux.png").status == 200)
    before = server.status("VmRSS")
    deaf = [ex.client(server) for _ in range(DEAF)]
    for each in deaf:
        each.say(ASK * FILES)
    ex.did("let %d clients ask for %d files each, all at once, and read nothing" % (DEAF, FILES))
    ex.expect("begins", "something sent to each of them",
              lambda: all(each.is_answered() for each in deaf), within=10)

    expect_asleep(ex, "sleeps", server, "a loop that sleeps when no socket has room left", within=3, hint=1,
                  read="poll(2)")
    grown = server.status("VmRSS") - before
    ex.expect("bounded", "at most %d KiB of memory for each client" % MOST_KB,
              lambda: grown <= DEAF * MOST_KB, saw=lambda: "%d KiB" % (grown // DEAF), hint=2)
    expect_no_naps(ex, server, idle)

    ex.did("let one of them read after all")
    whole = [deaf[0].hear() for _ in range(FILES)]
    ex.expect("all", "all %d files" % FILES, lambda: all(
        answer and answer.status == 200 for answer in whole), hint=3)
    ex.did("let another one reset its connection, in the middle of its files")
    number = server.descriptors()
    deaf[1].reset()
    ex.expect("gone", "that the server notices when a client leaves",
              lambda: server.descriptors() < number, within=2, hint=3, read="poll(2)")
    expect_asleep(ex, "again", server, "a loop that sleeps again")
    for each in deaf:
        each.close()
    ex.expect_end("ends", server)
