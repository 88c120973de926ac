"""remote: machines that ssh(1) reaches: one for the server, one for Redis, and one for the balancer.

The inventory is a configuration of ssh, ssh_config(5), with the hosts `server` and `redis`, `lb` if
there is a balancer, and `load-2`, `load-3` and so on if they are to make a share of the load. HostName
is the address at which they reach one another. On each machine the project is in the same folder as
here, and built.

The engine is ssh alone, because all that is needed is to start a program there, to read what it
prints, and to end it, which the end of its input does. Nothing of ours listens there. Ansible runs a
task to its end, so a server and its meter would have to be polled, and GNU parallel is for many
machines that do the same. The commands for one machine share a connection (ControlMaster). Tsung
makes a load from many machines, but a different one: it has arrivals instead of clients, and no
figure of it would stand beside ab's and wrk's. So these run on each machine, and their reports are
added up.
"""

import contextlib
import functools
import json
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
from dataclasses import replace

from lib import Trouble
from lib.measuring import machine, meter, processes
from lib.subjects import lab, places

NEEDED = ("server", "redis")
LOADERS = re.compile(r"^\s*Host\s.*?(?=load-)(.*)$", re.MULTILINE | re.IGNORECASE)
CONNECT_SECONDS = 30
LINGER = "ControlPersist=10"  # seconds that a connection waits for the next command
THERE = "cd %s && exec python3 -B -m lib.there %s"


class Remote(lab.Lab):
    """The machines, for the time of a `with`."""

    def __init__(self, inventory):
        super().__init__()
        self._inventory = inventory
        self._sockets = None  # ssh's, in a folder with a short name
        self._about = {}  # what is known of each machine
        self._loaders = []  # more hosts that make a share of the load
        self._meters = {}  # a process for each host
        self._meter = None  # that they belong to

    def __enter__(self):
        self._sockets = tempfile.mkdtemp(prefix="zerohttpd.", dir="/tmp")
        with contextlib.ExitStack() as stack:
            stack.callback(self.end)
            for host in NEEDED:
                self.address(host)
            self._loaders = " ".join(LOADERS.findall(machine.read(self._inventory))).split()
            for host in [*NEEDED, *self._loaders]:
                about = json.loads(machine.output_of(self._ssh(host, "about"), CONNECT_SECONDS))
                if dict(about["environment"])["sources"] != machine.sources():
                    raise Trouble("%s has another version of this project in %s" % (
                        host, machine.TOP))
                self._about[host] = about
            stack.pop_all()
        return self

    def end(self):
        self._end_meters()
        for process in reversed(self._started):
            processes.end(process)
        for host in self._hosts:
            with contextlib.suppress(Trouble):
                machine.output_of([*self._words(), "-O", "exit", host])
        shutil.rmtree(self._sockets, ignore_errors=True)

    def _words(self):
        return ["ssh", "-F", self._inventory, "-o", "BatchMode=yes", "-o", "ControlMaster=auto",
                "-o", LINGER, "-o", "ControlPath=%s/%%n" % self._sockets]

    def _ssh(self, host, *words):
        """A command that runs lib.there on this host."""
        folder = shlex.quote(machine.TOP + "/loadtest")
        return [*self._words(), host, THERE % (folder, " ".join(map(shlex.quote, words)))]

    def address(self, host):
        """Its IPv4 address."""
        if host not in self._hosts:
            known = machine.output_of(["ssh", "-F", self._inventory, "-G", host])
            name = re.search(r"^hostname (.+)$", known, re.MULTILINE)[1]
            try:
                self._hosts[host] = socket.gethostbyname(name)
            except OSError as error:
                raise Trouble("%s: no host `%s`: %s" % (self._inventory, host, error)) from error
        return self._hosts[host]

    def prefix(self, host):
        return []

    def pids(self):
        return []

    def cores(self, count=1):
        """A machine.Cores. Their names say whose they are. Of the machines that make the load, only this one
        is in it."""
        return machine.Cores(*(tuple("%s %d" % (where, core) for core in self._cores(host, count))
                               for host, where in (("server", self.address("server")),
                                                   ("load", "here"),
                                                   ("redis", self.address("redis")))))

    def _cores(self, host, count=1):
        if host == "load":
            return tuple(machine.usable_cores()[:self.most_generators])
        every = self._about[host]["cores"] if host in self._about else []  # lb is not pinned
        if host in self._loaders:
            return tuple(every[:self.most_generators])
        return tuple(every[:count] if host == "server" else every[-1:])

    def place(self, host, count=1):
        cores = self._cores(host, count)
        return places.Place(cores, others=tuple(map(self._loader, self._loaders))) if (
            host == "load") else places.Place(
                cores, (), self.address(host), functools.partial(self.run_in, host))

    def _loader(self, host):
        cores = self._cores(host)
        *words, guard = self._ssh(host, "load", ",".join(map(str, cores)))
        return places.Place(cores, tuple(words), guard=guard)

    def pinned(self):
        return ("Machines of their own: the server was pinned to %s of %s, Redis to %s of %s, and the "
                "load generator to %s of this one." % (
                    machine.named(self._cores("server")), self.address("server"),
                    machine.named(self._cores("redis")), self.address("redis"),
                    machine.named(self._cores("load")))) + "".join(
                        " %s made a share of the load, on %s." % (host, machine.named(self._cores(host)))
                        for host in self._loaders)

    def environment(self):
        """The server's machine, and the others in brief."""
        found = {"Redis' host": self._about["redis"]["environment"],
                 "load generator's host": machine.environment(),
                 **{host: self._about[host]["environment"] for host in self._loaders}}
        return [*map(tuple, self._about["server"]["environment"]), *(
            (whose, ", ".join(dict(facts)[name] for name in ("processor", "cores", "kernel")))
            for whose, facts in found.items())]

    def run_in(self, host, command, cores=(), cwd=None, stdout=None, **_options):
        """processes.start() there, in the project's folder or in one of its own. What it returns is
        ssh; its pid `there` is what we have started."""
        cores = cores or self._cores(host)
        process = processes.start(
            self._ssh(host, "run", cwd if cwd == machine.TOP else "", ",".join(map(str, cores)),
                      *command),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stdout, encoding="utf-8")
        process.host = host
        self._started.append(process)
        with process.stdout:
            process.there = int(process.stdout.readline() or 0)
        return process

    def meter(self, _server, cores, _store):
        """As a meter.Meter, but put together from one on each host. These are started already, so
        that they can begin at once."""
        self._end_meters()
        for host in [*lab.HOSTS[1:], *self._loaders]:
            pids = [str(each.there) for each in self._started
                    if each.host == host and not processes.has_ended(each)]
            numbers = self._cores(host) if host in self._loaders else (
                name.split()[-1] for name in getattr(cores, host, ()))
            if pids or host in self._loaders:
                self._meters[host] = processes.start(
                    self._ssh(host, "meter", ",".join(map(str, numbers)), *pids),
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
            elif host in NEEDED:
                raise Trouble("what ran on %s has ended" % host)
        for each in self._meters.values():
            each.stdout.readline()
        self._meter = _Meter(self._meters, cores, self._cores("load"))
        return self._meter

    def _end_meters(self):
        for each in self._meters.values():
            processes.end(each)
            each.stdout.close()
        self._meters = {}

    @contextlib.contextmanager
    def watch(self):
        busy = {}
        yield busy
        busy.update(self._meter.used)  # it has ended


class _Meter(meter.Meter):
    """Of the load generator here, and of `there`, a process for each other host."""

    def __init__(self, there, cores, load):
        super().__init__(None, machine.Cores((), load, ()))
        self.used = {}  # percent of a core, on each host
        self._there = there
        self._cores = cores

    def __enter__(self):
        for each in self._there.values():
            with contextlib.suppress(BrokenPipeError):  # then it can print no reading
                print(file=each.stdin, flush=True)
        for each in self._there.values():
            each.stdout.readline()
        return super().__enter__()

    def __exit__(self, kind, *exception):
        super().__exit__(kind, *exception)
        for each in self._there.values():
            with contextlib.suppress(BrokenPipeError):
                each.stdin.close()
        if kind is None:
            found = {host: _reading(host, each.stdout.read()) for host, each in self._there.items()}
            self.used = {"load": self.reading.used["client"], **{
                host: reading.used["server"] for host, reading in found.items()}}
            self.reading = _together(self._cores, self.reading, **found)


def _reading(host, text):
    if not text:
        raise Trouble("%s could not be watched" % host)
    figures = json.loads(text)
    figures["cores"] = machine.Cores(*(meter.Core(*core) for core in figures["cores"]))
    figures["switches"] = figures["switches"] and meter.Switches(*figures["switches"])
    return meter.Reading(**figures)


def _together(pinned, load, server, redis, **others):
    """One Reading. A share of a core is taken of each host's own time. Of the machines that make the
    load, that counts which was busiest, as one that is full sets the limit."""
    every = [load, server, redis, *others.values()]
    busiest = max([load.cores.client, *(reading.cores.server for host, reading in others.items()
                                        if host != "lb")], key=lambda core: core.busy or 0)
    cores = machine.Cores(server.cores.server, busiest, redis.cores.server)
    used = {"server": server.used["server"], "client": load.used["client"],
            "redis": redis.used["server"], "thread": server.used["thread"]}
    others = sum(each.others for each in every)
    longer = load.seconds / server.seconds
    return replace(
        server, seconds=load.seconds, cores=cores, used=used, others=others,
        cpu_us=server.cpu_us * longer,
        cpu_user_us=None if server.cpu_user_us is None else server.cpu_user_us * longer,
        kernel={name: sum(each.kernel.get(name, 0) for each in every) for name in meter.RECORD},
        verdict=meter.verdict(pinned, meter.taken(cores), used, others))
