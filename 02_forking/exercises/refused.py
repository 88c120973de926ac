"""02/refused: what happens to a visitor for whom there is no process."""

from client import REST, WHOLE

REASON = "told"
VISITORS = 40
PLACES = 5  # on the board, for those who are served; there is one more for a 503
AT_ONCE = 100  # visitors who are all refused,
AT_ONCE_SECONDS = 5  # which takes some hundredths of that
FORKS = "?clone,?clone3,?fork,?vfork"


def check(ex):
    server = serve(ex, 2)
    held = hold_one(ex, server)
    before = server.descriptors()
    refused = ex.client(server)
    refused.say(WHOLE)
    ex.expect_status("told", "503 for the second client, whose fork has failed", refused, 503, hint=1,
                     read="fork(2)")
    ex.expect("ends", "an end of its connection", lambda: refused.is_closed(within=2),
              saw=lambda: "a connection that stays", hint=2, read="close(2)")
    ex.expect("lives", "a parent that lives", server.alive, hint=1)

    statuses = []

    def in_turn():
        statuses.extend(ex.client(server).visit() for _ in range(VISITORS))
        return statuses == [200, 503] * (VISITORS // 2)

    ex.expect("in turn", "200 and 503 in turn, for %d visitors, with %d slots on the board" % (
        VISITORS, PLACES + 1), in_turn, saw=lambda: " ".join(map(str, statuses)), hint=3,
              read="fork(2)")
    ex.expect_descriptors("flat", "no more descriptors in the parent than before", server, before, hint=3)
    held.say(REST)
    ex.expect_status("stays", "200 for the first client, who was slow", held, 200, read="fork(2)")
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
    ex.expect_children("served", "a child for the first client", server, 1)
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
    behind.say(WHOLE)
    ex.expect_status("silent", "503 for a visitor behind one that says nothing", behind, 503, within=3,
                     hint=2, read="recv(2)")
    silent.close()
    ex.expect_refused("at once", server, AT_ONCE, AT_ONCE_SECONDS, hint=3, read="fork(2)")
