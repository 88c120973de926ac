"""stored: finished runs, in folders as they are left in build/ or in loadtest/results, or packed.

A packed file (.tar.gz) holds a folder for each run. A run is named after its command, without what
says only how long it lasts, so that the same experiment has the same name on every machine.
"""

import csv
import io
import os
import re
import tarfile
from collections import namedtuple

from lib import Trouble
from lib.measuring import machine

Stored = namedtuple("Stored", "facts cells")  # a dict, and a dict for each row of cells.tsv
FILES = ("cells.tsv", "environment.txt", "table.md")


def rows(text):
    """Of a .tsv, as dicts. A line that begins with # is a comment."""
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def facts_of(text):
    return dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)


def name_of(facts):
    """As in "compare-delay-0-1-10-50"."""
    command = re.sub(r" --(into|rounds|seconds) \S+", "", facts.get("command", ""))
    return re.sub(r"\W+", "-", re.sub(r"^\S*/", "", command))


def read(path):
    """{name: Stored} of a folder, or of a packed file. Trouble if there is no run in it."""
    if os.path.isdir(path):
        texts = [[machine.read(os.path.join(path, each)) for each in FILES[:2]]]
    else:
        try:
            with tarfile.open(path) as packed:
                files = {each.name: packed.extractfile(each).read().decode("utf-8", "replace")
                         for each in packed if each.isfile()}
        except (OSError, tarfile.TarError) as error:
            raise Trouble("%s: %s" % (path, error)) from error
        texts = [[files.get(folder + each, "") for each in FILES[:2]]
                 for folder in dict.fromkeys(name[:name.rfind("/") + 1] for name in files)]
    runs = [Stored(facts_of(facts), rows(cells)) for cells, facts in texts]
    runs = [run for run in runs if run.facts and run.cells]
    if not runs:
        raise Trouble("%s: there is no run with cells.tsv and environment.txt in it" % path)
    return {name_of(run.facts): run for run in runs}


def pack(folders, path):
    """Packs the latest complete run of each experiment. Returns their names. Trouble if there is
    none."""
    latest = {}
    for folder in sorted(folders, key=os.path.getmtime):
        text = machine.read(os.path.join(folder, "environment.txt"))
        table = machine.read(os.path.join(folder, "table.md"))
        if text and table and "Interrupted: " not in table and os.path.exists(
                os.path.join(folder, "cells.tsv")):
            latest[name_of(facts_of(text))] = folder
    if not latest:
        raise Trouble("there is no complete run in build/ yet; make one, as with `make compare`")
    with tarfile.open(path, "w:gz") as packed:
        for name, folder in latest.items():
            for each in FILES:
                text = machine.read(os.path.join(folder, each)).replace(machine.TOP + "/", "")
                data = re.sub(r" --into \S+", "", text).encode()  # a reader's own folders
                entry = tarfile.TarInfo("%s/%s" % (name, each))
                entry.size = len(data)
                packed.addfile(entry, io.BytesIO(data))
    return list(latest)
