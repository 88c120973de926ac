"""handed_in: what students hand in, read and never unpacked.

A folder has an entry for each student, named after him or her: an archive (.zip, .tar, .tar.gz or
.tgz), or a folder. That is a `.mine`, or holds one, or holds such archives, as Moodle's do. Only
files are read whose chapter and name are those of an exercise. A file in no folder needs no chapter
if only one exercise has its name. The starting files that make has built are left out: an archive
of the whole project has them. Nothing is written, no link is followed, and what is marked as done
does not count. What was not understood is in the notes.
"""

import gzip
import io
import os
import re
import tarfile
import unicodedata
import zipfile
import zlib
from collections import namedtuple

ARCHIVE = re.compile(r"\.(zip|tar|tar\.gz|tgz)$")
MOST_SOURCE = 256 << 10  # bytes of a program
MOST_NOTES = 5
MOST_NAMED = 8  # files that are no exercises
MOST_ARCHIVE = 16 << 20  # of an archive, when it is not compressed any more

# sources: a dict from "01/reader" to bytes; notes: what is odd, in words
HandedIn = namedtuple("HandedIn", "student sources notes")


class Unreadable(Exception):
    """The folder, and why."""


def read(folder, known):
    """A list of HandedIn, by name, of the exercises that are known."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise Unreadable("%s: %s" % (folder, error.strerror)) from error
    found = {}
    for entry in entries:
        if entry.name.startswith("."):
            continue
        name = plain(ARCHIVE.sub("", entry.name))
        one = found.setdefault(name, HandedIn(name, {}, []))
        if entry.is_dir(follow_symlinks=False):
            read_folder(one, entry.path, known)
        elif entry.is_file(follow_symlinks=False) and ARCHIVE.search(entry.name):
            read_archive(one, entry.path, known)
        else:
            one.notes.append("neither a folder nor a .zip, .tar, .tar.gz or .tgz: not read")
    if not found:
        raise Unreadable("%s is empty: there shall be a folder or an archive for each student" %
                         folder)
    return [one._replace(notes=one.notes[:MOST_NOTES]) for one in found.values()]


def plain(text):
    """Without what a terminal, or a path, would take for something else. What looks alike is alike:
    a Mac writes an accent as a character of its own."""
    return re.sub(r"[^\w .,@+-]", "?", unicodedata.normalize("NFC", text))


def keep(one, key, bytes):
    if len(bytes) > MOST_SOURCE:
        one.notes.append("%s is not read: more than %d KiB" % (key, MOST_SOURCE >> 10))
    elif one.sources.setdefault(key, bytes) != bytes:
        one.notes.append("%s is there twice: the first one counts" % key)


def names(exercise, known):
    """What its program may be called."""
    alone = [each.name for each in known].count(exercise.name) == 1
    return [(exercise.chapter, exercise.name + ".c")] + [(exercise.name + ".c",)] * alone


def read_folder(one, folder, known):
    for exercise in known:
        words = names(exercise, known)
        for path in (os.path.join(folder, *each) for each in [(".mine", *words[0]), *words]):
            if not os.path.lexists(path):
                continue
            is_plain = os.path.isfile(path) and not leads_elsewhere(path, folder)
            if is_plain and os.access(path, os.R_OK):
                with open(path, "rb") as file:
                    keep(one, exercise.key, file.read(MOST_SOURCE + 1))
            else:
                one.notes.append("%s is not read: no plain file" % exercise.key)
            break
    archives = [entry.path for entry in os.scandir(folder)
                if ARCHIVE.search(entry.name) and entry.is_file(follow_symlinks=False)]
    for path in sorted(archives):
        read_archive(one, path, known)
    if not (one.sources or one.notes or archives):
        note_others(one, [os.path.relpath(os.path.join(where, name), folder)
                          for where, _, names in os.walk(folder) for name in names])


def note_others(one, names):
    """There is no exercise among them."""
    named = ", ".join(map(plain_path, sorted(names)[:MOST_NAMED]))
    one.notes.append("it has no exercise, only " + named if named else "it is empty")


def plain_path(path):
    return "/".join(map(plain, path.split("/")))


def leads_elsewhere(path, folder):
    """Is a part of the path, below the folder, a link?"""
    return os.path.realpath(path) != os.path.join(os.path.realpath(folder),
                                                  os.path.relpath(path, folder))


def read_archive(one, path, known):
    files = {words: each.key for each in known for words in names(each, known)}
    others, before = [], len(one.sources)
    try:
        for name, content in members(path):
            words = [word for word in name.replace("\\", "/").split("/") if word != "."]
            is_start = words[-4:-2] == ["build", "exercises"]
            key = None if is_start else files.get(tuple(words[-2:]))
            if not all(words[:1]) or ".." in words:
                one.notes.append("%s is not read: it leads out of its folder" %
                                 plain_path(name[-80:]))
            elif not key:
                others.append(name)
            elif content is None:
                one.notes.append("%s is not read: no plain file" % key)
            else:
                keep(one, key, content())
    except (OSError, EOFError, zlib.error, tarfile.TarError, zipfile.BadZipFile, RuntimeError,
            ValueError) as error:  # zipfile has RuntimeError for a password
        one.notes.append("the archive cannot be read to its end: %s" % error)
        return
    if len(one.sources) == before and not one.notes:
        note_others(one, others)


def members(path):
    """(name, what gives its bytes) of each in an archive; None: it is no plain file."""
    if path.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            for each in archive.infolist():
                if not each.is_dir():
                    kind = each.external_attr >> 28  # of its mode; 0: a system without any
                    yield each.filename, None if kind not in (0, 8) else (
                        lambda each=each: archive.open(each).read(MOST_SOURCE + 1))
        return
    with tarfile.open(fileobj=io.BytesIO(uncompressed(path)), mode="r:") as archive:
        for each in archive:
            if not each.isdir():
                yield each.name, None if not each.isreg() else (
                    lambda each=each: archive.extractfile(each).read(MOST_SOURCE + 1))


def uncompressed(path):
    """All of it, in memory; ValueError if it is a bomb."""
    with open(path, "rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    with (gzip.open if compressed else open)(path, "rb") as file:
        bytes = file.read(MOST_ARCHIVE + 1)
    if len(bytes) > MOST_ARCHIVE:
        raise ValueError("more than %d MiB" % (MOST_ARCHIVE >> 20))
    return bytes
