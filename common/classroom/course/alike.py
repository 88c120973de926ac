"""alike: which hand-ins have the same code. It shows them to the teacher, and judges nobody.

sim_c(1), of the package similarity-tester, compares tokens, so that other names, comments and spaces
do not hide a copy. It was taken because distributions have it, and no source leaves the machine, as
it does for MOSS. What the starting file has is nobody's own, and is left out, line by line.
"""

import os
import re
import shutil
import subprocess
import tempfile

import jail

TOOL = "sim_c"
LEAST_PERCENT = 60
PAIR = re.compile(r"(\d+)\.c consists for (\d+) % of (\d+)\.c material")


class Unknown(Exception):
    """Why likeness was not looked at."""


def own_lines(source, start):
    known = {line.strip() for line in start.splitlines()}
    return "\n".join(line for line in source.splitlines() if line.strip() not in known) + "\n"


def pairs(sources, start):
    """[(percent, student, of whose code)], a pair in one direction at least, of {student: source}."""
    if not shutil.which(TOOL):
        raise Unknown("%s is missing: apt-get install similarity-tester" % TOOL)
    names = sorted(sources)
    with tempfile.TemporaryDirectory(prefix="zerohttpd.") as folder:
        for number, name in enumerate(names):
            with open(os.path.join(folder, "%d.c" % number), "w", encoding="utf-8") as file:
                file.write(own_lines(sources[name].decode("utf-8", "replace"), start))
        os.chmod(folder, 0o711)
        before = jail.build().before(jail.COMPILER, 4)  # it may take for ever, or break
        done = subprocess.run([*before, TOOL, "-p", "-e", "-t", str(LEAST_PERCENT),
                               *("%d.c" % number for number in range(len(names)))], cwd=folder,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8",
                              errors="replace", check=False)
        if done.returncode:
            raise Unknown("%s ended with status %d" % (TOOL, done.returncode))
    found = [(int(percent), names[int(one)], names[int(other)])
             for one, percent, other in PAIR.findall(done.stdout) if one != other]
    return sorted(found, reverse=True)
