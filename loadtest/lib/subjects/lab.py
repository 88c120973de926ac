"""lab: four hosts on one machine.

    load ---+            +--- server    the instances, alone on their core
            +-- bridge --+
    lb -----+            +--- redis

Each host is a network namespace with its own address, port range, queues and statistics.
loadtest/hosts makes them, and says how they end whatever happens to us. Processes on `load`, `lb`
and `redis` share the other core. Nothing that is measured goes through the machine's own network,
whose settings stay as they are.

A Unix socket is a file, and the hosts share files. So it would connect them outside of the bridge,
and Redis has none.
"""

import contextlib
import functools
import os
import shutil
import subprocess
import time

from lib import Trouble
from lib.measuring import machine, meter, processes
from lib.subjects import peers, places, redis, servers

HOSTS = ["load", "lb", "server", "redis"]
COMMANDS = ["ip", "nsenter", "unshare"]
BALANCER_PORT = 8000
REAPING_SECONDS = 0.1  # children that end with the load are reaped first, and then counted


def why_not():
    """Why there can be no lab here, or None."""
    missing = [command for command in COMMANDS if not shutil.which(command)]
    if missing:
        return "missing: %s" % ", ".join(missing)
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    try:
        machine.output_of(["unshare", "--net", "sh", "-c",
                           "ip link add type bridge && ip link add type veth"])
    except Trouble as trouble:
        return "no network namespaces here: %s" % trouble
    return None


class Lab(places.Here):
    """The hosts, for the time of a `with`."""

    def __init__(self):
        self._keeper = None
        self._hosts = {}  # name: (address, pid of the process that keeps the host)
        self._started = []  # oldest first

    def __enter__(self):
        reason = why_not()
        if reason:
            raise Trouble(reason)
        self._keeper = processes.start([os.path.join(machine.TOP, "loadtest/hosts"), *HOSTS],
                                       self.cores().client, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, encoding="utf-8")
        for _ in HOSTS:
            words = self._keeper.stdout.readline().split()
            if len(words) != 3:
                self.end()
                raise Trouble("the hosts could not be made")
            self._hosts[words[0]] = (words[1], int(words[2]))
        return self

    def __exit__(self, *exception):
        self.end()

    def end(self):
        """Ends the processes that run_in() has started, the youngest first, and then the hosts,
        with every process that is left on them."""
        for process in reversed(self._started):
            processes.end(process)
        processes.end(self._keeper)
        self._keeper.stdout.close()

    def address(self, host):
        """Its IPv4 address, which only the other hosts can reach."""
        return self._hosts[host][0]

    def pid(self, host):
        """The pid of a process that is on this host as long as the host exists."""
        return self._hosts[host][1]

    def prefix(self, host):
        """The words before a command that make it run on this host. They become the command: the
        process stays the same one, and signals and exit status are the command's."""
        return ["nsenter", "--target", str(self.pid(host)), "--net"]

    def cores(self, count=1):
        """A machine.Cores. Everything but the server shares the others."""
        cores = machine.choose_cores(count, self.most_generators)
        return cores._replace(redis=cores.client)

    def place(self, host, count=1):
        """The Place of a host, if the server may use so many cores."""
        cores = self.cores(count)
        return places.Place(cores.server if host == "server" else cores.client,
                            tuple(self.prefix(host)), self.address(host))

    def pids(self):
        return [self.pid(host) for host in HOSTS]

    def pinned(self):
        cores = self.cores()
        where = "one core, which all share" if not cores.server else (
            "`server` alone on %s, `load`, `lb` and `redis` together on %s" % (
                machine.named(cores.server), machine.named(cores.client)))
        return ("The lab: the hosts load, lb, server and redis, each a network namespace with "
                "somaxconn 65535 and ports from 1024 on, joined by a bridge; %s." % where)

    def run_in(self, host, command, cores=(), **popen_options):
        """processes.start() on one of the hosts, on its core unless others are given."""
        process = processes.start(self.prefix(host) + command,
                                  cores or self.place(host).cores, **popen_options)
        self._started.append(process)
        return process

    def redis(self, folder, _port=None):
        """A Redis on `redis`, its log in `folder`, until the lab ends."""
        address = self.address("redis")
        command = [redis.SERVER, "--bind", address, "--port", str(redis.USUAL_PORT),
                   "--protected-mode", "no",  # only our own hosts can reach it
                   "--tcp-backlog", "65535", "--maxclients", "20000", "--save", "",
                   "--appendonly", "no"]
        self._begin("redis", "Redis", command, folder, "redis.log", "Ready to accept connections")
        return _DistantRedis("%s:%d" % (address, redis.USUAL_PORT), self.prefix("redis"))

    def _begin(self, host, name, command, folder, log, ready):
        """Starts it in `folder`, as a servers.Started. It is ready when its log says so."""
        log = os.path.join(folder, log)
        it = servers.Started(name, (), log, launch=functools.partial(self.run_in, host))
        it.folder = folder
        it.start(command)
        it.await_ready(lambda: ready in processes.printed(log))
        return it

    @contextlib.contextmanager
    def balancer(self, instances, folder):
        """nginx on `lb` before some instances, given as "ADDRESS:PORT". Its configuration and log
        are in `folder`. It asks over a new connection each time, which is nginx's default."""
        listen = "%s:%d" % (self.address("lb"), BALANCER_PORT)
        descriptors = min(machine.raise_descriptor_limit(), 1 << 17)
        conf = peers.filled("balancer", {
            "folder": ".", "listen": listen, "descriptors": descriptors,
            "connections": descriptors - machine.SPARE_DESCRIPTORS,
            "instances": "\n".join("        server %s max_fails=0;" % each for each in instances)})
        nginx = self._begin("lb", "nginx before %d" % len(instances), [
            "sh", "-c", 'printf %s "$1" >nginx.conf && exec nginx -e stderr -p ./ -c nginx.conf',
            "sh", conf], folder, "nginx.log", "start worker process")
        nginx.url = "http://" + listen
        try:
            yield nginx
        finally:
            nginx.end()

    def cpu(self):
        """{host: seconds} of CPU time that the processes on it have used, with their children that
        have ended."""
        hosts = {_space(self.pid(host)): host for host in HOSTS}
        seconds = dict.fromkeys(HOSTS, 0.0)
        for stat in meter.everybody():
            host = hosts.get(_space(stat.pid))
            if host:
                seconds[host] += meter.cpu_seconds([stat])
        return seconds

    @contextlib.contextmanager
    def watch(self):
        """A dict, filled when the `with` ends: {host: percent of a core that its processes have
        used}. A load generator begins and ends in between, so it is counted as our own children
        that have ended."""
        busy = {}
        before, began, ended_before = self.cpu(), time.monotonic(), processes.ended_seconds()
        yield busy
        seconds, ended = time.monotonic() - began, processes.ended_seconds()
        time.sleep(REAPING_SECONDS)
        after = self.cpu()
        used = {host: after[host] - before[host] for host in HOSTS}
        used["load"] = max(used["load"], ended - ended_before)
        busy.update((host, 100 * used[host] / seconds) for host in HOSTS)

    def fetch(self, url):
        """The response to a GET of `url`, sent by `load`."""
        done = subprocess.run([*self.prefix("load"), "curl", "-sSf", url], check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        if done.returncode:
            raise Trouble("%s cannot be fetched" % url)
        return done.stdout


def _space(pid):
    """The name of the network namespace that a process is in; nothing if it is gone."""
    try:
        return os.readlink("/proc/%d/ns/net" % pid)
    except OSError:
        return ""


class _DistantRedis(redis.Redis):
    """A Redis that can only be asked from the other hosts, so redis-cli runs there, too."""

    def __init__(self, where, prefix):
        super().__init__(where, is_ours=True)
        self._cli = prefix + self._cli
