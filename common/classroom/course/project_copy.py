"""project_copy: the project once more, without what gives the answers away.

What is left out are files of their own (ANSWERS), or what a document has between
`<!-- not in a course -->` and `<!-- in a course again -->`. What git does not know is nobody's
business but the teacher's, and is left out as well.
"""

import fnmatch
import glob
import os
import re
import shutil
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

ANSWERS = ["0[1-9]_*/exercises/solutions/*", "common/tests/exercises/wrong/*",
           "common/tests/mutants/*", "common/classroom/ANSWERS.md", "common/classroom/QUIZ.md",
           "common/classroom/quiz.gift"]
BUILT = ["build/plain/common/*.[od]", "build/plain/0[1-9]_*/main.[od]", "build/plain/loadtest/*",
         "build/plain/0[1-9]_*/exercises/*.[od]", "build/exercises/0[1-9]_*/*", "build/san-*/common/*.o",
         "build/plain/common/tests/*/*.[od]", "build/plain/servers", "build/plain/weather"]

NOT_IN_A_COURSE = re.compile(r"<!-- not in a course -->\n?.*?<!-- in a course again -->\n?",
                             re.DOTALL)


class Unknown(Exception):
    """Why the project's files cannot be told."""


def git(folder, *words):
    """What git prints. It is not told what git tells its hooks: of another repository, perhaps."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.check_output(["git", "-C", folder, "-c", "safe.directory=*", *words], env=environment,
                                       encoding="utf-8")
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unknown("git does not know the files of %s: %s\n"
                      "In an unpacked release, type: git init && git add ." % (folder, error)) from error


def are_answers_readable():
    """May every user of this machine read some of them?"""
    return any(is_open(os.path.dirname(path)) for pattern in ANSWERS
               for path in glob.glob(os.path.join(TOP, pattern)))


def is_open(folder):
    """May everybody come to it, and read what is in it?"""
    while os.stat(folder).st_mode & 0o001:
        if os.path.dirname(folder) == folder:
            return True
        folder = os.path.dirname(folder)
    return False


def files():
    """All of the project's files that hold no answers; paths from the top."""
    known = git(TOP, "ls-files", "-z", "--error-unmatch", ".").split("\0")
    return [path for path in known if os.path.isfile(os.path.join(TOP, path))
            and not any(fnmatch.fnmatchcase(path, pattern) for pattern in ANSWERS)]


def built():
    """What make has built of all servers, as far as it has."""
    return [os.path.relpath(path, TOP) for pattern in BUILT
            for path in glob.glob(os.path.join(TOP, pattern)) if os.path.isfile(path)]


def copy(paths, target):
    """Copies these files, with their times, so that make builds nothing anew. Every user may read
    them who can come to the folder."""
    for path in paths:
        source, copied = os.path.join(TOP, path), os.path.join(target, path)
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
