"""02/refused: what happens to a visitor for whom there is no process."""

from outcome import clock, patient
from words import how_many

REASON = "told"
VISITORS = 40
PLACES = 5  # on the board, for those who are served; there is one more for a 503
AT_ONCE = 100  # visitors who are all refused,
AT_ONCE_SECONDS = 5  # which takes some hundredths of that
REST = b"Host: here\r\nConnection: close\r\n\r\n"
FORKS = "?clone,?clone3,?fork,?vfork"


def check(ex):
    server = serve(ex, 2)
    held = hold_one(ex, server)
    before = server.descriptors()
    refused = ex.client(server)
    refused.say(b"GET / HTTP/1.1\r\n" + REST)
    expect_status(ex, "told", refused, 503, "for the second client, whose fork has failed", hint=1)
    ex.expect("ends", "an end of its connection", lambda: refused.is_closed(within=2),
              saw=lambda: "a connection that stays", hint=2, read="close(2)")
    ex.expect("lives", "a parent that lives", server.alive, hint=1)

    statuses = []

    def in_turn():
        statuses.extend(visit(ex, server) for _ in range(VISITORS))
        return statuses == [200, 503] * (VISITORS // 2)

    ex.expect("in turn", "200 and 503 in turn, for %d visitors, with %d slots on the board" % (
        VISITORS, PLACES + 1), in_turn, saw=lambda: " ".join(map(str, statuses)), hint=3,
              read="fork(2)")
    ex.expect("flat", "no more descriptors in the parent than before",
              lambda: server.descriptors() <= before,
              saw=lambda: "%d, after %d" % (server.descriptors(), before), within=1, hint=3,
              read="close(2)")
    held.say(REST)
    expect_status(ex, "stays", held, 200, "for the first client, who was slow")
    closes_once(ex, server)
    never_again(ex)


def serve(ex, step):
    """strace lets a fork fail, and each `step`-th one after that."""
    under = ex.traced(FORKS + ",close")
    under += ["-e", "inject=%s:error=EAGAIN:when=2+%d" % (FORKS, step)]
    server = ex.serve("--timeout", "60", "--workers", str(PLACES), under=under)
    which = "every second fork" if step == 2 else "all forks but the first"
    ex.did("let %s fail, by strace" % which)
    return server


def hold_one(ex, server):
    held = ex.hold(server, 1)[0]
    ex.expect("served", "a child for the first client", lambda: len(server.children()) == 1,
              saw=lambda: how_many(len(server.children()), "child", "children"), within=2)
    return held


def closes_once(ex, server):
    server.end()
    twice = [call for call in server.calls if call.pid == server.pid and call.name == "close"
             and call.error == "EBADF"]
    ex.expect("once", "no descriptor closed twice", lambda: not twice,
              saw=lambda: "%d times close(%s) = EBADF" % (len(twice), twice[0].arguments), hint=3,
              read="close(2)")


def never_again(ex):
    """A parent that sleeps before it gives up, or tries again, serves nobody meanwhile."""
    server = serve(ex, 1)
    hold_one(ex, server)
    silent, behind = ex.client(server), ex.client(server)
    behind.say(b"GET / HTTP/1.1\r\n" + REST)
    ex.expect("silent", "503 for a visitor behind one that says nothing", lambda: behind.status() == 503,
              saw=lambda: behind.first() or "no answer", within=3, hint=2, read="recv(2)")
    silent.close()
    begun = clock()
    statuses = []

    def all_told():
        while len(statuses) < AT_ONCE:
            statuses.append(visit(ex, server))
            if statuses[-1] != 503 or clock() - begun > patient(AT_ONCE_SECONDS):
                return False
        return True

    ex.expect("at once", "%d visitors, one after the other, each told at once" % AT_ONCE, all_told,
              saw=lambda: "status %s for the last of %d, after %.1f s" % (
                  statuses and statuses[-1], len(statuses), clock() - begun),
              hint=3, read="fork(2)")


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
