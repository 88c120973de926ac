"""traits: which of the seven a server is, from what its threads wait for.

    traits.judge(watched, own, scene)   -> Verdict

Nobody has claimed anything: a server may be two of the seven at once, and a thread that serves no
client changes nothing.
"""

import re
from collections import Counter
from typing import NamedTuple

from lib.seeing import lanes

WORDS = {"1": "chapter 1, one client after another", "2": "chapter 2, a process for each client",
         "3": "chapter 3, processes made beforehand", "4": "chapter 4, a thread for each client",
         "5": "chapter 5, threads made beforehand", "6": "chapter 6, an event loop in poll()",
         "7": "chapter 7, an event loop in epoll", " of ": ". Each of them is ",
         " in front of ": ". Behind it is ", " below ": ". Above it, as tasks of a runtime or jobs of a pool, is ",
         " with an acceptor": ", and one that accepts for them"}
SAYS = {"came": "Came after a client", "passed": "Ended with that client",
        "asks": "Waited for Redis alone", "shares": "Waited for Redis and clients in one call",
        "takes": "Read what another had waited for"}
SLACK_SECONDS = 0.1  # a thread between two calls is taken to be in the one before
LONG_SECONDS = 0.002  # a call that takes less has not waited for Redis


class Scene(NamedTuple):
    """A few clients ask for pages. Then more come than most servers have threads, and are held."""

    since: float  # the few come
    begin: float  # the first one of those that are held comes
    moment: float  # all of these have done what `words` say, and no more
    words: str
    held: int  # clients
    answered: int  # of them, in the end


class Verdict(NamedTuple):
    answer: "str | None"  # "7"; "3 of 7"; "7 in front of 5"; "7 below 4"; "5 with an acceptor"; None: it cannot be said
    evidence: list[str]
    in_doubt: bool = False  # more clients may tell

    def __str__(self):
        if not self.answer:
            return "None of the seven can be named."
        text = re.sub(r"\d| in front of | of | below | with an acceptor", lambda key: WORDS[key[0]], self.answer)
        return text[0].upper() + text[1:] + "."


class Task:
    """A thread, or a process that has no other: what it had to do with held clients, and Redis."""

    def __init__(self, lane, scene, clients, is_alone):
        bars = [bar for bar in lane.bars if bar.end is None or bar.end >= scene.since]
        done = [bar for bar in bars if bar.end and not bar.call.error
                and bar.call.result is not None]
        now = [bar for bar in bars if bar.start <= scene.moment
               and (bar.end is None or bar.end >= scene.moment - SLACK_SECONDS)][-1:]
        self.pid, self.noun = lane.pid, "process" if is_alone else "thread"
        self.is_there = now and lane.born <= scene.moment <= (lane.died or scene.moment)
        self.call = now[0].call.name if now else ""
        awaits = now[0].awaits if now else ()
        if now and not awaits and lanes.POLLS.fullmatch(self.call):  # it was told by io_uring
            awaits = now[0].serves
        self.awaits = clients.intersection(awaits)
        listens = bool(now) and lanes.ARRIVAL in {now[0].kind, *(each.kind for each in awaits)}
        self.is_loop = bool(self.awaits) and len(self.awaits) + listens > 1
        self.whom = "new clients" if listens else "none of them"
        if self.awaits:
            self.whom = "one of them" if not self.is_loop else (
                "all of them at once" if self.awaits == clients else "several of them at once")
        accepts = [bar for bar in bars if bar.call.name in lanes.ACCEPTS]
        self.listeners = {bar.thing for bar in accepts}  # and those that held clients came through
        self.doors = {bar.thing for bar in accepts if bar.end in {each.accepted for each in clients}}
        self.read = clients.intersection(bar.thing for bar in done if bar.call.result > 0
                                         and bar.call.name.startswith(("recv", "read")))
        self.takes = self.read and not self.awaits
        self.asks = any(  # and waits for that answer alone
            bar.kind == lanes.REDIS and bar.end - bar.start > LONG_SECONDS
            and sum(each.kind == lanes.REDIS for each in bar.awaits) < 2 for bar in done)
        self.shares = any(bar.kind == lanes.SEVERAL and any(
            each.kind == lanes.REDIS for each in bar.awaits) for bar in bars)
        self.came = any(each.accepted < lane.born for each in self.awaits | self.read)
        self.passed = self.came and lane.died is not None


def judge(watched, own, scene):
    """`own`: the server's processes. Others, or those with a listening socket that no held client has
    come through, stand behind it."""
    clients = {each for each in watched.clients if scene.begin <= each.accepted <= scene.moment}
    there = [lane for lane in watched.lanes if not lane.died or lane.died >= scene.since]
    sizes = Counter(lane.pid for lane in there)
    tasks = [Task(lane, scene, clients, sizes[lane.pid] == 1) for lane in there]
    holding = [each for each in tasks if each.awaits]
    if not scene.answered:
        return Verdict(None, ["It answered none of %d clients." % scene.held])
    if not holding:
        return Verdict(None, ["It answered, but no call waited for a client. A trace does not show "
                              "what io_uring does, nor whose a descriptor is that another process has passed on."])
    pids = sorted({each.pid for each in holding})
    # A process with one client may have threads for more: the kind that most clients have met counts.
    kinds = {pid: within([each for each in tasks if each.pid == pid]) for pid in pids}
    answer = Counter(kinds[each.pid] for each in holding for _ in each.awaits).most_common(1)[0][0]
    # A parent without a listening socket has only started the server.
    if len(pids) > 1 or not any(bar.call.name == "listen" for lane in watched.lanes
                                if lane.pid == pids[0] for bar in lane.bars):
        answer = passing(holding, "2", "3") if answer == "1" else "3 of " + answer
    doors = set().union(*(each.doors for each in tasks))
    behind = [each for each in tasks if each.asks and (
        each.pid not in own or each.listeners and not each.listeners & doors)]
    if behind:
        answer += " in front of " + passing(behind, "2", "3")
    told = evidence([each for each in tasks if each.pid in own and each not in behind], scene, clients)
    told += ["Behind it, waited for Redis: %s." % count(behind)] * bool(behind)
    told += ["The processes differ."] * (len({*kinds.values()}) > 1)
    in_doubt = len(holding) > 1 and not any(
        each.is_loop or not each.call.startswith("epoll") for each in holding)
    told += ["Each of these may be a loop that has only one client."] * in_doubt
    return Verdict(answer, told, in_doubt)


def within(tasks):
    """Which of the seven one process is, by itself."""
    loops = [each for each in tasks if each.is_loop]
    owners = [each for each in tasks if each.awaits and not each.is_loop]
    asking = [each for each in tasks if each.asks and not each.is_loop]
    if not loops:
        beforehand = "5" if any(each.doors for each in owners) else "5 with an acceptor"
        return "1" if len(owners) == 1 else passing(owners, "4", beforehand)
    loop = "7" if loops[0].call.startswith("epoll") else "6"
    if len(loops) > 1:
        return "5 of " + loop
    if owners or asking:
        return loop + " in front of " + passing(owners or asking, "4", "5")
    return loop + " below 4" * any(each.takes for each in tasks)


def passing(tasks, if_so, if_not):
    """Did most of them come with a client, and did any end with it? (By mistake, some may stay.)"""
    came = sum(each.came for each in tasks)
    return if_so if 2 * came > len(tasks) and any(each.passed for each in tasks) else if_not


def evidence(tasks, scene, clients):
    """Sentences: how many waited for whom, and did what."""
    told = ["%d clients %s, and no more. The server accepted %d." % (
        scene.held, scene.words, len(clients))]
    there = [each for each in tasks if each.is_there]
    for key in sorted({(each.call, each.whom) for each in there}):
        group = [each for each in there if (each.call, each.whom) == key]
        told.append("In %s, for %s: %s." % (*key, count(group)))
    for trait, words in SAYS.items():
        group = [each for each in tasks if getattr(each, trait)]
        told += ["%s: %s." % (words, count(group))] * bool(group)
    unseen = len(clients.difference(*(each.awaits for each in tasks)))
    return told + ["In no call that was seen: %d of them, perhaps in a queue." % unseen] * bool(unseen)


def count(tasks):
    """As in "1 process and 2 threads"."""
    plural = {"process": "processes", "thread": "threads"}
    return " and ".join("%d %s" % (number, noun if number == 1 else plural[noun])
                        for noun, number in sorted(Counter(each.noun for each in tasks).items()))
