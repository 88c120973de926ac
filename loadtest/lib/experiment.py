"""experiment: one engine for all programs of this folder.

An experiment is a declaration: which subjects, in which spots (cells.Spot: a setting and a load
generator), how often, and which tables and charts. Everything else is here and in run: the options,
the order of the turns, the warm-up, the measuring, the judging, what is stored, the report, and the
handling of Ctrl-C.
"""

import argparse
import contextlib
import os
import re
import shutil
import sys

from lib import Trouble, cells, rounds, subjects
from lib.generators import load
from lib.measuring import machine, processes
from lib.reporting import table
from lib.reporting.report import Report
from lib.run import PAGE, Run
from lib.subjects import companions, lab, peers, places, redis, relay, remote, servers

# How each tool tells its version, and the pattern that finds it there, if not after its name.
GENERATORS = {"ab": ("-V", r"Version (\S+)"), "wrk": ("--version",), "httperf": ("--version",),
              "h2load": ("--version", r"nghttp2/([\d.]+)"), "curl": ("--version",)}

BOUNDS = ("Bound: who was full, by the CPU time of every process and core: one core of the server, the load "
          "generator's, or the one that Redis shares with it and uses more of, for 90 % of the time or more. "
          "Where only the load generator was full, the rate is grey and says ≥: the server can do as much "
          "at least, and CPU time a request is what compares. An interval is a bootstrap of the medians of "
          "the rounds; = means that it holds 1, so no difference was seen.")

EPILOG = """\
Each run starts a private Redis, and ends it afterwards. With --redis, or REDIS in the environment,
the run uses a Redis that is there already. There it touches only the guestbook's two keys,
guestbook:visitors and guestbook:entries, and deletes them at the end. If they exist already, the
run does not begin, unless --flush says that they may be deleted.

The results are in build/loadtest/STAMP. Open report.html there.

Status: 0 if every cell is right; 1 if one had errors or unequal work, or could not be measured; 2
for wrong usage; 130 after Ctrl-C, which keeps and prints what has been measured so far.

example:
  %s
"""


class Experiment:
    """One program. A subclass sets what is particular to it."""

    name = ""
    title = ""
    question = ""
    example = ""
    tools = ("ab",)
    servers = servers.NAMES
    path = PAGE  # what is asked for; None: more than one
    levels = (20, 100, 500)
    levels_are = "numbers of clients at once"  # None: the program has no such option
    rounds = 3
    seconds = 1.0  # a cell
    seconds_are = "how long a cell takes"  # None: no limit
    quick_rounds, quick_seconds = 1, 0.3
    per_client = 20  # requests that each client should have
    most_seconds = 0  # if a cell may take longer than usual, until each client had its requests
    in_a_lab = True  # does it ask the server wherever the place runs it?
    crowded = False  # are there more clients at once than a listener's queue usually holds?
    columns = cells.COLUMNS  # the columns of cells.tsv
    raw = staticmethod(cells.raw)  # a cell's figures, one for each of them

    def __init__(self, doc):
        self._doc = doc

    def add_options(self, parser):
        """Adds options of its own."""

    def add_grid_options(self, parser):
        """Adds the options for how much, how often and how long. A program without a grid has
        others."""
        parser.set_defaults(levels=list(self.levels), seconds=None)
        if self.levels_are:
            parser.add_argument("--levels", metavar="LIST", type=numbers, help="%s (%s)" % (
                self.levels_are, ", ".join(map(str, self.levels)) or "found by searching"))
        parser.add_argument("--rounds", metavar="N", type=positive,
                            help="how often each cell is measured (%d)" % self.rounds)
        if self.seconds_are:
            parser.add_argument("--seconds", metavar="S", type=seconds,
                                help="%s (%g)" % (self.seconds_are, self.seconds))

    def check_options(self, options, parser):
        """Checks what argparse cannot check."""

    def spots(self, run):
        """What each round measures: a list of cells.Spot."""
        raise NotImplementedError

    def measure(self, run):
        """Measures all turns. A search, whose spots are not known before, has its own; see
        run.Record."""
        spots = [spot for spot in self.spots(run) if run.has_place_for(spot)]
        run.measure_cells(rounds.order(spots, run.rounds, run.seed))

    def report(self, run):
        """The results, as a report.Report."""
        report = Report(self.title, self.question)
        self.add_results(report, run, table.Notes())
        report.add_text(run.fine_print(self.pace(run)))
        return report

    def add_results(self, report, run, notes):
        """Adds the tables, charts and texts. Tables share the notes."""
        raise NotImplementedError

    def pace(self, _run):
        """A sentence for the fine print on how often and how long, instead of the usual one."""
        return None

    def status(self, run):
        """The program's exit status after a complete run."""
        return 1 if any(cell.wrong for cell in run.cells) else 0

    def look_at(self, server, run):
        """Checks every server before it is loaded. Trouble if it is not to be measured."""

    def beside(self, _shot):
        """A context manager around the load: what the server is to serve beside it."""
        return contextlib.nullcontext()

    def size(self, _run, _cell):
        """Bytes of each response's content; None if they differ."""
        return None

    def why_not(self, level, descriptors):
        """Why a level cannot be had on this machine, or None."""
        return machine.why_not(level, descriptors)

    def facts(self, run):
        """More pairs for environment.txt."""
        known = [name for name in run.servers if name in peers.NAMES]
        others = [name for name in run.servers if name in companions.NAMES]
        return [(what, ", ".join(dict.fromkeys(map(version, names)))) for what, names, version in (
            ("peers", known, peers.version), ("companions", others, companions.version)) if names]

    def plan(self, run):
        """What it would measure, and about how long that takes, in words."""
        turns = len(self.spots(run)) * run.rounds
        return "%d cells, about %.0f minutes" % (turns, turns * run.guess_seconds / 60)

    def versions(self):
        """The versions of its tools, as in "ab 2.3, wrk 4.1.0"."""
        return ", ".join(load.version(tool, *GENERATORS[tool]) for tool in self.tools)

    def main(self):
        """Runs it, from the command line to the exit status."""
        options = self._parse()
        try:
            if options.delay_ms or options.dials:
                relay.must_be_built()
            check_tools(self.tools, options)
            return self._run(options)
        except Trouble as trouble:
            print("%s: %s" % (self.name, trouble), file=sys.stderr)
            return 1

    def _run(self, options):
        with processes.tidied():
            for revision in dict.fromkeys([*options.against, *subjects.revisions(options.servers)]):
                subjects.build(revision)
            with open_hosts(options, self.crowded) as hosts:
                hosts.most_generators = options.generators
                run = Run(self, options, hosts)
                if options.plan:
                    print(self.plan(run))
                    return 0
                try:
                    self.measure(run)
                    run.kept.complete()
                finally:
                    run.close()
                    self._publish(run)
                return run.status

    def _publish(self, run):
        report = self.report(run)
        report.add_environment(run.facts())
        if run.cells:
            report.add_raw("Every single measurement", self.columns, map(self.raw, run.cells))
        print(report.markdown())
        run.write("table.md", report.markdown() + "\n")
        run.write("report.html", report.html())
        for number, picture in enumerate(report.pictures, 1):
            run.write("chart-%d.svg" % number, picture)
        print("\n%s" % os.path.relpath(os.path.join(run.folder, "report.html")), file=sys.stderr)

    # ---- the command line -------------------------------------------------------------------

    def _parser(self):
        parser = argparse.ArgumentParser(
            prog=self.name, description=self._doc, epilog=EPILOG % self.example,
            formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--servers", metavar="LIST", type=names, default=list(self.servers),
                            help="servers to measure, comma-separated, each perhaps with options "
                            "('poll,epoll --backlog 10'); also floor, nginx, lighttpd, apache; and %s (%s)" % (
                                ", ".join(companions.NAMES), ", ".join(self.servers)))
        self.add_grid_options(parser)
        parser.add_argument("--quick", action="store_true", default=bool(os.environ.get("QUICK")),
                            help="fewer and shorter rounds (also: QUICK=1 in the environment)")
        parser.add_argument("--against", metavar="REV", action="append", default=[],
                            help="also measure our servers of another revision, or with a stored "
                            "change (new-redis); may be repeated")
        parser.set_defaults(url=None, command={}, page={}, delay_ms=None, dials=False)
        if self.path:
            parser.add_argument("--url", metavar="PATH", type=a_path, default=self.path,
                                help="what the clients ask for (%s)" % self.path)
        add_usual_options(parser)
        self.add_options(parser)
        return parser

    def _parse(self):
        parser = self._parser()
        options = parser.parse_args()
        if options.flush and not options.redis:
            parser.error("--flush is for a Redis given with --redis")
        options.apart = "--lab" if options.lab else options.inventory and "--inventory"
        if options.apart and options.redis:
            parser.error("%s has a Redis of its own" % options.apart)
        if options.apart and not self.in_a_lab:
            parser.error("%s is for programs that ask for pages" % options.apart)
        if options.lab and options.inventory:
            parser.error("--lab and --inventory are different places")
        self.check_options(options, parser)
        return options


def add_usual_options(parser):
    """Adds those that say where and how, whatever is measured."""
    parser.add_argument("--lab", action="store_true",
                        help="give server, Redis and load generator a host each, in network "
                        "namespaces that are made for the run (root only)")
    parser.add_argument("--inventory", metavar="FILE", type=os.path.abspath,
                        help="give each a machine of its own: the hosts `server` and `redis` of "
                        "an ssh_config(5); see loadtest/four-machines.md")
    parser.add_argument("--generators", metavar="N", type=positive,
                        help="cores for the load generator, to see whether more of them change "
                        "a figure (all that are left)")
    parser.add_argument("--plan", action="store_true",
                        help="only say how many cells there are, and how long they take")
    parser.add_argument("--into", metavar="FOLDER", type=os.path.abspath,
                        help="put the results there; continue a run that was interrupted "
                        "there")
    parser.add_argument("--seed", metavar="N", type=positive,
                        help="seed of the shuffle, to repeat its order (a new one)")
    parser.add_argument("--redis", metavar="WHERE", type=redis_address,
                        default=os.environ.get("REDIS") or None,
                        help="use the Redis at unix:PATH or host:port (a private one)")
    parser.add_argument("--flush", action="store_true",
                        help="with --redis: allow the guestbook there to be deleted")


def open_hosts(options, crowded):
    """Where everything runs: a context manager. It is a lab; or this machine as it is; or, if the
    machine's own settings would turn so many clients away, a network apart, if there can be one."""
    apart = crowded and os.geteuid() == 0 and not options.redis
    if options.inventory:
        return remote.Remote(options.inventory)
    place = lab.Lab if options.lab else places.Apart if apart else places.Here
    return place()


def check_tools(tools, options):
    """Trouble if one is missing."""
    needed = [*tools, redis.CLI]
    if not (options.redis or options.inventory):
        needed += [redis.SERVER]
    needed += ["curl"] * bool(options.apart) + ["ssh"] * bool(options.inventory)
    if options.command or companions.lines(options.servers):
        needed += ["ss"]
    missing = [tool for tool in needed if not shutil.which(tool)]
    if missing:
        raise Trouble("missing: %s. `make deps` brings it" % ", ".join(missing))


# ---- what options may be --------------------------------------------------------------------


def named(text):
    """A new subject's name, and the text that belongs to it."""
    name, _, value = text.partition("=")
    if not re.fullmatch(r"[\w.-]+", name) or subjects.is_known(name):
        raise argparse.ArgumentTypeError("'%s' is no name for another server" % name)
    if not value.strip():
        raise argparse.ArgumentTypeError("'%s=' says nothing of it" % name)
    return name, value


def checked(convert, is_right, wrong):
    """For argparse: what a text is converted to, if that is right; `wrong` says what it is not."""
    def parse(text):
        with contextlib.suppress(ValueError):
            value = convert(text)
            if is_right(value):
                return value
        raise argparse.ArgumentTypeError("'%s' is %s" % (text, wrong))
    return parse


def listed(parse):
    """The same for several, separated by commas."""
    return lambda text: [parse(each) for each in dict.fromkeys(text.split(","))]


names = listed(checked(str, subjects.is_known, "none of %s" % ", ".join(
    [*servers.NAMES, "floor", *peers.NAMES, *companions.NAMES])))
positive = checked(int, lambda number: number > 0, "not a number from 1")
numbers = listed(positive)
milliseconds = listed(checked(lambda text: float(text) if "." in text else int(text),
                              lambda ms: 0 <= ms < 1000, "not a time from 0 to 999 ms"))
seconds = checked(float, lambda number: 0.05 <= number <= 3600, "not a time from 0.05 to 3600 s")
a_path = checked(str, lambda text: text.startswith("/"), "not a path with a slash before it")
redis_address = checked(str, re.compile(r"unix:/.*|.+:\d+").fullmatch,
                        "neither unix:/PATH nor host:port")
