"""engine: one engine for all programs of this folder that measure.

An experiment is a declaration: which subjects, in which spots (cells.Spot: a setting and a load generator), how
often, and which figures. Everything else is here: the options, the order of the turns, measuring again what was
disturbed, what is stored, the report, Ctrl-C. In build/loadtest/STAMP a run leaves:

    report.html       the tables, the charts, and the fine print, in one page
    table.md          the tables alone
    chart-1.svg ...   the charts alone
    cells.tsv         every single measurement, as it was made; the tables are computed from nothing else
    environment.txt   what one must know about the machine and this run
    raw/              the output of the load generators and the servers
"""

import argparse
import contextlib
import itertools
import math
import os
import pathlib
import random
import re
import shlex
import statistics
import sys
import time

import processes
import redis
import servers
import top
from lib import Trouble, cells, rows, subjects
from lib.cells import Spot
from lib.generators import load
from lib.measuring import machine, web
from lib.reporting import chart
from lib.reporting.progress import Progress
from lib.reporting.report import Report
from lib.reporting.table import count
from lib.subjects import companions, peers, places, remote

PAGE = "/guestbook"
TOOLS = {"ab": "-V", "wrk": "--version", "h2load": "--version", "strace": "-V"}  # how each tells its version
TRIES = 3  # of a cell that was disturbed
SPINS = 9  # of the canary, before the first cell
LEAST = {False: (20, 30), True: (2, 5)}  # requests for each client, if so many seconds suffice
LIMIT_FACTOR, LIMIT_LEAST_SECONDS = 10, 60  # a load that takes longer is given up; a SYN may be sent again
BETWEEN_SECONDS = 0.8  # from one cell to the next

EPILOG = """\
Each run starts a private Redis, and ends it afterwards. Results are in build/loadtest/STAMP; the last line is the address of the report. Status: 0 if every cell is
right; 1 if one had errors, unequal work or other work beside it, or could not be measured; 2 for wrong usage;
130 after Ctrl-C, which keeps and shows what has been measured so far.

example:
  %s
"""


class Experiment:
    """One program. A subclass sets what is particular to it."""

    name = title = question = example = ""
    tools = ("ab",)
    servers = [*top.NAMES, "floor"]
    kinds = ("ab", "wrk")  # load generators
    path = PAGE  # what is asked for
    levels = (20, 100, 500)
    levels_are = "numbers of clients at once"
    rounds, quick_rounds = 5, 1
    seconds, quick_seconds = 0.5, 0.3  # a cell
    per_client = 20  # requests that each client should have
    most_seconds = 0  # if a cell may take longer than usual, until each client had its requests
    has_dials = True
    figures = (rows.RATE, rows.P99, rows.MICROS)
    axis = None  # the setting that the columns of a table differ in; None: the one with the most values

    def __init__(self, doc):
        self._doc = doc

    def add_options(self, parser):
        """Adds options of its own."""

    def check_options(self, options, parser):
        """Checks what argparse cannot check, and sets what depends on others."""

    def spots(self, run):
        """What each round measures. No dial changes the floor."""
        options = run.options
        dials = [dict(zip(DIALS, each)) for each in itertools.product(*(getattr(options, name) or [rest]
                                                                     for name, rest in DIALS.items()))]
        return [spot for spot in dict.fromkeys(
            Spot(name, kind, run.path, level, **({} if name == "floor" else dial))
            for kind in options.kinds for level in run.levels for dial in dials for name in run.servers)
                if run.has_place_for(spot)]

    def measure(self, run):
        """Measures all turns. A search, whose spots are not known before, has its own."""
        spots, dice = self.spots(run), random.Random(run.seed)
        turns = []
        for number in range(1, run.rounds + 1):
            dice.shuffle(spots)  # servers and settings
            turns += [(number, spot) for spot in spots]
        run.plan(len(turns))
        hopeless = set()  # where a load generator has given up: it would take a minute each time, and fail again
        for number, spot in turns:
            if spot in hopeless:
                run.plan(run.planned - 1)
            elif not run.measured(spot, number)["requests"]:
                hopeless.add(spot)

    def look(self, all_rows):
        """Lines for a terminal, of 80 columns: what may be ranked, and the first table, as far as it fits. (A floor that
        was measured first has a table of its own, since no dial changes it.)"""
        first = max(rows.panels(all_rows, self._axis(all_rows)).values(), key=len)
        values, found = rows.grid(first, self._axis(all_rows))
        header = ["server", *(rows.heading(self._axis(all_rows), value) for value in values)]
        lines = [[name, *(spot.text(self.figures[0], short=True) if spot else "" for spot in line)]
                 for name, line in found.items()]
        left_out = []
        while len(header) > 2 and len(rows.in_letters(header, lines)[0]) > rows.COLUMNS:
            left_out[:0] = [[line.pop(len(line) // 2) for line in [header, *lines]][0]]
        notes = ["Only in the report: %s." % ", ".join(left_out)] * bool(left_out) + rows.shared(first)
        return [*rows.wrapped(rows.sentence(all_rows)), "", "%s, %s" % (
            self.figures[0].name, rows.words(rows.setting(first[0]), (self._axis(all_rows),))), "",
                *rows.in_letters(header, lines), *sum(map(rows.wrapped, notes), [])]

    def _axis(self, all_rows):
        return self.axis or rows.axis_of(all_rows)

    def add_results(self, report, all_rows):
        """Adds tables and charts, of nothing but the rows."""
        axis = self._axis(all_rows)
        for own in rows.panels(all_rows, axis).values():
            self.add_panel(report, own, axis)

    def add_panel(self, report, own, axis, name="", drawn=None, behind=None):
        words = rows.words(rows.setting(own[0]), (axis,))
        if len(rows.grid(own, axis)[0]) == 1:
            words = rows.words(rows.setting(own[0]))
        for figure in self.figures:
            header, lines = rows.table(own, axis, figure)
            if any(cell not in ("", "-") for line in lines for cell in line[1:len(header) - (figure is rows.RATE)]):
                caption = "%s, %s" % (figure.name[0].upper() + figure.name[1:], words)
                if figure is self.figures[0] and len(rows.grid(own, axis)[0]) > 2:
                    report.add_chart(picture(name or re.sub(r"\W+", "-", words), caption, drawn or own, axis, figure, behind))
                report.add_table(header, lines, caption)
                header, lines = rows.ratio_table(own, axis, figure)
                if lines:
                    report.add_table(header, lines, "Times the best of the column, within each round: " + caption)

    def look_at(self, server, spot, run):
        """Checks every server before it is loaded. Trouble if it is not to be measured. For a file, equal work
        means the same bytes, or of the floor as many."""
        if self.size(spot, run) and spot.subject not in [*run.commands, "floor"]:
            with open(web.file_of(spot.path), "rb") as file:
                if web.fetch(server.url, spot.path) != (200, file.read()):
                    raise Trouble("it answers with something else than the file %s" % spot.path)

    def size(self, spot, run):
        """Bytes of each response's content; None if they differ."""
        path = web.file_of(spot.path)
        return os.path.getsize(path) if os.path.isfile(path) else None

    def main(self):
        """Runs it, from the command line to the exit status."""
        options = self._parse()
        try:
            subjects.must_be_built("all", *["instruments"] * ("floor" in options.servers or bool(options.delay_ms)))
            with processes.tidied():
                for revision in dict.fromkeys(subjects.revisions(options.servers)):
                    subjects.build(revision)
                with remote.Remote(options.inventory) if options.inventory else places.Here() as hosts:
                    return self._run(Run(self, options, hosts))
        except Trouble as trouble:
            print("%s: %s" % (self.name, trouble), file=sys.stderr)
            return 1

    def _run(self, run):
        try:
            with run:
                self.measure(run)
        finally:
            self._publish(run)
        return 1 if run.wrong or any(row["wrong"] for row in run.rows) else 0

    def _publish(self, run):
        own, said = rows.judged(run.rows), run.said()
        run.write("environment.txt", "".join("%s: %s\n" % pair for pair in [*run.facts, ("said", said)]))
        report = self.tabulate(run.folder, own, said)
        report.add_environment(run.facts)
        run.write("report.html", report.html())
        look = "\n".join(self.look(own)) if own else report.markdown()
        for text in run.left_out if own else []:
            print(*rows.wrapped(text), sep="\n")
        print("%s\n\n%s" % (look, pathlib.Path(run.folder, "report.html").as_uri()))

    def tabulate(self, folder, all_rows, said):
        """Leaves the tables and charts of a run in its folder, from its rows and other figures there. Returns the Report."""
        report = self.report(all_rows, said)
        self.add_more(report, folder)
        held = re.match(r"Measured for .*\n\n", machine.read(os.path.join(folder, "table.md")))  # by loadtest/same
        for name, text in {"table.md": (held[0] if held else "") + report.markdown() + "\n", **{
                "chart-%d.svg" % number: svg for number, svg in enumerate(report.pictures, 1)}}.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        return report

    def report(self, all_rows, said=""):
        """The results, as a Report, computed from the rows of cells.tsv. `said`: the last paragraph."""
        report = Report(self.title, self.question)
        if all_rows:
            report.add_text(rows.sentence(all_rows))
            self.add_results(report, all_rows)
            report.add_text(rows.LEGEND)
        report.add_list(rows.below(all_rows))
        report.add_text(said)
        return report

    def add_more(self, report, folder):
        """Adds results that are no cells, from other files there."""

    # ---- the command line -------------------------------------------------------------------

    def _parse(self):
        parser = top.parser(self.name, self._doc, epilog=EPILOG % self.example)
        add = parser.add_argument
        add("--servers", metavar="LIST", type=names, default=list(self.servers), help="servers to measure, comma-"
            "separated, each perhaps of another revision or with options ('poll@COMMIT,epoll --backlog 10'); also floor, nginx, lighttpd, apache; "
            "and %s (%s)" % (", ".join(companions.NAMES), ", ".join(self.servers)))
        parser.set_defaults(levels=list(self.levels), kinds=list(self.kinds), path=None, **dict.fromkeys(DIALS))
        add("--levels", metavar="LIST", type=numbers, help="%s (%s)" % (
            self.levels_are, ", ".join(map(str, self.levels))))
        add("--rounds", metavar="N", type=positive, help="how often each cell is measured (%d)" % self.rounds)
        add("--seconds", metavar="S", type=seconds, help="how long a cell takes (%g)" % self.seconds)
        add("--quick", action="store_true", default=os.environ.get("QUICK", "") not in ("", "0", "no"),
            help="fewer and shorter rounds (also: QUICK=1 in the environment)")
        add("--path", "--url", metavar="PATH", type=a_path, default=self.path,
            help="what the clients ask for (%s)" % self.path)
        add("--command", metavar="NAME=COMMAND", type=named, action="append", default=[], help="also measure any server "
            "that speaks HTTP; COMMAND is %s; may be repeated" % peers.FORM)
        if self.has_dials:
            add_dials(parser)
        add("--inventory", metavar="FILE", type=os.path.abspath, help="give each a machine of its own: the hosts "
            "`server`, `redis` and perhaps `lb` of an ssh_config(5); see loadtest/four-machines.md")
        add("--into", metavar="FOLDER", type=os.path.abspath, help="put the results there")
        self.add_options(parser)
        options = parser.parse_args()
        check(options, parser)
        self.check_options(options, parser)
        check_backlog(options)
        return options


DIALS = {"idle": 0, "backlog": None, "delay_ms": None, "work_ms": 0, "cores": 1, "instances": None}


def add_dials(parser):
    """Settings that are changed while all others stay."""
    add = parser.add_argument
    add("--delay", dest="delay_ms", metavar="LIST", type=counts, help="milliseconds that Redis is away, such as "
        "0,1,10,50")
    add("--work", dest="work_ms", metavar="LIST", type=milliseconds, help="milliseconds of CPU time that a page "
        "uses, such as 0,0.1,1,10")
    add("--cores", metavar="LIST", type=numbers, help="number of cores that the server may use, such as 1,2")
    add("--idle", metavar="LIST", type=counts, help="more clients, which keep a connection and ask every four "
        "seconds, such as 0,5000")
    add("--backlog", "--backlogs", metavar="LIST", type=numbers, help="of the accept queue, such as 10,65535")
    add("--instances", metavar="LIST", type=numbers, help="so many servers behind the balancer of --inventory")


def check(options, parser):
    if options.inventory and options.command:
        parser.error("--inventory has no other servers")
    if options.instances and not options.inventory:
        parser.error("--instances needs --inventory, where the balancer is")
    usable = machine.usable_cores()
    if max(options.cores or [1]) > len(usable) and not options.inventory:
        parser.exit(2, "%s: --cores %d is not measured: it is more than there are, %d\n" % (
            parser.prog, max(options.cores), len(usable)))
    options.command = {name: peers.command_line(line) for name, line in options.command}
    options.servers = sorted([*options.servers, *options.command], key="floor".__eq__)


def check_backlog(options):
    """No queue is longer than somaxconn, whatever a server asks for (listen(2))."""
    longest = 65535 if options.inventory else int(machine.read("/proc/sys/net/core/somaxconn") or 65535)
    options.backlog = options.backlog and list(dict.fromkeys(min(each, longest) for each in options.backlog))


# ---- what options may be --------------------------------------------------------------------


def named(text):
    """A new subject's name, and the text that belongs to it."""
    name, _, value = text.partition("=")
    if not re.fullmatch(r"[\w.-]+", name) or subjects.is_known(name):
        raise argparse.ArgumentTypeError("'%s' is no name for another server" % name)
    return name, value


def checked(convert, is_right, wrong):
    """For argparse: what a text is converted to, if that is right; `wrong` says what it is not."""
    def parse(text):
        with contextlib.suppress(ValueError, KeyError):
            value = convert(text)
            if is_right(value):
                return value
        raise argparse.ArgumentTypeError("'%s' is %s" % (text, wrong))
    return parse


def listed(parse):
    """The same for several, separated by commas."""
    return lambda text: [parse(each) for each in dict.fromkeys(text.split(","))]


names = listed(checked(str, subjects.is_known, "none of %s" % ", ".join(
    [*top.NAMES, "floor", *peers.NAMES, *companions.NAMES])))
positive = checked(int, lambda number: number > 0, "not a number from 1")
numbers = listed(positive)
counts = listed(checked(int, lambda number: number >= 0, "not a number from 0"))
kinds = listed(checked({"new": "ab", "kept": "wrk"}.__getitem__, bool, "neither new nor kept"))
milliseconds = listed(checked(lambda text: float(text) if "." in text else int(text),
                              lambda ms: 0 <= ms < 1000, "not a time from 0 to 999 ms"))
seconds = checked(float, lambda number: 0.05 <= number <= 3600, "not a time from 0.05 to 3600 s")
a_path = checked(str, lambda text: text.startswith("/"), "not a path with a slash before it")

# ---- a run ------------------------------------------------------------------------------------


class Run:
    """One run of a program: what it uses, and what it has measured so far."""

    def __init__(self, experiment, options, hosts):
        quick = options.quick
        self.experiment, self.options, self.hosts = experiment, options, hosts
        self.descriptors = machine.raise_descriptor_limit()
        self.cores = hosts.cores()
        self.folder = new_folder(options.into)
        self.rounds = options.rounds or (experiment.quick_rounds if quick else experiment.rounds)
        self.seconds = options.seconds or (experiment.quick_seconds if quick else experiment.seconds)
        self.tries = 1 if quick else TRIES
        self.per_client, self.most_seconds = LEAST[quick]
        self.per_client = min(self.per_client, experiment.per_client)
        self.most_seconds = max(experiment.most_seconds or self.most_seconds,
                                math.ceil(3 * self.seconds)) if not quick else self.most_seconds
        self.limit_seconds = max(LIMIT_LEAST_SECONDS, LIMIT_FACTOR * self.seconds, 2 * self.most_seconds)
        self.guess_seconds = self.seconds + cells.warm_up_seconds(self) + BETWEEN_SECONDS
        self.path = options.path
        self.rows, self.wrong, self.left_out, self.planned, self._tsv = [], [], [], 0, None
        self.canaries = [hosts.canary() for _ in range(SPINS)]
        self.servers = list(filter(self._can_be_measured, options.servers))
        self.commands = {**options.command, **companions.lines(self.servers)}  # by name: the others
        self.levels = [level for level in options.levels if self._can_be_had(level + max(options.idle or [0]))]
        if not self.servers or options.levels and not self.levels:
            raise Trouble(" ".join(self.left_out))
        self.redis = hosts.redis(self.folder, *([redis.free_port()] if self.commands else []))
        self.near = self.redis.on_a_port()  # one way to Redis for all: a command has no Unix socket
        self._relays, self._page_bytes = [], None
        self._say_what_is_measured()
        for name in self.commands:
            self._must_serve(name)

    def _can_be_measured(self, name):
        if name in self.options.command:
            return True
        reason = subjects.why_not(name)
        if not reason and name in peers.NAMES and (self.options.inventory or self.path == PAGE):
            reason = "of the peers there is only the floor on another host" if self.options.inventory else (
                "it has files only; `--path /index.html` asks for one")
        if not reason and name in companions.NAMES and (self.options.inventory or self.path != PAGE):
            reason = "a companion has no page but %s, and is on no other host" % PAGE
        self.left_out += ["%s is left out: %s." % (name, reason)] if reason else []
        return not reason

    def _can_be_had(self, level):
        reason = machine.why_not(level, self.descriptors)
        self.left_out += ["%s clients are left out: %s." % (count(level), reason)] if reason else []
        return not reason

    def _must_serve(self, name):
        """Trouble if this command's server does not serve its page."""
        log = os.path.join(self.folder, "raw", name + ".log")
        try:
            with self.open(name, log) as server:
                status, _ = web.fetch(server.url, self.path)
                if status != 200:
                    raise Trouble("it answers with status %d for %s" % (status, self.path))
        except Trouble as trouble:
            raise Trouble("%s: %s; what it printed is in %s" % (name, trouble, os.path.relpath(log))) from None

    # ---- what a cell needs ------------------------------------------------------------------

    def has_place_for(self, spot):
        """Can a cell be measured? A command may not be able to do all of it."""
        command = self.commands.get(spot.subject)
        return not command or not (
            spot.work_ms and spot.subject not in companions.NAMES
            or spot.delay_ms is not None and "{redis" not in command)

    def asks_redis(self, spot):
        """Can its work be counted there?"""
        return spot.path == PAGE and (subjects.is_ours(spot.subject) or spot.subject in self.commands)

    @contextlib.contextmanager
    def redis_for(self, spot):
        """Where its server finds Redis, for the time of a `with`: a relay may be in between."""
        if spot.delay_ms is None or not (spot.subject in self.commands or subjects.is_ours(spot.subject)):
            yield self.near
            return
        with self.hosts.slow_redis(self.redis, spot.delay_ms, self.folder) as slow:
            self._relays = [slow.pid]
            yield slow
            self._relays = []

    @contextlib.contextmanager
    def open_subject(self, spot, where, log):
        """The server of a spot; or several, as one, behind the balancer."""
        with contextlib.ExitStack() as opened:
            logs = [log.replace(".log", "-%d.log" % each) for each in range(spot.instances or 0)]
            several = [opened.enter_context(self.open(spot.subject, each, where, spot.options(), spot=spot))
                       for each in logs or [log]]
            if spot.instances:
                several[0].url = opened.enter_context(self.hosts.balancer(
                    [server.url.partition("//")[2] for server in several], log))
            yield several[0]

    def open(self, subject, log, where=None, options=(), under=(), spot=None):
        """A context manager: the subject, from its start to its end. Ours ask `where`, this run's Redis or
        another. `under`: a command that starts it, strace's."""
        place = self.hosts.of_server(spot.cores if spot else 1)
        if subject in self.commands:
            line = (companions.line(subject, spot.work_ms if spot else 0) if subject in companions.NAMES
                    else self.commands[subject])
            return peers.Command(subject, line, place.cores, log, (where or self.near).where, under)
        if subject == "floor":
            return peers.Floor(place.cores, log, self._letters(spot), place.address, place.launch, under)
        if not subjects.is_ours(subject):
            return peers.Peer(subject, os.path.join(machine.TOP, "public"), place.cores, log)
        options = [*options, *subject.split()[1:], *(["--bind", place.address] if place.address else [])]
        return servers.Server(subjects.binary_of(subject), (where or self.near).where, log, options, under, place.cores,
                              launch=place.launch)

    def meter(self, server, spot):
        """Measures what a load costs this server, for the time of a `with`."""
        return self.hosts.meter((server.pid,), self.hosts.cores(spot.cores), [*self.redis.pids, *self._relays])

    def _letters(self, spot):
        """How many the floor answers with: as many bytes as our servers do."""
        size = self.experiment.size(spot, self) if spot else None
        if not size and self._page_bytes is None:
            log = os.path.join(self.folder, "raw", "page.log")
            with self.open(top.NAMES[-1], log) as server:
                self._page_bytes = len(web.fetch(server.url, self.path or PAGE)[1])
        return size or self._page_bytes

    # ---- measuring --------------------------------------------------------------------------

    def _say_what_is_measured(self):
        """The facts of this run."""
        self.seed = random.SystemRandom().randrange(1, 10000)
        self.asked = {}  # requests of each spot, as its first round has found out
        self.facts = [*self.hosts.environment(), ("command", shlex.join(sys.argv)), ("Redis", self.redis.version()),
                      ("load generators", ", ".join(load.version(tool, TOOLS[tool]) for tool in self.experiment.tools)),
                      ("pinned", self.hosts.pinned()), ("seed", self.seed),
                      ("began", time.strftime("%Y-%m-%d %H:%M:%S %z"))]
        for what, known_as, version in (("peers", peers.NAMES, peers.version),
                                        ("companions", companions.NAMES, companions.version)):
            texts = [version(name) for name in self.servers if name in known_as]
            self.facts += [(what, ", ".join(dict.fromkeys(texts)))] if texts else []
        self.write("environment.txt", "".join("%s: %s\n" % pair for pair in self.facts))

    def __enter__(self):
        self._tsv = open(os.path.join(self.folder, "cells.tsv"), "w", encoding="utf-8")
        print(*cells.COLUMNS, sep="\t", file=self._tsv, flush=True)
        return self

    def __exit__(self, kind, *exception):
        self._tsv.close()
        self.progress.clear()
        if kind:
            self.left_out.insert(0, "Interrupted: %d of %d cells were measured." % (len(self.rows), self.planned))

    progress = Progress(0, 1)

    def plan(self, number):
        """Sets how many cells there will be. A search knows it only later."""
        if not self.planned:
            self.progress = Progress(number, self.guess_seconds)
        self.planned = self.progress.cells = number

    def measured(self, spot, number):
        """The row of this spot in this round. A cell that was disturbed is measured again, and is void if it
        always was."""
        self.progress.begin("round %d, %s" % (number, spot.subject))
        for attempt in range(1, self.tries + 1):
            cell = cells.Cell(spot, number, attempt)
            cells.measure(cell, self)
            reason = cell.disturbed(statistics.median(self.canaries) if all(self.canaries) else None)
            self.canaries.append(cell.canary_us)
            if not reason:
                break
        if reason and (self.tries > 1 or cell.figures["throttled"]):
            cell.wrong.append(reason)
        row = cells.row(cell)
        self.rows.append(row)
        print(*row.values(), sep="\t", file=self._tsv, flush=True)
        self.progress.cell_done()
        return row

    # ---- what the report says of it ---------------------------------------------------------

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def said(self):
        """The last paragraph of a report, about this run."""
        facts = dict(self.facts)
        limit = facts["limit of CPU time"]
        sentences = ["%s, %s, %s." % (facts["processor"], facts["cores"], facts["kernel"]), facts["pinned"],
                     *["CPU time was limited to %s." % limit] * (limit != "none"),
                     "%d round%s, shuffled by seed %d; a cell took about %g s, or longer until every client had %d "
                     "requests." % (self.rounds, "s" * (self.rounds != 1), self.seed, self.seconds, self.per_client)]
        if any(self.asks_redis(Spot(name, "", self.path)) for name in self.servers):
            sentences.append("Equal work: Redis counted three calls (INCR, GET, LRANGE) for each page, exactly where ab "
                             "counts the requests, and within what was in flight at the end where the clock stops it. "
                             "All asked it %s." % ("through a relay over TCP" if any(row["delay_ms"] for row in self.rows) else
                                                   "over a Unix socket" if self.near.where.startswith("unix:") else "over TCP"))
        return " ".join(sentences + self.left_out + self.wrong)


def picture(name, caption, own, axis, figure, behind=None):
    """A line for each server. `behind`: {server: {value of the axis: figure}}"""
    values, found = rows.grid(own, axis)
    return chart.lines(name, caption, rows.WORDS[axis] % "\N{HORIZONTAL ELLIPSIS}", [
        count(float(value or 0)) if float(value or 0).is_integer() else value for value in values], figure.name, {
            server: [spot and spot.range(figure) for spot in line] for server, line in found.items()}, {
                (server, at) for server, line in found.items() for at, spot in enumerate(line)
                if spot and figure is rows.RATE and spot.is_least}, {
                server: [points.get(value) for value in values] for server, points in (behind or {}).items()})


def new_folder(wanted=None):
    """The wanted folder, or a new build/loadtest/STAMP."""
    folder = wanted or os.path.join(machine.BUILD, "loadtest", time.strftime("%Y-%m-%d-%H%M%S"))
    try:
        os.makedirs(os.path.join(folder, "raw"), exist_ok=True)
    except OSError as error:
        raise Trouble("%s cannot be made: %s" % (folder, error.strerror)) from error
    return folder
