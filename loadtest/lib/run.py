"""run: one run of a program, from its options to its results.

It knows where things run, and has the folder for the results, the Redis that all servers ask, and
the page that the floor answers with. In build/loadtest/STAMP it leaves:

    report.html       the table, the charts, and the fine print, in one page
    table.md          the table alone, as printed
    chart-1.svg ...   the charts alone
    cells.tsv         every single measurement, as it was made
    environment.txt   what one must know about the machine and this run
    raw/              the output of the load generators and the servers
"""

import contextlib
import math
import os
import random
import statistics
import shlex
import sys
import time

from lib import Trouble, cells, rounds, subjects
from lib.generators import ab, h2load
from lib.kept import Kept
from lib.measuring import machine, meter, web
from lib.reporting.progress import Progress
from lib.subjects import companions, peers, redis, relay, servers

PAGE = "/guestbook"
OTHERS_PERCENT = 15  # so much of the cores taken by others is worth a warning
LEAST = {False: (20, 30), True: (2, 5)}  # requests for each client, if so many seconds suffice
LIMIT_FACTOR = 10  # a load that takes so many times longer than planned is given up
LIMIT_LEAST_SECONDS = 60  # a client whose SYN was dropped may wait for half of that
BETWEEN_SECONDS = 0.4  # from one cell to the next
CAPACITY_SECONDS, NEAR_CLIENTS, FAR_CLIENTS = 2, 100, 500
ONE_CLIENT = ("The load generator had one core: where that was full, the rate is written with ≥, and "
              "the server may be able to do more.")


class Run:
    """One run of a program: what it uses, and what it has measured so far."""

    def __init__(self, experiment, options, hosts):
        quick = options.quick
        self.experiment, self.options, self.hosts = experiment, options, hosts
        self.descriptors = machine.raise_descriptor_limit()
        self.cores = hosts.cores()
        self.folder = new_folder(options.into)
        self.kept = Kept(options.into, (sys.argv[1:], quick, machine.sources()))
        self.rounds = options.rounds or (experiment.quick_rounds if quick else experiment.rounds)
        self.seconds = options.seconds or (experiment.quick_seconds if quick
                                           else experiment.seconds)
        self.per_client, self.most_seconds = LEAST[quick]
        self.per_client = min(self.per_client, experiment.per_client)
        self.most_seconds = max(experiment.most_seconds or self.most_seconds,
                                math.ceil(3 * self.seconds)) if not quick else self.most_seconds
        self.limit_seconds = max(LIMIT_LEAST_SECONDS, LIMIT_FACTOR * self.seconds,
                                 2 * self.most_seconds)
        self.asked = self.kept.asked  # requests of each spot, as its first round has found out
        self.path = options.url
        self.root = machine.TOP  # all serve its public/
        self.seed, self.began = self.kept.begin(
            options.seed or random.SystemRandom().randrange(1, 10000),
            time.strftime("%Y-%m-%d %H:%M:%S %z"))
        self.servers = with_revisions(options.servers, options.against)
        self.left_out = []  # sentences: what was not measured, and why
        self.servers = [name for name in self.servers if self._can_be_measured(name)]
        self.commands = {**options.command, **companions.lines(self.servers)}  # by name: the others
        self.levels = [level for level in options.levels if self._can_be_had(level)]
        if not self.servers or options.levels and not self.levels:
            raise Trouble(" ".join(self.left_out))
        self.cells = []
        self.wrong = []  # sentences: what went wrong outside of a cell
        self.planned = 0
        self._others = meter.others_percent()
        self.redis = self._open_redis()
        self._relays = []  # their pids
        self._page_bytes = None
        self._capacity = {}
        self._by_close = {name for name in self.commands if self._ends_by_close(name)}

    def _can_be_measured(self, name):
        if name in self.options.command:
            return True
        reason = subjects.why_not(name)
        if not reason and name in peers.NAMES:
            if self.options.apart:
                reason = "of the peers there is only the floor on another host"
            elif self.path == PAGE:
                reason = "it has files only; `--url /index.html` asks for one"
        if not reason and name in companions.NAMES:
            reason = "a companion is not on another host" if self.options.apart else None if (
                self.path == PAGE) else "it has no page but %s" % PAGE
        self.left_out += ["%s is left out: %s." % (name, reason)] if reason else []
        return not reason

    def _can_be_had(self, level):
        reason = self.experiment.why_not(level, self.descriptors)
        self.left_out += ["%s clients are left out: %s." % (format(level, ","), reason)
                          ] if reason else []
        return not reason

    def _open_redis(self):
        """The Redis that all servers ask: our own, on the core of the clients, or the given one."""
        if not self.options.redis:
            return self.hosts.redis(self.folder, *([redis.free_port()] if self.commands else []))
        store = redis.Redis(self.options.redis)
        if store.holds_guestbook() and not self.options.flush:
            raise Trouble("the Redis at %s holds a guestbook; --flush would delete it"
                          % self.options.redis)
        return store

    def _ends_by_close(self, name):
        """Do the responses of this command's server have no length, and end with the connection?
        wrk takes such an end for an error. Trouble if the server does not serve its page."""
        log = os.path.join(self.folder, "raw", name + ".log")
        path = self.path_of(name)
        with self.open(name, log, self.redis.on_a_port()) as server:
            try:
                with web.connected(server.url, path) as connection:
                    connection.request("GET", path)
                    answer = connection.getresponse()
                    if answer.status != 200:
                        raise Trouble("it answers with status %d for %s" % (answer.status, path))
                    endless = answer.length is None and not answer.chunked
                    closes = answer.will_close
            except Trouble as trouble:
                raise Trouble("%s: %s; what it printed is in %s" % (
                    name, trouble, os.path.relpath(log))) from None
        if endless:
            self.left_out.append("%s is asked by ab alone: its answers have no length and end with "
                                 "the connection, which wrk would take for errors." % name)
        elif closes:
            self.left_out.append("%s keeps no connection: wrk opens a new one for each request."
                                 % name)
        return endless

    # ---- what a cell needs ------------------------------------------------------------------

    def has_place_for(self, spot):
        """Can a cell be measured? A command may not be able to do all of it."""
        command, dials = self.commands.get(spot.subject), spot.dials
        return not command or not (
            spot.generator == "wrk" and spot.subject in self._by_close
            or dials.work_ms and spot.subject not in companions.NAMES
            or dials.delay_ms is not None and "{redis" not in command)

    def path_of(self, subject):
        """The path that it is asked for."""
        return self.options.page.get(subject, self.path or "")

    def asks_redis(self, spot):
        """Can its work be counted there?"""
        return self.path_of(spot.subject) == PAGE and (
            subjects.is_ours(spot.subject) or spot.subject in self.commands)

    def counts_since(self, before, spot):
        """What a cell has added to Redis' counts. Other servers may count visitors in their own
        way."""
        counts = self.redis.counts_since(before)
        return counts._replace(visitors=counts.incr) if spot.subject in self.commands else counts

    @contextlib.contextmanager
    def redis_for(self, spot):
        """Where its server finds Redis, for the time of a `with`: a relay may be in between."""
        foreign = spot.subject in self.commands
        store = self.redis.on_a_port() if foreign else self.redis
        if spot.dials.delay_ms is None or not (foreign or subjects.is_ours(spot.subject)):
            yield store
            return
        place = self.hosts.place("redis")
        with relay.SlowRedis(store, spot.dials.delay_ms, place.cores, self.folder,
                             place.prefix, place.address or "127.0.0.1", place.launch) as slow:
            self._relays = [slow.pid]
            yield slow
            self._relays = []

    def open_subject(self, spot, where, log):
        options = ["--backlog", str(spot.backlog)] if spot.backlog else []
        logs = [log.replace(".log", "-%d.log" % number) for number in range(spot.instances or 0)] or [log]
        opened = [self.open(spot.subject, each, where, options, dials=spot.dials) for each in logs]
        return subjects.Balanced(opened, self.hosts, log.replace(".log", ".d")) if spot.instances else opened[0]

    def open(self, subject, log, where=None, options=(), under=(), dials=cells.Dials()):
        """A context manager: the subject, from its start to its end. Ours ask `where`, this run's
        Redis or another. `under`: a command that starts it, strace's or valgrind's."""
        place = self.hosts.place("server", dials.cores)
        if subject in self.commands:
            line = (companions.line(subject, dials.work_ms) if subject in companions.NAMES
                    else self.commands[subject])
            where = where or self.redis.on_a_port()
            return peers.Command(subject, line, place.cores, log, where.where)
        options = [*options, *dials.options()]
        return subjects.open_subject(
            subject, place.cores, log, redis=(where or self.redis).where, options=options,
            body=self._page_of(subject), root=self.root, prefix=(*place.prefix, *under),
            address=place.address, launch=place.launch)

    def meter(self, server, spot):
        """Measures what a load costs this server, for the time of a `with`."""
        return self.hosts.meter(server, self.hosts.cores(spot.dials.cores),
                                [*self.redis.pids, *self._relays])

    def capacity(self, shot, kept):
        """How many requests a second a server answers if as many are asked as it can: in a closed
        loop, once in a run for each setting."""
        key = shot.spot.subject, kept, shot.spot.dials, shot.spot.instances
        if key not in self._capacity:
            save_as, seconds = shot.save_as + "-capacity", min(self.seconds, CAPACITY_SECONDS)
            waits, place = shot.spot.dials.delay_ms, shot.place  # then it takes many to fill it
            clients = min(FAR_CLIENTS if waits else NEAR_CLIENTS, shot.room if kept else FAR_CLIENTS)
            self._capacity[key] = h2load.capacity(shot.url, clients, seconds, place, save_as) if kept else ab.run(
                shot.url, clients, place._replace(others=()), save_as, seconds=seconds,
                limit=self.limit_seconds).rate
            self.redis.settle()
        return self._capacity[key]

    def _page_of(self, subject):
        """What the floor answers with: the file that is asked for, or as many bytes as our servers do. For
        others nothing."""
        if subject != "floor":
            return None
        file = os.path.join(self.root, "public", self.path.lstrip("/"))
        if os.path.isfile(file):
            return file
        if self._page_bytes is None:
            log = os.path.join(self.folder, "raw", "page.log")
            any_server = servers.path_of(servers.NAMES[-1])
            place = self.hosts.place("server")
            with servers.Server(any_server, self.redis.where, (), log, prefix=place.prefix,
                                address=place.address, launch=place.launch) as server:
                try:
                    self._page_bytes = len(self.hosts.fetch(server.url + self.path))
                except OSError as error:
                    raise Trouble("no %s to answer with: %s" % (self.path, error)) from error
        return self._page_bytes

    # ---- measuring --------------------------------------------------------------------------

    def measure_cells(self, turns):
        """Measures a cell for each turn. If a load generator has given up on a spot, it is not sent
        there again: that would take a minute each time, and fail again."""
        hopeless = set()
        waits = [self._wait(spot) for _, spot in turns]
        with Record(self, len(turns)) as record:
            for at, (number, spot) in enumerate(turns):
                if spot in hopeless:
                    record.plan(self.planned - 1)
                elif not record.measured(spot, number, waits[at:]).load:
                    hopeless.add(spot)

    def _wait(self, spot):
        """About how many seconds longer a cell takes because its Redis is far: a page asks three times."""
        page = 3 * (spot.dials.delay_ms or 0) / 1000
        clients = max(spot.clients, 1)
        at_once = {"iterative": 1, "forking": clients, "poll": clients, "epoll": clients}
        pages = self.per_client * clients / at_once.get(spot.subject, min(clients, 100))
        warm_up = cells.FEW if spot.subject == "iterative" else 1
        return warm_up * page + min(pages * page, self.most_seconds)

    @property
    def guess_seconds(self):
        """About what a cell takes."""
        return self.seconds + cells.warm_up_seconds(self) + BETWEEN_SECONDS

    @property
    def status(self):
        return 1 if self.wrong else self.experiment.status(self)

    def close(self):
        """Leaves nothing behind in a Redis that is not ours."""
        if self.options.redis:
            self.redis.forget()

    # ---- what the report says of it ---------------------------------------------------------

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def pinned(self):
        """What runs where, as a sentence."""
        server, client, _ = self.cores
        if server and self.options.redis:
            return ("The server was pinned to %s, the load generator to %s; Redis (%s) was there "
                    "already and is where it is." % (machine.named(server), machine.named(client),
                                                     self.options.redis))
        return self.hosts.pinned()

    def drift(self):
        """How wide the interval of the floor's median is, in percent, as (median, most) of its
        cells; nothing if there is no such cell with several rounds."""
        floor = [cell for cell in self.cells if getattr(cell, "spot", None)
                 and cell.spot.subject == "floor" and not cell.spot.rate]  # which it would only repeat
        spreads = [spot.rate.width_percent for spot in rounds.by_spot(floor).values()
                   if len(spot.clean) > 1]
        return (statistics.median(spreads), max(spreads)) if spreads else ()

    def caption(self, text):
        """A table's caption, which says so if the machine was noisy."""
        noisy = self.drift() and self.drift()[0] > rounds.WIDE_PERCENT
        return text + (", in a noisy hour: the floor drifted by %.0f %%" % self.drift()[0]
                       if noisy else "")

    def fine_print(self, pace):
        """The paragraph below the table. `pace`: a sentence on how often and how long, or None."""
        facts = dict(self.facts())
        sentences = ["%s, %s, %s." % (facts["processor"], facts["cores"], facts["kernel"]),
                     self.pinned(), *[ONE_CLIENT] * (len(self.cores.client) == 1),
                     pace or "%d round%s%s%s, shuffled by seed %d." % (
                         self.rounds, "" if self.rounds == 1 else "s",
                         " of about %g s a cell" % self.seconds if self.experiment.seconds_are
                         else "", ", longer if not every client had %d requests by then" % (
                             self.per_client) if self.asked else "", self.seed)]
        if self.drift():
            sentences.append("The floor, which does nothing but answer, is the canary: between its "
                             "rounds it drifted by %.0f %%, in one cell by %.0f %%." % self.drift())
        if self._others >= OTHERS_PERCENT:
            sentences.append("Before the run began, other work kept the cores %.0f %% busy: the "
                             "figures suffer from it." % self._others)
        if len(self.cells) < self.planned:
            sentences.append("Interrupted: %d of %d cells were measured." % (
                len(self.cells), self.planned))
        return " ".join(sentences + self.left_out)

    def facts(self):
        """Pairs for environment.txt and the report."""
        facts = self.hosts.environment() + [
            ("Redis", self.redis.version()), ("load generators", self.experiment.versions()),
            ("pinned", self.pinned()),
            ("others", "%.0f %% of all cores before the run" % self._others),
            ("seed", self.seed), ("command", shlex.join(sys.argv)), ("began", self.began),
            *self.experiment.facts(self)]
        self.write("environment.txt", "".join("%s: %s\n" % pair for pair in facts))
        return facts


class Record:
    """Records cells in run.cells and in cells.tsv as soon as they are measured, so that Ctrl-C
    keeps them, and on the progress line."""

    def __init__(self, run, planned, guess_seconds=None):
        self._run = run
        self._progress = Progress(planned, guess_seconds or run.guess_seconds)
        self._tsv = None
        self._recalled = 0
        self.plan(planned)

    def __enter__(self):
        self._tsv = open(os.path.join(self._run.folder, "cells.tsv"), "w", encoding="utf-8")
        self._write(self._run.experiment.columns)
        return self

    def __exit__(self, *exception):
        self._tsv.close()
        self._progress.clear()

    def plan(self, cells_in_all):
        """Sets how many cells there will be. A search knows it only later."""
        self._run.planned = cells_in_all
        self._progress.cells = cells_in_all - self._recalled

    def begin(self, what, waits=()):
        self._progress.begin(what, waits)

    def measured(self, spot, number, waits=()):
        """The cell of this spot in this round, measured now or earlier."""
        cell = self.recall(spot=spot, round=number)
        if not cell:
            self.begin("round %d, %s" % (number, spot), waits)
            cell = cells.Cell(spot, number)
            cells.measure(cell, self._run)
            self.keep(cell, "%s: %s" % (spot, outcome(cell)))
        return cell

    def recall(self, **wanted):
        """The cell that an earlier sitting has measured, or None."""
        cell = self._run.kept.recall(**wanted)
        if cell:
            self._take(cell)
            self._recalled += 1
            self.plan(self._run.planned)
        return cell

    def keep(self, cell, what):
        self._run.kept.keep(cell, self._run.asked)
        self._take(cell)
        self._progress.cell_done(what)

    def _take(self, cell):
        self._run.cells.append(cell)
        self._write(self._run.experiment.raw(cell))

    def _write(self, row):
        print(*row, sep="\t", file=self._tsv, flush=True)


def outcome(cell):
    """The result in a few words, for the progress line."""
    if cell.wrong:
        return cell.wrong[0]
    if cell.spot.rate:
        return cell.not_held or "held"
    return "%s requests/s" % format(round(cell.rate), ",")


def with_revisions(wanted, revisions):
    """Each of our servers is followed by itself of those revisions."""
    return [each for name in wanted for each in [name, *(
        " ".join(["%s@%s" % (name.split()[0], revision), *name.split()[1:]])
        for revision in revisions if subjects.is_ours(name))]]


def new_folder(wanted=None):
    """The wanted folder, or a new build/loadtest/STAMP."""
    if wanted:
        os.makedirs(os.path.join(wanted, "raw"), exist_ok=True)
        return wanted
    stamp = time.strftime("%Y-%m-%d-%H%M%S")
    for number in range(1, 100):
        name = stamp if number == 1 else "%s-%d" % (stamp, number)
        folder = os.path.join(machine.BUILD, "loadtest", name)
        try:
            os.makedirs(os.path.join(folder, "raw"))
            return folder
        except FileExistsError:
            continue
    raise Trouble("no new folder in %s/loadtest" % machine.BUILD)
