"""models: what each of the seven looks like from outside, and how far a portrait is like it.

Some traits define a model: a server that lacks one of these is another model. The rest go along
with them. The rule for the points of the section:

    They are shared equally over all traits; a server that misses a defining one gets
    at most 8 of 25.
"""

from collections import namedtuple

import places
import portrait

MOST_WITHOUT = 8  # of 25, for a server that misses a defining trait

# says: the trait, in words; saw: what the portrait has of it, as str.format() takes it
Trait = namedtuple("Trait", "defines says holds saw heading")

# ---- what was seen, in words ---------------------------------------------------------------

TASKS = ("child processes and threads: at rest {rest.children} and {rest.threads}; with "
         "{held.clients} clients held {held.tasks.children} and {held.tasks.threads}; when they had "
         "gone {after.children} and {after.threads}")
SAME = TASKS + "; {held.changed} came or went"
ZOMBIES = "zombies: at rest {rest.zombies}; when {held.clients} clients had gone {after.zombies}"
ACCEPTS = ("of the accepts {accepted.first} were the first thread's, {accepted.threads} other "
           "threads', {accepted.children} children's; {accepted.by} different processes or threads "
           "accepted, while {held.accepted} clients were held")
CLIENTS = ("of {held.clients} clients that had said half a request {held.accepted} were accepted; "
           "{held.served} were answered when they had said the rest")
READERS = ("of {held.accepted} clients that were held at a time the bytes were read by "
           "{held.readers} processes or threads")
ASKERS = ("while Redis was frozen, {redis.askers} processes or threads asked it for %d pages; "
          "{redis.strangers} of them had read no request" % portrait.PAGES)
OWNERS = ("of {held.accepted} accepted clients the first process had a descriptor of "
          "{held.in_first}, children of {held.in_children}, both of {held.in_both}; one process of "
          "{held.most_in_one} at most")
REDIS = ("%d pages at once took {redis.opened} connections to Redis, the same again {redis.again} "
         "more; one process or thread opened {redis.most_by_one} at most; afterwards {redis.kept} "
         "were open" % portrait.PAGES)
FILES = ("while %d pages waited for a frozen Redis, {redis.files} of 1 file was served within %d s"
         % (portrait.PAGES, portrait.MEANWHILE_SECONDS))
DEATHS = ("{death.killed} of 1 child was killed that served one of %d clients; of the others "
          "{death.others_served} were answered, of 1 next client {death.next_served}; at last "
          "{death.children} children lived" % portrait.PAGES)
EPOLL = ("of {held.clients} clients {held.in_epoll} were watched by epoll; the longest poll() had "
         "{held.most_polled} descriptors; it slept in {held.sleeps}")
PROGRAMS = "these served: {honest.programs}; executed were also {honest.executed}"
LEFT = "these were no descendants of the server any more: {honest.left}"
ELSEWHERE = "other addresses than that of Redis: {honest.elsewhere}"
BLOCKING = "of {held.accepted} clients {held.nonblocking} had a non-blocking descriptor"

# ---- what several have ---------------------------------------------------------------------


def alone(p):
    """Nothing but the first thread, at any time."""
    return all((each.children, each.threads) == (0, 1) for each in (p.rest, p.held.tasks, p.after))


def in_one_process(p):
    return (p.rest.children + p.held.tasks.children + p.after.children == 0
            and p.held.in_first == p.held.accepted)


def others_live(p):
    seen = p.death.killed, p.death.others_served, p.death.next_served
    return seen == (1, portrait.PAGES - 1, 1)


def one_each(p, most):
    """A connection to Redis for each that has asked, and never a second. Those that were there
    before the scene are in `kept` alone."""
    return p.redis.most_by_one <= 1 and p.redis.kept <= most \
        and p.redis.kept >= max(portrait.PAGES, p.redis.opened + p.redis.again)


ALONE = Trait(True, "one process with one thread, whoever comes", alone, TASKS, "The idea")
NO_CHILD = Trait(True, "all are in one process", in_one_process, TASKS, "The idea")
FIRST_ACCEPTS = Trait(
    True, "the first thread accepts, and nobody else",
    lambda p: p.accepted.first > 0 and p.accepted.threads + p.accepted.children == 0,
    ACCEPTS, "Accept, fork, reap")
FILE = Trait(False, "a file is served while pages wait for Redis",
             lambda p: p.redis.files == 1, FILES, "The idea")
SERVED = Trait(False, "a client that has to wait is served in the end",
               lambda p: p.held.served == p.held.clients, CLIENTS, "The idea")
OWN_READER = Trait(True, "each client is read by a process or thread of its own",
                   lambda p: p.held.readers >= p.held.accepted > 0, READERS, "The idea")
ASKS = Trait(
    True, "who reads a request asks Redis for it",
    lambda p: (p.redis.askers, p.redis.strangers) == (portrait.PAGES, 0), ASKERS, "The idea")
ONE_REDIS = Trait(False, "one connection to Redis for all, and it is kept",
                  lambda p: p.redis.opened <= 1 and (p.redis.again, p.redis.kept) == (0, 1),
                  REDIS, "The code")


def loop(*own):
    """06 and 07 differ in the call that they sleep in."""
    return [
        ALONE,
        Trait(True, "every client is accepted, though none has said all",
              lambda p: p.held.accepted == p.held.clients, CLIENTS, "The listening socket"),
        *own,
        Trait(False, "clients' descriptors do not block",
              lambda p: p.held.nonblocking == p.held.accepted > 0, BLOCKING,
              "The listening socket"),
        ONE_REDIS, FILE, SERVED,
    ]


# Every model is a server that does its work itself.
ITSELF = [
    Trait(True, "one program serves, whatever is asked",
          lambda p: len(p.honest.programs) == 1, PROGRAMS, "The idea"),
    Trait(True, "all processes that it starts remain its descendants",
          lambda p: not p.honest.left, LEFT, "The idea"),
    Trait(True, "it connects to Redis, and to nobody else",
          lambda p: not p.honest.elsewhere, ELSEWHERE, "The idea"),
]

# ---- the seven -----------------------------------------------------------------------------

TRAITS = {
    "iterative": [
        ALONE,
        Trait(True, "while one client is served nobody else is accepted",
              lambda p: p.held.accepted == 1, CLIENTS, "The idea"),
        SERVED, ONE_REDIS,
        Trait(False, "a file waits for the pages before it, which wait for Redis",
              lambda p: p.redis.files == 0, FILES, "Where it breaks"),
    ],
    "forking": [
        Trait(True, "a child process for each client, and none without",
              lambda p: p.rest.children == 0 and p.held.tasks.children == p.held.accepted > 1
              and p.after.children == 0, TASKS, "The idea"),
        FIRST_ACCEPTS, OWN_READER, ASKS,
        Trait(False, "each child has one client's descriptor",
              lambda p: p.held.in_children == p.held.accepted and p.held.most_in_one == 1,
              OWNERS, "One becomes two"),
        Trait(False, "the parent has closed its own copies",
              lambda p: p.held.in_first == 0, OWNERS, "One becomes two"),
        Trait(False, "every child that has ended is reaped",
              lambda p: p.after.zombies == p.rest.zombies == 0, ZOMBIES, "Accept, fork, reap"),
        Trait(False, "a child opens its own connection to Redis, which ends with the child",
              lambda p: (p.redis.opened, p.redis.again, p.redis.most_by_one, p.redis.kept) ==
              (portrait.PAGES, portrait.PAGES, 1, 0), REDIS, "The child's whole life"),
        Trait(False, "a child that is killed costs one client", others_live, DEATHS,
              "Where it breaks"),
        FILE, SERVED,
    ],
    "preforking": [
        Trait(True, "processes that are there before a client is, and stay",
              lambda p: p.rest.children > 1 and p.held.changed == 0, SAME, "The idea"),
        Trait(True, "they accept for themselves, and the parent never does",
              lambda p: p.accepted.children > 0 and p.accepted.first + p.accepted.threads == 0
              and p.accepted.by >= p.held.accepted, ACCEPTS, "The code"),
        OWN_READER, ASKS,
        Trait(True, "a worker that is killed is replaced",
              lambda p: others_live(p) and p.death.children == p.rest.children, DEATHS,
              "The code"),
        Trait(False, "a client takes one worker, and later clients wait",
              lambda p: p.held.accepted == min(p.rest.children, p.held.clients)
              and p.held.most_in_one == 1, OWNERS, "The idea"),
        Trait(False, "a worker has one connection to Redis, and keeps it",
              lambda p: one_each(p, p.rest.children), REDIS, "The code"),
        FILE, SERVED,
    ],
    "threading": [
        Trait(True, "a thread for each client, and none without",
              lambda p: p.rest.threads == 1 and p.held.tasks.threads == p.held.accepted + 1 > 2
              and p.after.threads == 1, TASKS, "The idea"),
        FIRST_ACCEPTS._replace(heading="The code"),
        NO_CHILD, OWN_READER, ASKS,
        Trait(False, "threads come and go, and share connections to Redis that stay",
              lambda p: p.redis.opened <= portrait.PAGES and p.redis.again == 0
              and p.redis.kept >= max(1, p.redis.opened), REDIS, "The code"),
        FILE, SERVED,
    ],
    "prethreading": [
        Trait(True, "threads that are there before a client is, and stay",
              lambda p: p.rest.threads > 2 and p.held.changed == 0, SAME, "The idea"),
        Trait(True, "they accept for themselves",
              lambda p: p.accepted.threads > 0 and p.accepted.children == 0
              and p.accepted.by >= p.held.accepted, ACCEPTS, "The code"),
        NO_CHILD, OWN_READER, ASKS,
        Trait(False, "a client takes one thread, and later clients wait",
              lambda p: min(p.rest.threads - 1, p.held.clients) <= p.held.accepted
              <= p.rest.threads, CLIENTS, "The idea"),
        Trait(False, "a thread has one connection to Redis, and keeps it",
              lambda p: one_each(p, p.rest.threads), REDIS, "The code"),
        FILE, SERVED,
    ],
    "poll": loop(
        Trait(True, "it sleeps in poll() with all of its clients",
              lambda p: p.held.polled >= p.held.clients, EPOLL, "Who waits for what")),
    "epoll": loop(
        Trait(True, "epoll watches all of its clients",
              lambda p: p.held.in_epoll == p.held.clients and p.held.sleeps.startswith("epoll_"),
              EPOLL, "Telling the kernel"),
        Trait(False, "no call names them all",
              lambda p: p.held.most_polled < p.held.clients, EPOLL, "The idea")),
}

for each in TRAITS.values():
    each += ITSELF

Verdict = namedtuple("Verdict", "trait holds saw")


def judge(model, seen):
    """A Verdict for each trait. A trait that the server has not let us see is missed."""
    return [_judge(trait, seen) for trait in TRAITS[model]]


def _judge(trait, seen):
    try:
        return Verdict(trait, bool(trait.holds(seen)), trait.saw.format(**vars(seen)))
    except (AttributeError, KeyError):  # a scene that was not reached
        return Verdict(trait, False, "it did not get so far: %s" % (seen.trouble or "no reason"))


def points(verdicts, most):
    got = most * sum(verdict.holds for verdict in verdicts) / len(verdicts)
    if all(verdict.holds for verdict in verdicts if verdict.trait.defines):
        return got
    return min(got, most * MOST_WITHOUT / 25)


def read(model, trait):
    """What to read, as in table.pointer()."""
    return "%s/README.md: %s" % (places.CHAPTERS[model], trait.heading)
