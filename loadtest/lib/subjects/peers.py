"""peers: the servers that the seven are compared with: lighttpd, nginx, Apache, the floor, and any
other.

Their configurations are in loadtest/peers/: one process that serves, no access log, kept
connections, a backlog of 4096. The machine's own servers are never used. A peer has a port of its
own on loopback, and its configuration, pid, logs and temporary files are in a folder of the run.
"""

import contextlib
import os
import random
import re
import shlex
import shutil
import socket
import string

import proc
import processes
import servers
from lib import Trouble
from lib.generators import load
from lib.measuring import machine

BINARIES = {"lighttpd": "lighttpd", "nginx": "nginx", "apache": "apache2"}
NAMES = list(BINARIES)
SPARE_DESCRIPTORS = 128  # for logs, and for files that are being sent

PATHS = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"  # folders that a user's PATH may not have

# Apache does not serve as root, so it runs as nobody. It may still read and write what root may,
# because the project and a run's folder may be where only root may look. capabilities(7)
NOT_ROOT = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+dac_override",
            "--ambient-caps=+dac_override", "--"]
# Options, so that it stays in the foreground.
IN_FRONT = {"lighttpd": ["-D", "-f", "conf"], "nginx": ["-p", ".", "-c", "conf"],
            "apache": ["-D", "FOREGROUND", "-d", ".", "-f", "conf"]}
# In the command line of any other server.
MARK = re.compile(r"(?<!\$)\{(port|redis|redis_port|folder)\}")
OUR_OPTIONS = " --port {port} --redis {redis}"
FORM = ("a command line for sh, with {port}, {redis}, {redis_port} and {folder} filled in; if it has "
        "none of these, it is given --port and --redis")
HINT = " (it was given --port and --redis: if it takes other options, write {port} where its port belongs)"
# These start a server, and are no part of it.
SHELLS = {"sh", "dash", "bash", "ash", "busybox", "ksh", "mksh", "zsh", "timeout"}
COMMAND_SECONDS = 10.0  # until it listens: it may be compiled first

FLOOR = os.path.join(machine.PLAIN, "loadtest", "floor")


class EndsWithUs(servers.Started):
    """A server that may open as many descriptors as possible. If we are killed, it gets a SIGTERM, which it
    may pass on."""

    def start(self, command):
        machine.raise_descriptor_limit()
        super().start(["setpriv", "--pdeathsig", "TERM", "--", *command])


class Command(EndsWithUs):
    """Any server, started by a command_line(), which sh(1) runs in the folder where we were
    started. It is ready when it listens, whatever it prints. Its port is free again when it starts,
    because not every server sets SO_REUSEADDR. `under`: see engine.Run.open().

    sh may stay as the server's parent, and does not pass a signal on. So the server is found by its
    listening socket. That process is measured and asked to end, and then the rest of its process group is killed.
    If we are killed, timeout(1) gets a SIGTERM, and passes it on to the group. (Its 0 is no limit.)"""

    folder = None

    def __init__(self, name, line, cores, log, redis, under=()):
        super().__init__(name, log, cores=cores)
        self._line, self._redis, self._under = line, redis, under
        self._port = None  # the port on which it has to listen; None: any, because it may ignore our options
        self._server = None  # its pid, as soon as it listens

    def __enter__(self):
        with reserved_port() as holder:
            return self._begin(holder.getsockname()[1])

    def _begin(self, port):
        values = {"port": str(port), "redis": self._redis, "redis_port": self._redis.rpartition(":")[2],
                  "folder": shlex.quote(os.path.abspath(self._log) + ".d")}
        is_given_ours = self._line.endswith(OUR_OPTIONS)
        if "port" in MARK.findall(self._line) and not is_given_ours:
            self._port = port
        self.start(["timeout", "0", *self._under, "sh", "-c", MARK.sub(lambda mark: values[mark[1]], self._line)])
        try:
            self.await_ready(self._listens, COMMAND_SECONDS)
        except Trouble as trouble:
            raise Trouble("%s%s" % (trouble, HINT * is_given_ours)) from None
        return self

    @property
    def pid(self):
        return self._server or super().pid

    def _listens(self):
        everybody = proc.everybody()
        line = proc.family(self._process.pid, everybody)
        ports = listening(line)
        port = self._port or next(iter(ports), None)
        if port not in ports:
            return False
        host, pid = ports[port]
        self.url = "http://%s:%d" % ("[%s]" % host if ":" in host else host, port)
        self._server = below_shells(pid, {stat.pid: stat.parent for stat in everybody
                                          if stat.pid in line})
        return True


def command_line(text):
    """The line to run for a server that somebody has given. It is given the options of the seven,
    unless it has a placeholder."""
    return text if MARK.search(text) else text + OUR_OPTIONS


def reserved_port():
    """A UDP socket on loopback. While it is open, none of us but its owner takes the TCP port of the same number;
    nor does the kernel hand that out: by default it begins at 32768. ip(7), ip_local_port_range"""
    while True:
        port, holder = random.randrange(10000, 20000), socket.socket(type=socket.SOCK_DGRAM)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            holder.bind(("127.0.0.1", port))
            return holder
        holder.close()


def listening(pids):
    """Where these processes accept clients: {port: (host, pid of one of them)}."""
    own = {"0.0.0.0": "127.0.0.1", "*": "127.0.0.1", "::": "::1"}
    return {port: (own.get(host, host), pid) for port, (host, pid) in proc.listening(pids).items()}


def below_shells(pid, parents):
    """The server that `pid` belongs to: its oldest ancestor in `parents` with no shell between. (A
    server's workers may listen, and their parent may not.)"""
    while pid in parents and parents[pid] in parents and not is_shell(parents[pid]):
        pid = parents[pid]
    return pid


def is_shell(pid):
    try:
        return os.path.basename(os.readlink("/proc/%d/exe" % pid)) in SHELLS
    except OSError:
        return False  # it is gone, or not ours


class Floor(EndsWithUs):
    """The least a server can do (loadtest/floor.c). It answers every request with so many letters, 65,536 at
    most. It listens on loopback, or on `address`, which may be on a host that `launch` leads to."""

    def __init__(self, cores, log, letters=600, address=None, launch=processes.start, under=()):
        super().__init__("floor", log, cores=cores, launch=launch, command=[
            *under, FLOOR, address or "127.0.0.1", str(letters)])


class Peer(Command):
    """One of NAMES, which serves the files of the folder `root`. Its own, such as its configuration, are in
    the folder `log` + ".d"."""

    def __init__(self, name, root, cores, log):
        folder = os.path.abspath(log) + ".d"
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "template"), "w", encoding="utf-8") as file:
            file.write(filled(name, placeholders(os.path.abspath(root), folder)))
        rights = NOT_ROOT if name == "apache" and os.getuid() == 0 else []
        super().__init__(name, "cd %s && sed s/@PORT@/{port}/ template >conf && exec %s" % (
            shlex.quote(folder), shlex.join([*rights, binary(name), *IN_FRONT[name]])), cores, log, "")


def filled(name, values):
    """The configuration of this name in loadtest/peers/, with these values in it."""
    source = os.path.join(machine.TOP, "loadtest", "peers", name + ".conf")
    return string.Template(processes.printed(source)).substitute(values)


def placeholders(root, folder):
    """The values for the placeholders in the configurations."""
    descriptors = machine.raise_descriptor_limit()
    return {
        "port": "@PORT@", "root": root, "folder": folder, "descriptors": descriptors,
        "connections": descriptors - SPARE_DESCRIPTORS, "half": descriptors // 2,
    }


def binary(name):
    return shutil.which(BINARIES[name], path=PATHS)


def missing(name):
    """Why a peer cannot run here; None if it can."""
    return None if binary(name) else "%s is not installed; `make deps-experiments` brings it" % name


def version(name):
    """"nginx 1.22.1", for example."""
    return load.version(binary(name), "-v", name)
