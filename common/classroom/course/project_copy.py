"""project_copy: the project once more, without what gives the answers away.

What is left out lies in folders of its own (ANSWERS), or stands in a document between
`<!-- not in a course -->` and `<!-- in a course again -->`.
"""

import fnmatch
import glob
import os
import re
import shutil
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

OURS = ["0[1-9]_*", "common", "loadtest", "public", "templates", ".ci", ".github", "Makefile",
        "*.md", "LICENSE", ".clang-*", ".gitignore", "Containerfile", ".devcontainer"]  # of the top folder; nobody's notes beside it
ANSWERS = ["0[1-9]_*/exercises/solutions/*", "common/tests/mutants/*"]
BUILT = ["build/plain/common/*.[od]", "build/plain/0[1-9]_*/main.[od]", "build/plain/loadtest/*"]

NOT_IN_A_COURSE = re.compile(r"<!-- not in a course -->\n?.*?<!-- in a course again -->\n?",
                             re.DOTALL)


def gives_away(path):
    """Does this file, named from the top, hold answers?"""
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in ANSWERS)


def files(top=TOP):
    """All of the project's, from the top; answers too, and new ones that git does not know."""
    for first in sorted(os.listdir(top)):
        if not any(fnmatch.fnmatchcase(first, pattern) for pattern in OURS):
            continue
        if os.path.isfile(os.path.join(top, first)):
            yield first
        for folder, folders, names in os.walk(os.path.join(top, first)):
            folders[:] = sorted(set(folders) - {"__pycache__"})
            for name in sorted(names):
                yield os.path.relpath(os.path.join(folder, name), top)


def built(top=TOP):
    """What make has built of all servers, as far as it has."""
    return [os.path.relpath(path, top) for pattern in BUILT
            for path in glob.glob(os.path.join(top, pattern))]


def known_to_git(top=TOP):
    """The same, but not what somebody has just tried out; None where git does not know the
    project."""
    try:
        done = subprocess.run(["git", "-C", top, "ls-files", "-z"], env=without_git(), check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except FileNotFoundError:
        return None
    return {os.fsdecode(path) for path in done.stdout.split(b"\0") if path} or None


def without_git():
    """The environment without what git tells its hooks: of another repository, perhaps."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def copy(paths, target, top=TOP):
    """Copies these files, with their times, so that make builds nothing anew; whoever can come to
    the folder may read them."""
    for path in paths:
        source, copied = os.path.join(top, path), os.path.join(target, path)
        os.makedirs(os.path.dirname(copied), mode=0o755, exist_ok=True)
        shutil.copy2(source, copied)
        if path.endswith(".md"):
            leave_out(copied)
        os.chmod(copied, 0o755 if os.access(source, os.X_OK) else 0o644)


def leave_out(document):
    """What a document says of the answers."""
    with open(document, encoding="utf-8") as file:
        text = file.read()
    shorter = NOT_IN_A_COURSE.sub("", text)
    if shorter != text:
        with open(document, "w", encoding="utf-8") as file:
            file.write(shorter)
