"""calls: the system calls of a program, from what strace(1) has written.

    command = [*calls.command(record, "accept4", "recvfrom"), "./epoll", "--port", "0"]
    calls, ends = calls.read(open(record))

Each line is that of one thread, in the order in which strace saw them, with times if they were asked for:

    4711  1700000000.123456 read(8, ":18\\r\\n", 16384) = 5 <0.010276>
    4711  1700000000.133801 accept4(6,  <unfinished ...>
    4712  1700000000.133912 close(7)        = 0 <0.000012>
    4711  1700000000.140221 <... accept4 resumed>NULL, NULL, SOCK_CLOEXEC) = 7 <0.006420>
    4711  1700000000.150304 +++ exited with 0 +++

A call that another thread's cut in two is joined. One that never returned ends with its thread, or
with the record.
"""

import re
from typing import NamedTuple

from processes import output_of
from top import Trouble


class Call(NamedTuple):
    tid: int
    name: str
    arguments: str
    result: "int | None"  # None: it never returned
    error: "str | None"
    start: "float | None" = None  # None: without times
    end: "float | None" = None  # None: it had not returned when the record ended
    more: str = ""  # that strace says of the result

    @property
    def outcome(self):
        returned = "never returned" if self.result is None else "= %d" % self.result
        return " ".join(filter(None, [returned, self.error, self.more]))

    def __str__(self):
        return "%s(%s) %s" % (self.name, self.arguments, self.outcome)


class End(NamedTuple):
    time: "float | None"
    how: str  # "exited with 0", "killed by SIGKILL"


def command(record, *names, text_bytes=64, times=False):
    """What a program is started under. Names as `trace=` of strace has them, or none for all calls; one
    that this machine's kernel does not have is no error. -D: strace becomes a grandchild, and the process
    that is started is the program itself. With --seccomp-bpf a call that is not traced costs next to
    nothing."""
    names = [name if name[0] in "?/%" else "?" + name for name in names]
    return ["strace", "-D", "-f", "-q", *(["-ttt", "-T"] if times else []), "-s", str(text_bytes),
            *(["--seccomp-bpf", "-e", "trace=" + ",".join(names)] if names else []), "-o", record]


REMEDY = "In a container: start that with --cap-add=SYS_PTRACE"


def must_work():
    """Trouble if there is no strace, or if it may not trace."""
    try:
        output_of(["strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "true"])
    except Trouble as trouble:
        if isinstance(trouble.__cause__, FileNotFoundError):
            raise Trouble("strace is missing. `make deps` brings it") from None
        raise Trouble("strace cannot trace here (%s). %s" % (trouble, REMEDY)) from None


LINE = re.compile(r"(\d+) +(?:(\d+\.\d+) )?(.*)")
RESUMED = re.compile(r"<\.\.\. (\w+) resumed>(.*)")
UNFINISHED = re.compile(r" ?<unfinished \.\.\.>$")
WHOLE = re.compile(r"(\w+)\((.*)\) += (-?\d+|0x[0-9a-f]+|\?)"  # name, arguments, result
                   r"(?: (E[A-Z0-9]+))?(.*?)(?: <(\d+\.\d+)>)?")  # error, more, seconds


def read(lines):
    """Returns the Calls, and {thread: its End}. With times, the Calls are in the order of their start,
    and without, of their return."""
    calls, ends, halves = [], {}, {}

    def keep(tid, start, text):
        found = WHOLE.fullmatch(text)
        if found:
            name, arguments, result, error, more, seconds = found.groups()
            result = None if result == "?" else int(result, 0)
            calls.append(Call(tid, name, arguments, result, error, start,
                              start + float(seconds) if seconds else None, more.strip()))

    for line in lines:
        found = LINE.fullmatch(line.rstrip("\n"))
        if not found:
            continue  # half a line, if strace was killed
        tid, time = int(found.group(1)), found.group(2) and float(found.group(2))
        text = found.group(3).replace(" <unfinished ...>) = ?", ") = ?")  # it died in the call
        resumed = RESUMED.match(text)
        if resumed and tid in halves:
            start, begun = halves.pop(tid)
            text = begun + resumed.group(2)
        else:
            start = time
        if text.startswith("+++"):
            ends[tid] = End(time, text.strip("+ "))
        elif UNFINISHED.search(text):
            halves[tid] = start, UNFINISHED.sub("", text)
        else:
            keep(tid, start, text)
    for tid, (start, begun) in halves.items():
        keep(tid, start, begun + ") = ?")
    calls = [call if call.end or call.tid not in ends else call._replace(end=ends[call.tid].time)
             for call in calls]
    return sorted(calls, key=lambda call: call.start or 0), ends
