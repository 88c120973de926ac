"""project: what a document may name. Files, make's targets and variables, the programs' options.

Each is asked of the thing itself, once: the folder, `make --print-data-base`, the program's --help.
"""

import functools
import os
import re
import subprocess

NOT_OURS = {".git", ".mine", "build", "__pycache__"}
COPIED = os.path.join("public", "book")  # by `make book`


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class NotBuilt(Exception):
    """A server whose options are to be looked up is not there to be asked."""


class Project:
    def __init__(self, top, servers="."):
        self.top = top
        self._servers = os.path.join(top, servers)  # where the built ones are
        self.files = set()
        for folder, folders, names in os.walk(top):
            folders[:] = sorted(name for name in set(folders) - NOT_OURS
                                if os.path.relpath(os.path.join(folder, name), top) != COPIED)
            self.files.update(os.path.relpath(os.path.join(folder, name), top) for name in names)
        self.names = {os.path.basename(path) for path in self.files}
        self.folders = {path.split("/")[0] for path in self.files if "/" in path}  # the top's
        self.servers = {found.group(1) for found in
                        (re.match(r"\d\d_(\w+)/main\.c$", path) for path in self.files) if found}
        self.exercises = {"/".join(found.groups()) for found in
                          (re.match(r"(\d\d)_\w+/exercises/(\w+)\.md$", path) for path in self.files)
                          if found}
        self.experiments = {path for path in self.files if re.match(r"loadtest/[^./]+$", path)
                            and re.match("#!/usr/bin/env (-S )?python3", self.text(path))}

    def documents(self):
        return sorted(path for path in self.files if path.endswith(".md"))

    def text(self, path):
        return read(os.path.join(self.top, path))

    def exists(self, path):
        """Is there such a file or folder of ours? With a slash at its end it must be a folder."""
        name = os.path.normpath(path)
        is_folder = name == "." or any(each.startswith(name + "/") for each in self.files)
        return is_folder or name in self.files and not path.endswith("/")

    @functools.cached_property
    def targets(self):
        """make's own list; a pattern, as deps-%, is a target too."""
        listing = self._run(["make", "--no-print-directory", "-npq", "help"])
        rules, _, listing = listing.partition("\n# Files\n")
        return (set(re.findall(r"(?<!# Not a target:\n)^([^#\s:=%]+):(?!=)", listing, re.MULTILINE))
                | set(re.findall(r"^([a-z]+-%):", rules, re.MULTILINE)))

    def is_target(self, word):
        return word in self.targets or re.sub("-.*", "-%", word) in self.targets

    @functools.cached_property
    def variables(self):
        """What the makefiles name, and what the programs it runs look up in the environment."""
        names = set()
        for path in self.files:
            if path == "Makefile" or path.endswith(".mk"):
                names.update(re.findall(r"\b[A-Z][A-Z_]+\b|(?<=\$\()[A-Z](?=\))",
                                        self.text(path)))
            if path.startswith(("common/tools/", "common/tests/")) and "." not in path:
                names.update(re.findall(r"\$\{?([A-Z][A-Z_]+)", self.text(path)))
            if path.startswith("loadtest/") and (path.endswith(".py") or path in self.experiments):
                names.update(re.findall(r"environ(?:\.get)?[(\[]\"([A-Z_]+)\"", self.text(path)))
        return names

    @functools.lru_cache(maxsize=None)
    def help(self, program):
        command = os.path.join(self._servers if program in self.servers else self.top, program)
        if not os.path.exists(command):
            raise NotBuilt(program)
        return self._run([command, "--help"])

    @functools.lru_cache(maxsize=None)
    def options(self, program):
        return set(re.findall(r"--[a-z][\w-]*", self.help(program)))

    def all_options(self):
        return set().union(*map(self.options, self.servers | self.experiments))

    def _run(self, command):
        # With nothing of the make that runs us: SAN= would give its targets other names.
        return subprocess.run(command, cwd=self.top,
                              env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, encoding="utf-8", check=False,
                              timeout=60).stdout
