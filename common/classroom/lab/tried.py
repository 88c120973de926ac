"""tried: the reader's server, on a port of its own, as the kernel sees it; and clients of it.

    with Server("build/lab/bare {port}", folder) as server, Client(server) as client:
        client.say(HALF)
        server.children()

    with Server("build/lab/ask {port} {redis_port}", folder, store) as server:
        server.redis(20)  # milliseconds away; None: it is gone
"""

import contextlib
import ctypes
import os
import re
import resource
import signal
import socket
import sys
import time

import calls
import client
import proc
import redis
import served
import servers
from lib.subjects import peers
from waiting import Missed, Skipped, patient, until

HALF, REST = b"GET / HT", b"TP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
ANSWER_SECONDS, SOON_SECONDS, MOMENT_SECONDS = 1.5, 1, 0.05
START_SECONDS = 5
PIDFD_GETFD = 438  # the number of this call, on every architecture
PIECES = 100


class Server(served.Server):
    """It is started by a command line with {port} in it, and need not print anything. The shell is bash(1), because
    dash(1) would set SIGCHLD to its default for whatever it starts. No memory from malloc(3) is zero by chance: mallopt(3)."""

    def __init__(self, line, folder, store=None):
        """`store`: the Redis behind a relay on {redis_port}, which stays the same when Redis goes and comes back."""
        super().__init__("/bin/sh", "", os.path.join(folder, "server"), ())
        self._holders = peers.reserved_port(), peers.reserved_port()
        self._own_port, self._redis_port = (holder.getsockname()[1] for holder in self._holders)
        self._listens_on = {}  # {port: (host, pid)}
        self._is_told = False  # to end
        self.scratch, self.store, self._relay = folder, store, contextlib.ExitStack()
        values = {"port": self._own_port, "redis_port": self._redis_port, "redis": "127.0.0.1:%d" % self._redis_port}
        self._command = ["env", "MALLOC_PERTURB_=85", "bash", "-c", peers.MARK.sub(lambda mark: str(values.get(mark[1], folder)), line)]

    @property
    def port(self):
        return self._own_port

    @property
    def pid(self):
        """Its first process, which the shell may have started, or become."""
        return self._listens_on[self.port][1] if self.port in self._listens_on else super().pid

    def __enter__(self):
        if self.store:
            self.redis(0)
        self.start(self._command)  # whoever uses it, waits for it
        return self

    def __exit__(self, *exception):
        self._relay.close()
        super().__exit__()
        for holder in self._holders:
            holder.close()

    def redis(self, ms):
        """Its connections to Redis end. From now on Redis is so many ms away; None: it is gone."""
        self._relay.close()
        if ms is not None:
            self._relay.enter_context(redis.SlowRedis(self.store, ms, self.scratch, port=self._redis_port))

    def await_banner(self, at_once=None):
        """`at_once`: where a page says why it has ended then."""
        def listens():
            everybody = proc.everybody()
            mine = proc.family(self._process.pid, everybody)
            self._listens_on = {port: (host, peers.below_shells(pid, {
                stat.pid: stat.parent for stat in everybody if stat.pid in mine}))
                for port, (host, pid) in peers.listening(mine).items()}
            return self.port in self._listens_on

        self._listens_on = {}
        if not until(lambda: listens() or not self.alive(), START_SECONDS) or not listens():
            others = ", ".join(map(str, sorted(self._listens_on)))
            raise Missed("listens", "a server", "it was started with the port %d as its argument, and %s" % (
                self.port, "listens on port %s" % others if others else "did not listen there"), read=(1, "The address") if self.alive() else at_once)
        host = self._listens_on[self.port][0]
        self.url = "http://%s:%d" % ("[%s]" % host if ":" in host else host, self.port)

    def begin_again(self, *under):
        """What `env` is told first."""
        super().__exit__()
        until(lambda: not self.listeners(), SOON_SECONDS)  # a hundred workers do not end at once
        self._is_told = False
        self.start(["env", *under, *self._command])
        self.await_banner(at_once=(1, "Start it again"))

    def begin_rare(self, what):
        """Again, and such things happen to it (rare.c)."""
        self.begin_again(*map("=".join, served.rare(what, self.scratch).items()))
        self.must_have_rare()

    def kill(self, number=signal.SIGKILL):
        """Its first process. It has not ended by itself then."""
        self._is_told = True
        os.kill(self.pid, number)

    def ending(self):
        """How it has ended by itself, and what it said at last; "" if it lives. Its clients see their
        connections end a moment before it has."""
        if self._exits():
            until(lambda: not self.alive() or self._goes_on(), SOON_SECONDS)
        if self._is_told or self.alive():
            return ""
        said, status = (self.errors() + self.printed()).strip().splitlines(), served.status_of(self._process.pid)
        said = [line for line in said if line.startswith("SUMMARY: ")] or said[-3:]  # a sanitizer's
        if status > 128:  # so a shell says that a signal has ended its child
            status = 128 - status
        outside = -status in (signal.SIGILL, signal.SIGTRAP)  # lab.BOUNDS: which of them, depends on the processor
        return "the server has ended: %s%s%s" % (servers.how_it_ended(status, self.url), ", perhaps by an index outside its array" * outside,
                                                 "".join("\n  " + line for line in said))

    def _goes_on(self):
        """Although its main thread has ended?"""
        with contextlib.suppress(OSError):
            return "S" in self.thread_states().values()
        return False

    # ---- its processes and sockets -------------------------------------------------------

    def descriptors(self, pid=None):
        with contextlib.suppress(OSError):
            return super().descriptors(pid)
        return 0  # it has ended

    def threads(self, pid=None):
        with contextlib.suppress(OSError):
            return super().threads(pid)
        return 0

    def family(self):
        """Its processes, but for the first, zombies, and the shell."""
        stats = proc.everybody()
        mine = proc.family(self._process.pid, stats) - {self.pid, self._process.pid}
        return [stat.pid for stat in stats if stat.pid in mine
                and (stat.state != "Z" or stat.threads > 1) and not peers.is_shell(stat.pid)]

    def sockets(self, state, of=None):
        """What /proc/PID/fd calls the sockets on its port in that state, of one client or of all."""
        return {"socket:[%d]" % each.inode for each in proc.connections(self.port)
                if each.state == state and each.inode and of in (None, each.client)}

    def queue(self):
        """How many clients may wait in its accept queue, the smallest if it has several: listen(2)."""
        return min((1 + each.unsent for each in proc.connections(self.port) if each.state == proc.LISTEN), default=0)

    def remembers(self):
        """Does the kernel remember a connection that it has closed first?"""
        return any(each.state == "TIME-WAIT" for each in proc.connections(self.port))

    @contextlib.contextmanager
    def frozen(self):
        """All of its processes."""
        os.killpg(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self._process.pid, signal.SIGCONT)

    def stopped(self):
        """Its first process alone."""
        return super().frozen()

    def allow(self, more):
        """It may open so many more descriptors, and no more."""
        highest = max(proc.descriptors(self.pid))
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (highest + 1 + more, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    def rested(self):
        """Did none of its threads run for a moment, or want to?"""
        before = self._work()
        time.sleep(MOMENT_SECONDS)  # a measurement needs this time; nothing is waited for
        with contextlib.suppress(OSError):  # a process has ended
            states = {each.state for pid in [self.pid, *self.family()] for each in proc.threads(pid)}
            return states <= {"S", "Z"} and self._work() == before
        return False

    def busy(self, seconds):
        """What part of so many seconds it has run, and what part it would have run if it always had a core."""
        used, waited, began = *self._work(), time.monotonic()
        time.sleep(seconds)  # as above
        used, waited = (now - before for now, before in zip(self._work(), (used, waited)))
        seconds = time.monotonic() - began
        return used / seconds, (used + waited) / seconds

    def _work(self):
        """The seconds that all its threads have run, and those in which they were ready and had no core."""
        stats = proc.everybody(proc.family(self._process.pid))
        waited = 0
        for stat in stats:
            with contextlib.suppress(OSError):
                waited += sum(proc.schedule("%d/task/%s" % (stat.pid, each))[1] for each in os.listdir("/proc/%d/task" % stat.pid))
        return proc.cpu_seconds(stats), waited

    def memory(self):
        """The bytes of its processes that belong to no file."""
        return sum(proc.kib(proc.read("/proc/%d/smaps_rollup" % proc.witness(pid)), "Anonymous") or 0
                   for pid in [self.pid, *self.family()])

    def fill(self, deaf):
        """Fills the socket of a client that does not read, so that the server's next send() finds no room."""
        def held():
            return [(pid, number) for pid in [self.pid, *self.family()]
                    for number, name in proc.descriptors(pid).items()
                    if name in self.sockets(proc.ESTABLISHED, deaf.port())]

        if not until(held, SOON_SECONDS):
            raise Missed("accepts", "a client", "a client has connected, and was not accepted")
        pid, number = held()[0]
        libc = ctypes.CDLL(None, use_errno=True)
        pidfd = os.pidfd_open(pid)
        copy = libc.syscall(PIDFD_GETFD, pidfd, number, 0)
        os.close(pidfd)
        if copy < 0:
            raise Skipped("no copy of the server's socket: %s. %s" % (os.strerror(ctypes.get_errno()), calls.REMEDY))
        with socket.socket(fileno=copy) as ours:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            if not until(lambda: not fill_up(ours) and found_shut(ours), ANSWER_SECONDS):
                raise Skipped("the client's window did not shut")


class Client(client.Client, contextlib.closing):
    def __init__(self, server):
        try:
            super().__init__(server.host, server.port, patient(ANSWER_SECONDS))
        except Missed as missed:
            raise Missed("connects", missed.expected, "a client could not connect: %s" % missed.saw) from missed
        self.thing = self  # that is closed

    def all(self, seconds=ANSWER_SECONDS):
        """All until the connection ends; b"" also if it never does."""
        return self.end_of() if until(lambda: self.is_closed(MOMENT_SECONDS), seconds) else b""

    def is_closed(self, within=0):
        """Also of a server that never ends what it says: asked again and again, it looks at some of it."""
        for _ in range(PIECES):
            if self._over or not self._has_come(within):
                break
            self._receive(time.monotonic() + self.seconds, "what poll(2) announced")
        return self._over

    def so_far(self):
        return self._came

    def leave(self):
        """Ends its own direction, and resets the connection a moment later: who writes then, gets EPIPE."""
        with contextlib.suppress(OSError):
            self.half_close()
        self.reset()


def hear_all(clients):
    """All that each of them hears. When one has waited in vain, the others have waited as long."""
    said, seconds = [], ANSWER_SECONDS
    for client in clients:
        said.append(client.all(seconds))
        seconds = ANSWER_SECONDS if said[-1] else 0
    return said


def fill_up(ours):
    """Sends into a socket of which we have a copy until there is no room. Returns how many bytes that took."""
    took = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            took += ours.send(b"x" * 65536, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
    return took


def found_shut(ours):
    """Has the kernel probed the client's window, and found it shut? Before that the socket may get room again,
    as soon as a part of what it holds is sent. tcp(7) TCP_INFO, RFC 9293 section 3.8.6.1"""
    info = ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 28)
    backoff, unacknowledged = info[4], int.from_bytes(info[24:28], sys.byteorder)
    return backoff and not unacknowledged


def fault(answer):
    """What an answer lacks, in words; "" if it is one with status 200, as long as it says."""
    head, end, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"\nContent-Length: *(\d+)", head, re.IGNORECASE)
    if not answer:
        return "nothing"
    if not re.match(rb"HTTP/1.\d 200 ", head) or not end:
        return "%s which is no head with the status 200 and an empty line at its end" % shown(answer)
    if length and int(length[1]) != len(body):
        return "%s and behind it %d bytes: %s" % (shown(head + end), len(body), repr(body[:100])[1:])
    return ""


def shown(head):
    """Line by line, as C would write them."""
    return "".join("\n  %s" % repr(line)[1:] for line in head[:2000].splitlines(True)) + "\n "


def is_whole(answer):
    return not fault(answer)


def visit(server):
    """Is a page asked for and got, and does the connection end?"""
    return visits(server, 1) == 1


def visits(server, number):
    """How many of so many clients in a row get a page, until one does not. They leave nothing in the kernel."""
    for got in range(number):
        with contextlib.suppress(Missed), Client(server) as visitor:
            visitor.say(HALF + REST)
            if is_whole(visitor.all()):
                visitor.reset()
                continue
        return got
    return number


@contextlib.contextmanager
def crowd(server, number, text=b""):
    """So many clients that have said this."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(server)) for _ in range(number)]
        for each in clients:
            each.say(text)
        yield clients
