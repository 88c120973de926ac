"""07/uring: do the operations of all clients go through the ring, and at the same time?"""

import ctypes
import errno
import os

import proc
from client import HALF, REST, WHOLE
from sleeps import descriptors_named, expect_asleep
from words import how_many

REASON = "held"

HELD = 200
PAGE_SIZE = 1 << 20
FIRST, MORE, MOST_MEMORY = 100, 1000, 1 << 20  # clients, and the bytes that may be left behind by so many more
IO_URING_SETUP = 425  # its number on every machine, since Linux 5.1
TRACED = "%network,%desc"  # whatever takes a descriptor
ALLOWED = {"io_uring_enter", "io_uring_register", "close", "shutdown", "setsockopt", "getsockopt", "getsockname", "mmap",
           "munmap", "madvise", "fstat", "newfstatat"}  # none of these waits for a client, or moves its bytes


def check(ex):
    need_io_uring(ex)
    server = ex.serve(under=ex.traced(TRACED))
    before = server.descriptors()
    ex.expect("ring", "a ring, and no epoll", lambda: descriptors_named(server, "[io_uring]") == 1
              and descriptors_named(server, "[eventpoll]") == 0, read="io_uring_queue_init(3)")
    silent, half = ex.hold(server, HELD // 2, b""), ex.hold(server, HELD // 2, HALF)
    client = ex.client(server)
    client.say(WHOLE)
    ex.expect("held", "a page for another client", client.is_answered, within=2,
              saw=lambda: "nothing: it waits for one client's operation at a time", hint=1,
              read="io_uring(7)")
    ex.expect("whole", "the whole page", lambda: len(client.end_of()) == PAGE_SIZE, hint=3, read="send(2)")
    expect_asleep(ex, "sleeps", server, "a loop that sleeps while no client sends anything", hint=2)
    ex.expect("half", "no answer to half a request", lambda: not any(each.is_answered() for each in half),
              hint=3, read="recv(2)")
    for each in silent:
        each.say(HALF)
    for each in [*silent, *half]:
        each.say(REST)
    ex.did("let those %d clients send the rest" % HELD)
    ex.expect("rest", "a whole page for each of them",
              lambda: all(len(each.end_of()) == PAGE_SIZE for each in [*silent, *half]), hint=3)
    ex.expect("one", "one process with one thread",
              lambda: not server.children() and threads(server) == 1,
              saw=lambda: "%s, %s" % (how_many(len(server.children()), "child", "children"),
                                      how_many(threads(server), "thread")))
    ex.expect_descriptors("closes", "as many descriptors as before", server, before, within=3, hint=2)
    leave(ex, server, FIRST)
    memory = server.own_memory()
    leave(ex, server, MORE)
    ex.expect_descriptors("closes", "as many descriptors as before, once more", server, before, within=3, hint=2)
    left = server.own_memory() - memory
    ex.expect("freed", "no memory left behind", lambda: left < MOST_MEMORY, saw=lambda: "%d kB more" % (left >> 10),
              hint=2, read="free(3)")
    server.end()
    expect_ring(ex, server)


def need_io_uring(ex):
    """Many container runtimes forbid it, and an administrator may (kernel.io_uring_disabled)."""
    libc = ctypes.CDLL(None, use_errno=True)
    parameters = ctypes.create_string_buffer(120)  # struct io_uring_params
    ring = libc.syscall(IO_URING_SETUP, 1, parameters)
    if ring < 0:
        ex.skip("io_uring: %s" % os.strerror(ctypes.get_errno() or errno.ENOSYS))
    os.close(ring)


def leave(ex, server, number):
    """So many clients send half a request, or a whole one, and are gone."""
    for each in range(number):
        client = ex.client(server)
        client.say((HALF, WHOLE)[each % 2])
        client.close()
    ex.did("let %d clients leave in the middle" % number)


def threads(server):
    """Without those that the kernel may make for the ring: iou-wrk, iou-sqp."""
    names = (proc.read("/proc/%d/task/%d/comm" % (server.pid, each.pid)) for each in proc.threads(server.pid))
    return sum(not name.startswith("iou-") for name in names)


def expect_ring(ex, server):
    """What is done for clients goes through the ring. (The banner is written to standard output.)"""
    calls = server.calls
    listened = [call.name for call in calls].index("listen")
    after = [call for call in calls[listened + 1:] if call.name not in ALLOWED
             and not call.arguments.startswith(("1,", "2,"))]
    ex.expect("through the ring", "no system call that waits for clients, reads or writes", lambda: not after,
              saw=lambda: "%d of them, the first %s" % (len(after), after[0]), hint=1, read="io_uring_prep_recv(3)")
