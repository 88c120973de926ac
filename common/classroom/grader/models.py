"""models: what each of the seven looks like from outside, and how far a portrait is like it.

Some traits define a model: whoever has none of them is another one. The rest go along with them.
The rule for the points of the section:

    They are shared equally over all traits; a server that misses a defining one gets
    at most 8 of 25.
"""

from collections import namedtuple

import places
import portrait

MOST_WITHOUT = 8  # of 25, for who misses a defining trait

Trait = namedtuple("Trait", "key defines says holds saw heading")


# ---- what was seen, in words ---------------------------------------------------------------


def saw_tasks(p):
    return "child processes and threads: at rest %s; with %d clients held %s; when they had " \
           "gone %s" % (_tasks(p.rest), p.held.clients, _tasks(p.held.tasks), _tasks(p.after))


def _tasks(tasks):
    zombies = " and %d zombies" % tasks.zombies if tasks.zombies else ""
    return "%d and %d%s" % (tasks.children, tasks.threads, zombies)


def saw_same(p):
    return "%s; they were %sthe same all the time" % (
        saw_tasks(p), "" if p.held.same_tasks else "not ")


def saw_accepted(p):
    return "of %d accepts %d were the first thread's, %d other threads', %d children's" % (
        p.accepted.first + p.accepted.threads + p.accepted.children, p.accepted.first,
        p.accepted.threads, p.accepted.children)


def saw_held(p):
    return "of %d clients that had said half a request %d were accepted; %d were answered when " \
           "they had said the rest" % (p.held.clients, p.held.accepted, p.held.served)


def saw_owners(p):
    return "of %d accepted clients the first process had a descriptor of %d, children of %d, " \
           "both of %d; one process of %d at most" % (
               p.held.accepted, p.held.in_first, p.held.in_children, p.held.in_both,
               p.held.most_in_one)


def saw_redis(p):
    return "%d pages at once took %d connections to Redis, the same again %d more; one process " \
           "or thread opened %d at most; afterwards %d were open" % (
               portrait.PAGES, p.redis.opened, p.redis.again, p.redis.most_by_one, p.redis.kept)


def saw_file(p):
    return "while %d pages waited for a frozen Redis, a file %s" % (
        portrait.PAGES, "was served" if p.redis.file_meanwhile else
        "was not served within %d s" % portrait.MEANWHILE_SECONDS)


def saw_death(p):
    if not p.death:
        return "no child process served the client"
    return "a child was killed that served one of %d clients; of the others %d were answered, " \
           "the next client was %sserved, and at last %d children lived" % (
               portrait.PAGES, p.death.others_served, "" if p.death.next_served else "not ",
               p.death.children)


def saw_epoll(p):
    return "of %d clients %d were watched by epoll; the longest poll() had %d descriptors" % (
        p.held.clients, p.held.in_epoll, p.held.most_polled)


def saw_blocking(p):
    return "of %d clients %d had a non-blocking descriptor" % (
        p.held.accepted, p.held.nonblocking)


# ---- what several have ---------------------------------------------------------------------


def alone(p):
    """Nobody but the first thread, at any time."""
    return all((each.children, each.threads) == (0, 1) for each in (p.rest, p.held.tasks, p.after))


def others_live(p):
    return bool(p.death) and p.death.others_served == portrait.PAGES - 1 and p.death.next_served


def served_all(p):
    return p.held.served == p.held.clients


def one_for_all(p):
    return (p.redis.opened, p.redis.again, p.redis.kept) == (1, 0, 1)


def one_each(p, most):
    """A connection to Redis for whoever has asked, and never a second."""
    return p.redis.most_by_one == 1 and portrait.PAGES <= p.redis.opened + p.redis.again <= most \
        and p.redis.kept == p.redis.opened + p.redis.again


ALONE = Trait("one process", True, "one process with one thread, whoever comes", alone, saw_tasks,
              "The idea")
FILE = Trait("file meanwhile", False, "a file is served while pages wait for Redis",
             lambda p: p.redis.file_meanwhile, saw_file, "The idea")
SERVED = Trait("all served", False, "whoever has to wait is served in the end", served_all,
               saw_held, "The idea")
ONE_REDIS = Trait("one redis", False, "one connection to Redis for all, and it is kept",
                  one_for_all, saw_redis, "The code")


def loop(*own):
    """06 and 07 differ in what they sleep in."""
    return [
        ALONE,
        Trait("all at once", True, "every client is accepted, though none has said all",
              lambda p: p.held.accepted == p.held.clients, saw_held, "The listener"),
        *own,
        Trait("never blocks", False, "clients' descriptors do not block",
              lambda p: p.held.nonblocking == p.held.accepted > 0, saw_blocking, "The listener"),
        ONE_REDIS, FILE, SERVED,
    ]


# ---- the seven -----------------------------------------------------------------------------

TRAITS = {
    "iterative": [
        ALONE,
        Trait("one at a time", True, "while one client is served nobody else is accepted",
              lambda p: p.held.accepted == 1, saw_held, "The idea"),
        SERVED, ONE_REDIS,
        Trait("file waits", False, "a file waits for the pages before it, who wait for Redis",
              lambda p: not p.redis.file_meanwhile, saw_file, "Where it breaks"),
    ],
    "forking": [
        Trait("child each", True, "a child process for each client, and none without",
              lambda p: p.rest.children == 0 and p.held.tasks.children == p.held.accepted > 1
              and p.after.children == 0, saw_tasks, "The idea"),
        Trait("parent accepts", True, "the parent accepts, and nobody else",
              lambda p: p.accepted.first > 0 and p.accepted.threads + p.accepted.children == 0,
              saw_accepted, "Accept, fork, reap"),
        Trait("child owns", False, "each child has one client's descriptor",
              lambda p: p.held.in_children == p.held.accepted and p.held.most_in_one == 1,
              saw_owners, "One becomes two"),
        Trait("parent closes", False, "the parent has closed its own copies",
              lambda p: p.held.in_first == 0, saw_owners, "One becomes two"),
        Trait("no zombie", False, "every child that has ended is reaped",
              lambda p: p.after.zombies == p.rest.zombies == 0, saw_tasks, "Accept, fork, reap"),
        Trait("redis each", False, "a child opens its own connection to Redis, and it ends with it",
              lambda p: (p.redis.opened, p.redis.again, p.redis.most_by_one, p.redis.kept) ==
              (portrait.PAGES, portrait.PAGES, 1, 0), saw_redis, "The child's whole life"),
        Trait("death of one", False, "a child that is killed costs one client", others_live,
              saw_death, "Where it breaks"),
        FILE, SERVED,
    ],
    "preforking": [
        Trait("made before", True, "processes that are there before a client is, and stay",
              lambda p: p.rest.children > 1 and p.held.same_tasks, saw_same, "The idea"),
        Trait("children accept", True, "they accept for themselves, and the parent never does",
              lambda p: p.accepted.children > 0 and p.accepted.first + p.accepted.threads == 0,
              saw_accepted, "The code"),
        Trait("replaced", True, "a worker that is killed is replaced",
              lambda p: others_live(p) and p.death.children == p.rest.children, saw_death,
              "The code"),
        Trait("one client each", False, "a client takes one worker, and whoever comes later waits",
              lambda p: p.held.accepted == min(p.rest.children, p.held.clients)
              and p.held.most_in_one == 1, saw_owners, "The idea"),
        Trait("redis each", False, "a worker has one connection to Redis, and keeps it",
              lambda p: one_each(p, p.rest.children), saw_redis, "The code"),
        FILE, SERVED,
    ],
    "threading": [
        Trait("thread each", True, "a thread for each client, and none without",
              lambda p: p.rest.threads == 1 and p.held.tasks.threads == p.held.accepted + 1 > 2
              and p.after.threads == 1, saw_tasks, "The idea"),
        Trait("main accepts", True, "the first thread accepts, and nobody else",
              lambda p: p.accepted.first > 0 and p.accepted.threads + p.accepted.children == 0,
              saw_accepted, "The code"),
        Trait("no child", True, "all are in one process",
              lambda p: p.rest.children + p.held.tasks.children + p.after.children == 0
              and p.held.in_first == p.held.accepted, saw_tasks, "The idea"),
        Trait("pool", False, "threads come and go, and share connections to Redis that stay",
              lambda p: 1 <= p.redis.opened <= portrait.PAGES and p.redis.again == 0
              and p.redis.kept == p.redis.opened, saw_redis, "The code"),
        FILE, SERVED,
    ],
    "prethreading": [
        Trait("made before", True, "threads that are there before a client is, and stay",
              lambda p: p.rest.threads > 2 and p.held.same_tasks, saw_same, "The idea"),
        Trait("threads accept", True, "they accept for themselves",
              lambda p: p.accepted.threads > 0 and p.accepted.children == 0
              and p.accepted.threads >= p.accepted.first, saw_accepted, "The code"),
        Trait("no child", True, "all are in one process",
              lambda p: p.rest.children + p.held.tasks.children + p.after.children == 0
              and p.held.in_first == p.held.accepted, saw_tasks, "The idea"),
        Trait("one client each", False, "a client takes one thread, and whoever comes later waits",
              lambda p: min(p.rest.threads - 1, p.held.clients) <= p.held.accepted
              <= p.rest.threads, saw_held, "The idea"),
        Trait("redis each", False, "a thread has one connection to Redis, and keeps it",
              lambda p: one_each(p, p.rest.threads), saw_redis, "The code"),
        FILE, SERVED,
    ],
    "poll": loop(
        Trait("polls", True, "it sleeps in poll() with all of its clients",
              lambda p: p.held.most_polled >= p.held.clients, saw_epoll, "Who waits for what")),
    "epoll": loop(
        Trait("epolls", True, "epoll watches all of its clients",
              lambda p: p.held.in_epoll == p.held.clients, saw_epoll, "Telling the kernel"),
        Trait("no scan", False, "no call names them all",
              lambda p: p.held.most_polled < p.held.clients, saw_epoll, "The idea")),
}

Verdict = namedtuple("Verdict", "trait holds saw")


def judge(model, seen):
    """A Verdict for each trait. What a server has not let us see, it misses."""
    return [_judge(trait, seen) for trait in TRAITS[model]]


def _judge(trait, seen):
    try:
        return Verdict(trait, bool(trait.holds(seen)), trait.saw(seen))
    except (AttributeError, TypeError):  # a scene that was not reached is None
        return Verdict(trait, False, "it did not get so far: %s" % (seen.trouble or "no reason"))


def points(verdicts, most):
    """By the rule above."""
    got = most * sum(verdict.holds for verdict in verdicts) / len(verdicts)
    if all(verdict.holds for verdict in verdicts if verdict.trait.defines):
        return got
    return min(got, most * MOST_WITHOUT / 25)


def matrix(portraits, most=25):
    """{server: {model: points}} of {server: its Portrait}."""
    return {server: {model: points(judge(model, seen), most) for model in TRAITS}
            for server, seen in portraits.items()}


def read(model, trait):
    """What to read, as in table.pointer()."""
    return "%s/README.md: %s" % (places.CHAPTERS[model], trait.heading)


def table(points_of):
    """The matrix in Markdown, as README.md has it."""
    rows = [["the server, as", *TRAITS], ["---", *["--:"] * len(TRAITS)]]
    for server, each in points_of.items():
        rows.append([server, *("**%d**" % each[model] if model == server else "%d" % each[model]
                               for model in TRAITS)])
    return "".join("| %s |\n" % " | ".join(row) for row in rows)
