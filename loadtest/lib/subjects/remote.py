"""remote: four machines: the load is made on this one, and ssh(1) reaches the server's, Redis', and the
balancer's if there is one.

The inventory is a configuration of ssh, ssh_config(5), with the hosts `server` and `redis`, and perhaps `lb`.
HostName is the address at which they reach one another. On each machine the project is in the same folder as
here, and built. Our part there is run by this file:

    about                     what must be known of the machine, as JSON
    run FOLDER CORES WORD...  a process: prints its pid. Its output is our error output
    meter CORES PID...        what these processes cost, from the first line of our input to its end: prints a
                              line when it is ready, one when it has begun, and the figures, as JSON

The last two end with their standard input, and so with the connection, however that ends.
"""

import contextlib
import functools
import json
import os
import re
import select
import shlex
import socket
import subprocess
import sys
import tempfile

import processes
import redis
import servers
from lib import Trouble
from lib.measuring import machine, meter
from lib.subjects import peers, places

NEEDED = ("server", "redis")
CONNECT_SECONDS = 30
BALANCER_PORT, RELAY_PORT = 8000, 7999
THERE = "cd %s && exec python3 -B -m lib.subjects.remote %s"
REDIS = ["--port", str(redis.USUAL_PORT), "--protected-mode", "no", "--tcp-backlog", "65535", "--maxclients",
         "20000", "--save", "", "--appendonly", "no"]


class Remote(places.Here):
    """The machines, for the time of a `with`."""

    def __init__(self, inventory):
        self._inventory = inventory
        self._about, self._started = {}, []

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.callback(self.__exit__)
            here = dict(machine.environment())["ZeroHTTPd"]
            for host in NEEDED:
                about = json.loads(processes.output_of(self._ssh(host, "about"), CONNECT_SECONDS))
                if dict(about["environment"])["ZeroHTTPd"] != here:
                    raise Trouble("%s has another commit of this project in %s" % (host, machine.TOP))
                self._about[host] = about
            stack.pop_all()
        return self

    def __exit__(self, *exception):
        for process in reversed(self._started):
            processes.end(process)

    def _ssh(self, host, *words):
        """A command that runs this file on the host."""
        return ["ssh", "-F", self._inventory, "-o", "BatchMode=yes", host, THERE % (shlex.quote(machine.TOP + "/loadtest"), shlex.join(words))]

    @functools.lru_cache(maxsize=None)
    def address(self, host):
        """Its IPv4 address."""
        known = processes.output_of(["ssh", "-F", self._inventory, "-G", host])
        name = re.search(r"^hostname (.+)$", known, re.MULTILINE)[1]
        try:
            return socket.gethostbyname(name)
        except OSError as error:
            raise Trouble("%s: no host `%s`: %s" % (self._inventory, host, error)) from error

    def cores(self, count=1):
        """Each of its own machine."""
        server, store = (self._about[host]["cores"] for host in NEEDED)
        return machine.Cores(tuple(server[:count]), tuple(machine.usable_cores()), tuple(store[-1:]))

    def are_shared(self, _count):
        return False

    def of_server(self, count=1):
        return places.Place(self.cores(count).server, self.address("server"), functools.partial(self.run_in, "server"))

    def pinned(self):
        return "Machines of their own: %s, the load generator on %s of this one." % (", ".join("%s on %s of %s" % (
            host, machine.named(getattr(self.cores(), host)), self.address(host)) for host in NEEDED), machine.named(
                self.cores().client))

    def environment(self):
        """The server's machine, and the others in brief."""
        others = {"Redis' host": dict(self._about["redis"]["environment"]),
                  "load generator's host": dict(machine.environment())}
        return [*map(tuple, self._about["server"]["environment"]), *(
            (whose, "%(processor)s, %(cores)s, %(kernel)s" % facts) for whose, facts in others.items())]

    def run_in(self, host, command, cores=(), cwd=None, stdout=None, **_options):
        """processes.start() there, in the project's folder or in one of its own. What it returns is ssh; its
        pid `there` is what we have started."""
        process = processes.start(
            self._ssh(host, "run", cwd if cwd == machine.TOP else "", ",".join(map(str, cores or getattr(self.cores(), host, ()))),
                      *command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stdout, encoding="utf-8")
        process.host = host
        self._started.append(process)
        with process.stdout:
            process.there = int(process.stdout.readline() or 0)
        return process

    def _begin(self, host, name, command, log, ready):
        """Starts it, as a servers.Started. It is ready when its log says so."""
        it = servers.Started(name, log, launch=functools.partial(self.run_in, host))
        it.folder = os.path.dirname(log)
        it.start(command)
        it.await_ready(lambda: ready in processes.printed(log))
        return it

    def redis(self, folder, _port=None):
        self._begin("redis", "Redis", [redis.SERVER, "--bind", self.address("redis"), *REDIS], os.path.join(
            folder, "redis.log"), "Ready to accept connections")
        return redis.Redis("%s:%d" % (self.address("redis"), redis.USUAL_PORT))

    def slow_redis(self, store, ms, folder):
        return redis.SlowRedis(store, ms, folder, port=RELAY_PORT, address=self.address("redis"),
                               launch=functools.partial(self.run_in, "redis"))

    @contextlib.contextmanager
    def balancer(self, instances, log):
        """nginx on `lb` before some instances, given as "ADDRESS:PORT". It asks over a new connection each
        time, which is nginx's default. Gives its URL."""
        listen = "%s:%d" % (self.address("lb"), BALANCER_PORT)
        descriptors = min(machine.raise_descriptor_limit(), 1 << 17)
        conf = peers.filled("balancer", {
            "folder": ".", "listen": listen, "descriptors": descriptors, "connections": descriptors - 64,
            "instances": "\n".join("        server %s max_fails=0;" % each for each in instances)})
        nginx = self._begin("lb", "nginx", ["sh", "-c", 'printf %s "$1" >nginx.conf && exec nginx -e stderr -p ./ '
                                            "-c nginx.conf", "sh", conf], log, "start worker process")
        try:
            yield "http://" + listen
        finally:
            nginx.end()

    def canary(self):
        """There is none: only the floor shows whether the machines have changed."""

    def meter(self, _pids, cores, _store):
        return _Meter(self, cores)

    def begin_meter(self, host, cores):
        """A process that measures there what we have started, once it is told to."""
        pids = [str(each.there) for each in self._started if each.host == host and not processes.has_ended(each)]
        own = ",".join(map(str, getattr(cores, host)))
        it = processes.start(self._ssh(host, "meter", own, *pids), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             encoding="utf-8")
        it.stdout.readline()
        return it


class _Meter(meter.Meter):
    """Of the load generator here, and of a process on each other host."""

    def __init__(self, remote, cores):
        super().__init__((), machine.Cores((), remote.cores().client, ()))
        self._there = {host: remote.begin_meter(host, cores) for host in NEEDED}

    def __enter__(self):
        for each in self._there.values():
            with contextlib.suppress(BrokenPipeError):
                print(file=each.stdin, flush=True)
            each.stdout.readline()
        return super().__enter__()

    def __exit__(self, kind, *exception):
        super().__exit__(kind, *exception)
        found, there, self._there = {}, self._there, {}
        for host, each in there.items():
            with contextlib.suppress(BrokenPipeError):
                each.stdin.close()
            found[host] = each.stdout.read()
            processes.end(each)
            if kind is None and not found[host]:
                raise Trouble("%s could not be watched" % host)
        if kind is None and found:
            self.figures = together(self.figures, *(json.loads(found[host]) for host in NEEDED))


def together(load, server, store):
    """The figures of all three. A share of a core is taken of each host's own time."""
    sums = [*meter.RECORD.values(), "others_percent", "steal_percent", "throttled"]
    return {**server, **{name: load[name] for name in ("client_core_busy", "client_percent")},
            "redis_core_busy": store["server_core_busy"], "redis_percent": store["server_percent"],
            **{name: sum(each.get(name) or 0 for each in (server, store, load)) for name in sums if name in server}}


# ---- there ----------------------------------------------------------------------------------------


def run(folder, cores, *command):
    machine.raise_descriptor_limit()
    os.environ["PATH"] += ":/usr/sbin:/sbin"  # which a user's PATH may not have
    with processes.tidied(), contextlib.ExitStack() as stack:
        process = processes.start(command, [int(word) for word in cores.split(",") if word], stdin=subprocess.DEVNULL, stdout=sys.stderr,
                                  cwd=folder or stack.enter_context(tempfile.TemporaryDirectory()))
        print(process.pid, flush=True)
        select.select([sys.stdin, os.pidfd_open(process.pid)], [], [])
        status = processes.end(process)
    sys.exit(status if status >= 0 else 128 - status)


def measure(cores, *pids):
    """Beside the cores, if there are others."""
    cores = tuple(map(int, cores.split(",")))
    os.sched_setaffinity(0, os.sched_getaffinity(0).difference(cores) or cores)
    watch = meter.Meter(tuple(map(int, pids)), machine.Cores(cores, (), ()))
    print(flush=True)
    if sys.stdin.readline():
        with watch:
            print(flush=True)
            sys.stdin.read()
        print(json.dumps(watch.figures))


if __name__ == "__main__":
    if sys.argv[1] == "about":
        print(json.dumps({"cores": machine.usable_cores(), "environment": machine.environment()}))
    else:
        {"run": run, "meter": measure}[sys.argv[1]](*sys.argv[2:])
