"""peers: the servers that the seven are compared with: lighttpd, nginx, Apache, the floor, and any
other.

Their configurations are in loadtest/peers/: one process that serves, no access log, kept
connections, a backlog of 4096. The machine's own servers are never used. A peer has a port of its
own on loopback, and its configuration, pid, logs and temporary files are in a folder of the run.
"""

import contextlib
import grp
import os
import pwd
import re
import shlex
import shutil
import signal
import socket
import string
from urllib.parse import urlsplit

from lib import Trouble
from lib.generators import load
from lib.measuring import machine, meter, processes
from lib.subjects import servers

NAMES = ["lighttpd", "nginx", "apache"]
SPARE_DESCRIPTORS = 128  # for logs, and for files that are being sent

PATHS = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"  # folders that a user's PATH may not have
BINARIES = {"lighttpd": ["lighttpd"], "nginx": ["nginx"], "apache": ["apache2", "httpd"]}
APACHE_MODULES = ["/usr/lib/apache2/modules", "/usr/lib64/httpd/modules", "/usr/lib/httpd/modules"]

# Apache does not serve as root, so it runs as nobody. It may still read and write what root may,
# because the project and a run's folder may be where only root may look. capabilities(7)
NOT_ROOT = ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+dac_override",
            "--ambient-caps=+dac_override"]
# In the command line of any other server.
MARK = re.compile(r"(?<!\$)\{(port|redis|redis_port|folder)\}")
OUR_OPTIONS = " --port {port} --redis {redis}"
FORM = ("a command line for sh, with {port}, {redis}, {redis_port} and {folder} filled in; if it has "
        "none of these, it is given --port and --redis")
HINT = ("; it was given --port and --redis: if it takes other options, write {port} where its port "
        "belongs")
NOT_RUN = (126, 127)  # sh found no such program, or may not run it
# These start a server, and are no part of it.
SHELLS = {"sh", "dash", "bash", "ash", "busybox", "ksh", "mksh", "zsh", "timeout"}
COMMAND_SECONDS = 10.0  # until it listens: it may be compiled first

FLOOR = os.path.join(machine.PLAIN, "loadtest", "floor")


class EndsWithUs(servers.Started):
    """A server that ends even if we are killed, and that may open as many descriptors as
    possible."""

    _status = None  # the status it ended with

    def end(self):
        """Returns its exit status. It is 0 if the server ended when asked to. (lighttpd then
        returns 1 if there were still connections, and the floor ends by SIGTERM, which a shell
        makes 128 + 15.)"""
        if self._status is None:
            lived = not processes.has_ended(self._process)
            status = super().end()
            ended = 1, -signal.SIGTERM, 128 + signal.SIGTERM
            self._status = 0 if lived and status in ended else status
        return self._status

    def start(self, command, rights=()):
        machine.raise_descriptor_limit()
        super().start(["setpriv", "--pdeathsig", "TERM", *rights, "--", *command])

    def _listens(self):
        try:
            socket.create_connection(("127.0.0.1", urlsplit(self.url).port), 1).close()
            return True
        except OSError:
            return False


class Command(EndsWithUs):
    """Any server, started by a command_line(), which sh(1) runs in the folder where we were
    started. It is ready when it listens, whatever it prints. Its port is free again when it starts,
    because not every server sets SO_REUSEADDR. `under`: see run.Run.open().

    sh may stay as the server's parent, and does not pass a signal on. So the server is found by its
    listening socket. That process is measured and asked to end, and the rest of the line is killed
    after it. If we are killed, timeout(1) gets a SIGTERM, and passes it on to all of the line. (Its
    0 is no limit.)"""

    folder = None

    def __init__(self, name, line, cores, log, redis, under=()):
        super().__init__(name, cores, log)
        self._line = line
        self._redis = redis
        self._under = under
        self._port = None  # the port on which it has to listen; None: any
        self._ports = {}  # where processes of the line listen: {port: (host, pid)}
        self._server = None  # its pid, as soon as it listens

    def __enter__(self):
        with _reserved_port() as port:
            values = {"port": str(port), "redis": self._redis,
                      "redis_port": self._redis.rpartition(":")[2],
                      "folder": shlex.quote(os.path.abspath(self._log) + ".d")}
        if "port" in MARK.findall(self._line) and not self._is_given_ours():
            self._port = port
        line = MARK.sub(lambda mark: values[mark[1]], self._line)
        self.start(["timeout", "0", *self._under, "sh", "-c", line])
        try:
            self.await_ready(self._listens, COMMAND_SECONDS)
        except Trouble as trouble:
            hint = self._is_given_ours() and self._status not in NOT_RUN
            raise Trouble("%s%s" % (trouble, HINT if hint else "")) from None
        return self

    def _is_given_ours(self):
        """Such a server may ignore the options, as `bare` does, whose port is fixed."""
        return self._line.endswith(OUR_OPTIONS)

    @property
    def pid(self):
        return self._server or super().pid

    def end(self):
        if self._status is None:
            line = set(meter.Tree(self._process.pid).pids()) - {self._process.pid}
            super().end()
            for pid in line:  # it may have left the group
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return self._status

    def _listens(self):
        everybody = meter.everybody()
        line = meter.family(self._process.pid, everybody)
        self._ports = listening(line)
        port = self._port or next(iter(self._ports), None)
        if port not in self._ports:
            return False
        host, pid = self._ports[port]
        self.url = "http://%s:%d" % ("[%s]" % host if ":" in host else host, port)
        self._server = below_shells(pid, {stat.pid: stat.parent for stat in everybody
                                          if stat.pid in line})
        return True

    def _lacks(self):
        where = "port %d, and not on %d" % (min(self._ports), self._port) if self._ports else (
            "no TCP port")
        return servers.LAST_WORDS.join([": it listens on " + where, *self._last_line()])

    def _last_words(self, status):
        return super()._last_words(status) + (
            "" if status else "; it has to stay in the foreground")


def command_line(text):
    """The line to run for a server that somebody has given. It is given the options of the seven,
    unless it has a placeholder."""
    return text if MARK.search(text) else text + OUR_OPTIONS


def name_of(line):
    """The name of the program that a command line gives a port, or else of the last one."""
    parts = re.split("&&|;", line)
    with contextlib.suppress(ValueError):  # a quote is not closed
        for word in shlex.split(next(filter(MARK.search, parts), parts[-1])):
            if word != "exec" and not re.match(r"\w+=", word):
                return os.path.basename(word)
    return "server"


def listening(pids):
    """Where these processes accept clients: {port: (host, pid of one of them)}."""
    own = {"0.0.0.0": "127.0.0.1", "*": "127.0.0.1", "::": "::1"}
    found = {}
    for line in machine.output_of(["ss", "-Hltnp"]).splitlines():
        host, _, port = line.split()[3].rpartition(":")
        host = host.strip("[]").split("%")[0]
        for pid in pids.intersection(map(int, re.findall(r"pid=(\d+)", line))):
            found[int(port)] = own.get(host, host), pid
    return found


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
    """The least a server can do (loadtest/floor.c). It answers every request with the `body`: the file
    of that path, or so many letters, 65,536 at most. It listens on loopback, or on `address`, which may be on a host that `prefix` or
    `launch` leads to (see servers.Server)."""

    def __init__(self, cores, log, body=600, prefix=(), address=None, launch=processes.start):
        super().__init__("floor", cores, log, launch=launch, command=[
            *prefix, FLOOR, "--file" if isinstance(body, str) else "--body", str(body),
            *(["--bind", address] if address else [])])


class Peer(EndsWithUs):
    """One of NAMES, which serves the files of the folder `root`. Its files, such as its
    configuration, are in the folder `log` + ".d"."""

    def __init__(self, name, root, cores, log):
        super().__init__(name, cores, log)
        self._root = os.path.abspath(root)
        self._folder = os.path.abspath(log) + ".d"

    def __enter__(self):
        with _reserved_port() as port:
            self.url = "http://127.0.0.1:%d" % port
            self.start(_command(self.name, self._configure(port), self._folder),
                       NOT_ROOT if self.name == "apache" and os.getuid() == 0 else ())
            self.await_ready(self._listens)
        return self

    def _configure(self, port):
        """Writes its configuration. Returns the path."""
        for path in (self._root, self._folder):
            if re.search(r'["$\\\n]', path):
                raise Trouble("%s cannot have such a path: %s" % (self.name, path))
        os.makedirs(self._folder, exist_ok=True)
        path = os.path.join(self._folder, "%s.conf" % self.name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(filled(self.name, placeholders(port, self._root, self._folder)))
        return path


def filled(name, values):
    """The configuration of this name in loadtest/peers/, with these values in it."""
    source = os.path.join(machine.TOP, "loadtest", "peers", name + ".conf")
    return string.Template(processes.printed(source)).substitute(values)


def placeholders(port, root, folder):
    """The values for the placeholders in the configurations."""
    descriptors = machine.raise_descriptor_limit()
    return {
        "port": port, "root": root, "folder": folder, "descriptors": descriptors,
        "connections": descriptors - SPARE_DESCRIPTORS, "half": descriptors // 2,
        "user": pwd.getpwuid(os.getuid()).pw_name, "group": grp.getgrgid(os.getgid()).gr_name,
        "modules": next(filter(os.path.isdir, APACHE_MODULES), APACHE_MODULES[0]),
    }


def _command(name, configuration, folder):
    """The command that starts it in the foreground."""
    return [binary(name)] + {
        "lighttpd": ["-D", "-f", configuration],
        "nginx": ["-p", folder + "/", "-c", configuration],
        "apache": ["-D", "FOREGROUND", "-d", folder, "-f", configuration],
    }[name]


@contextlib.contextmanager
def _reserved_port():
    """A free port, picked by the kernel and reserved until the `with` ends: our socket is bound to
    it without listening. The kernel does not give such a port to a program that wants any free one.
    But a program that asks for it with SO_REUSEADDR, as all servers do, may listen there.
    socket(7)"""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def binary(name):
    found = (shutil.which(each, path=PATHS) for each in BINARIES[name])
    return next(filter(None, found), None)


def missing(name):
    """Why a peer, or the floor, cannot run here; None if it can."""
    if name == "floor":
        return None if os.access(FLOOR, os.X_OK) else (
            "floor is not built; `make %s` builds it" % os.path.relpath(FLOOR, machine.TOP))
    if name == "apache" and not any(map(os.path.isdir, APACHE_MODULES)):
        return "apache's modules are not installed; `make deps` brings them"
    return None if binary(name) else "%s is not installed; `make deps` brings it" % name


def version(name):
    """"nginx 1.22.1", for example."""
    return load.version(binary(name), "-v", r"\w+/(\d[\d.]*)", name)
