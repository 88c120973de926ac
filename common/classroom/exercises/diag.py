"""diag: the kernel's sockets with one port, as ss(8) sees them.

/proc/net/tcp would say the same, but lists every connection of the machine, and of those that have
just ended there may be a hundred thousand. sock_diag(7) chooses before it tells.
"""

import socket
import struct
from collections import namedtuple

ESTABLISHED, TIME_WAIT, LISTEN = 1, 6, 10  # of TCP's states, as the kernel numbers them

# unread: how many octets have come and not been taken; of a listener, how many stand in its queue.
# client: the other end's port. inode: what /proc/PID/fd names a socket by; 0: nobody has accepted it
Connection = namedtuple("Connection", "state unread client inode")

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
REQUEST_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
DONE = 3

HEADER = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, number, port
ENDS = "!HH16s16s"  # of struct inet_diag_sockid: ports and addresses, in network order
REQUEST = struct.Struct("=BBBBI")  # of struct inet_diag_req_v2: family, protocol, -, -, states
# struct inet_diag_msg: family, state, -, -, -, the other's port, ..., -, rqueue, -, -, inode
ANSWER = struct.Struct("=4BHH44xIIIII")


def connections(port):
    """The Connections whose own port this is; IPv4's."""
    body = (REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, 0xffffffff)
            + struct.pack(ENDS, port, 0, b"", b"") + struct.pack("=III", 0, 0, 0))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as netlink:
        length = HEADER.size + len(body)
        netlink.sendall(HEADER.pack(length, SOCK_DIAG_BY_FAMILY, REQUEST_DUMP, 1, 0) + body)
        while True:
            for kind, message in messages(netlink.recv(1 << 16)):
                if kind != SOCK_DIAG_BY_FAMILY:
                    if kind != DONE:
                        raise OSError("sock_diag(7) is refused here")
                    return
                fields = ANSWER.unpack_from(message)
                yield Connection(fields[1], fields[7], socket.ntohs(fields[5]), fields[10])


def messages(octets):
    """(type, contents) of each in what was received at once."""
    while octets:
        length, kind = HEADER.unpack_from(octets)[:2]
        yield kind, octets[HEADER.size:length]
        octets = octets[(length + 3) // 4 * 4:]
