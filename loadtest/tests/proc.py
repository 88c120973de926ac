"""Processes and network namespaces, as /proc shows them: for tests that look whether what they started is
gone."""

import os
import time

import programs
from lib.measuring import machine

SETTINGS = ["core/somaxconn", "ipv4/ip_local_port_range", "ipv4/tcp_tw_reuse",
            "ipv4/tcp_max_syn_backlog", "ipv4/ip_forward"]


def within(seconds, is_so):
    """Does it become so in that time?"""
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(is_so())


def runs(pid):
    """Is it there, and not only its zombie, which init has yet to reap?"""
    stat = machine.read("/proc/%d/stat" % pid).rpartition(")")[2].split()
    return bool(stat) and stat[0] != "Z"


def gone_within(seconds, pid):
    return within(seconds, lambda: not runs(pid))


def name_of(pid):
    return machine.read("/proc/%d/comm" % pid).strip()


def network_namespace(pid):
    try:
        return os.readlink("/proc/%d/ns/net" % pid)
    except OSError:
        return None


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def inhabited_namespaces():
    """The network namespaces that somebody is in."""
    return set(map(network_namespace, all_pids())) - {None}


def empty_within(seconds, spaces):
    """Do all people leave these network namespaces?"""
    return within(seconds, lambda: not spaces & inhabited_namespaces())


def machine_s_own():
    """Interfaces, namespaces with a name, and settings, as they are outside all labs."""
    named = os.listdir("/run/netns") if os.path.isdir("/run/netns") else []
    return sorted(os.listdir("/sys/class/net")), named, [
        machine.read("/proc/sys/net/" + name) for name in SETTINGS]
