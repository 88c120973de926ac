"""02/refused: what happens to a visitor for whom there is no process."""

from words import how_many

REASON = "told"
VISITORS = 40
REST = b"Host: here\r\nConnection: close\r\n\r\n"
FORKS = "?clone,?clone3,?fork,?vfork"
EVERY_SECOND_FAILS = ["-e", "inject=%s:error=EAGAIN:when=2+2" % FORKS]


def check(ex):
    under = ex.traced(FORKS + ",close")
    under += EVERY_SECOND_FAILS
    server = ex.serve("--timeout", "60", under=under)
    ex.did("let every second fork fail, by strace")
    held = ex.hold(server, 1)[0]
    ex.expect("served", "a child for the first client", lambda: len(server.children()) == 1,
              saw=lambda: how_many(len(server.children()), "child", "children"), within=2)
    before = server.descriptors()

    refused = ex.client(server)
    refused.say(b"GET / HTTP/1.1\r\n" + REST)
    expect_status(ex, "told", refused, 503, "for the second client, whose fork has failed", hint=1)
    ex.expect("ends", "an end of its connection", lambda: refused.is_closed(within=2),
              saw=lambda: "a connection that stays", hint=2, read="close(2)")
    ex.expect("lives", "a parent that lives", server.alive, hint=1)

    statuses = [visit(ex, server) for _ in range(VISITORS)]
    ex.did("made %d visits, one after the other" % VISITORS)
    ex.expect("in turn", "200 and 503 in turn", lambda: statuses == [200, 503] * (VISITORS // 2),
              saw=lambda: " ".join(map(str, statuses)), hint=3, read="fork(2)")
    ex.expect("flat", "no more descriptors in the parent than before",
              lambda: server.descriptors() <= before,
              saw=lambda: "%d, after %d" % (server.descriptors(), before), within=1, hint=3,
              read="close(2)")
    held.say(REST)
    expect_status(ex, "stays", held, 200, "for the first client, who was slow")

    server.end()
    twice = [call for call in server.calls if call.pid == server.pid and call.name == "close"
             and call.error == "EBADF"]
    ex.expect("once", "no descriptor closed twice", lambda: not twice,
              saw=lambda: "%d times close(%s) = EBADF" % (len(twice), twice[0].arguments), hint=3,
              read="close(2)")


def visit(ex, server):
    """One request; the status of its answer, None if there is none."""
    client = ex.client(server)
    client.say(b"GET / HTTP/1.1\r\n" + REST)
    answer = client.hear()
    client.close()
    return answer and answer.status


def expect_status(ex, key, client, status, who, hint=None):
    answer = client.hear()
    ex.expect(key, "%d %s" % (status, who), lambda: answer and answer.status == status,
              saw=lambda: "status %d" % answer.status if answer else "an end without an answer",
              hint=hint, read="fork(2)")
