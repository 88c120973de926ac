"""diag: the kernel's sockets with one port, as ss(8) lists them.

/proc/net/tcp would say the same, but lists every connection of the machine, and of those that have
just ended there may be a hundred thousand. ss asks by sock_diag(7), which chooses before it tells.
"""

import re
import subprocess
from collections import namedtuple

ESTABLISHED, TIME_WAIT, LISTEN = "ESTAB", "TIME-WAIT", "LISTEN"

# unread: how many bytes have come and not been taken; of a listener, how many stand in its queue.
# client: the other end's port. inode: what /proc/PID/fd names a socket by; 0: nobody has accepted it
Connection = namedtuple("Connection", "state unread client inode")

# ESTAB  0  0  127.0.0.1:8001  127.0.0.1:42002  ino:90406806 sk:26b203 <->
LINE = re.compile(r"(\S+) +(\d+) +\d+ +\S+ +\S+:(\d+|\*) .*?(?:\bino:(\d+)|$)")


def connections(port):
    """The Connections whose own port this is; IPv4's."""
    listed = subprocess.run(["ss", "-4", "-Htane", "sport = :%d" % port], check=False, stdin=subprocess.DEVNULL,
                            capture_output=True, encoding="ascii")
    if listed.returncode:  # it may complain, and list them all the same
        raise OSError("ss(8) cannot list the kernel's sockets here: %s" % listed.stderr.strip())
    for line in listed.stdout.splitlines():
        state, unread, client, inode = LINE.match(line).groups()
        yield Connection(state, int(unread), 0 if client == "*" else int(client), int(inode or 0))
