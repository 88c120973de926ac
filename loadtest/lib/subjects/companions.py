"""companions: the guestbook's page in other languages, as their users write it.

The programs are in loadtest/companions/. They show one page, GET /guestbook, and ask Redis for it
as the seven do: INCR, GET and LRANGE, one after the other. Each is started by a command line (see
peers.Command), so it is measured like any server of somebody else's. README.md there says what was
chosen for them, and why.
"""

import os
import re
import shlex

import processes
from lib.measuring import machine

BUILT = os.path.join(machine.PLAIN, "loadtest/companions")  # by `make companions`
OURS = " --port {port} --redis {redis}"
PYTHON = "/usr/bin/python3 -B"  # Debian's, which finds Debian's packages
GUNICORN = ("env REDIS_URL=redis://{redis} " + PYTHON + " -m gunicorn --bind 127.0.0.1:{port} "
            "--pythonpath loadtest/companions guestbook_wsgi:app")
JAVA = ("java -Dsun.net.httpserver.nodelay=true -Dsun.net.httpserver.maxIdleConnections=20000 "
        "-cp " + shlex.quote(BUILT) + " Guestbook" + OURS)

COMMANDS = {
    "node": "env NODE_PATH=/usr/share/nodejs node loadtest/companions/guestbook.js" + OURS,
    "asyncio": PYTHON + " loadtest/companions/guestbook_asyncio.py" + OURS,
    "gunicorn-sync": GUNICORN + " --workers 5",
    "gunicorn-gthread": GUNICORN + " --workers 2 --threads 5",
    "php": "loadtest/companions/php-fpm" + OURS + " --folder {folder}",
    "puma": "env REDIS_URL=redis://{redis} puma --quiet --bind tcp://127.0.0.1:{port} --workers 2 "
            "loadtest/companions/guestbook.ru",
    "go": shlex.quote(BUILT) + "/go" + OURS,
    "java": JAVA,
    "java-virtual": JAVA + " --virtual",
    "erlang": "escript loadtest/companions/guestbook.erl" + OURS,
}
NAMES = list(COMMANDS)
PRODUCTS = {"go": "go", "java": "Guestbook.class"}  # of `make companions`
FIRST_VIRTUAL = 21  # the first JDK that has virtual threads

VERSIONS = {
    "node": "echo Node $(node --version)", "asyncio": PYTHON + " --version", "puma": "puma --version",
    "gunicorn": PYTHON + " -c 'import gunicorn; print(\"gunicorn\", gunicorn.__version__)'",
    "go": "go version", "java": "java --version",
    "php": "for each in /usr/sbin/php-fpm[0-9]*; do :; done; $each --version",
    "erlang": "echo Erlang $(erl -noshell -eval 'io:put_chars(erlang:system_info(otp_release)), halt().')",
}


def line(name, work_ms=0):
    """The command line that starts it, for peers.Command. `work_ms`: of CPU time that a page computes."""
    return "cd %s && %sexec %s" % (
        shlex.quote(machine.TOP), "export WORK_US=%d && " % (1000 * work_ms) if work_ms else "", COMMANDS[name])


def lines(names):
    """{name: line} of those that are companions."""
    return {name: line(name) for name in names if name in COMMANDS}


def missing(name):
    """Why it cannot run here; None if it can."""
    group = name.partition("-")[0]  # of deps' table
    rows = processes.output_of([os.path.join(machine.TOP, "common/tools/deps"), "--list", group])
    lacks = re.findall(r"^missing \S+ (\S+) (\S+)$", rows, re.MULTILINE)
    if lacks:
        return "it needs %s; `make companions` brings what this system has" % ", ".join(
            what if package == "-" else package for what, package in lacks)
    product = PRODUCTS.get(group)
    if product and not os.path.exists(os.path.join(BUILT, product)):
        return "it is not built; `make companions` builds it"
    if name == "java-virtual" and int(re.findall(r"\d+", version(name))[0]) < FIRST_VIRTUAL:
        return "%s has no virtual threads; JDK %d has" % (version(name), FIRST_VIRTUAL)
    return None


def version(name):
    """Of its language or its server: the first line of what it says."""
    return processes.output_of(["sh", "-c", VERSIONS[name.partition("-")[0]]]).splitlines()[0]
