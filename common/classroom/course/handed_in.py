"""handed_in: what students hand in, read and never unpacked.

A folder has an entry for each student, named after him or her: a folder, which is a `.mine` or
holds one, or a .tar, .tar.gz or .tgz of it. Of each only files are read whose chapter and name are
those of an exercise. Nothing is written, no link is followed, and what is marked as done does not
count.
"""

import gzip
import io
import os
import re
import stat
import tarfile
import zlib
from collections import namedtuple

ARCHIVE = re.compile(r"\.(tar|tar\.gz|tgz)$")
MOST_SOURCE = 256 << 10  # bytes of a program
MOST_NOTES = 5
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
        student = plain(ARCHIVE.sub("", entry.name))
        if student in found:
            raise Unreadable("%s is there twice in %s" % (student, folder))
        if entry.is_dir(follow_symlinks=False):
            found[student] = HandedIn(student, *from_folder(entry.path, known))
        elif entry.is_file(follow_symlinks=False) and ARCHIVE.search(entry.name):
            found[student] = HandedIn(student, *from_archive(entry.path, known))
        else:
            found[student] = HandedIn(student, {}, ["neither a folder nor a .tar.gz: not read"])
    if not found:
        raise Unreadable("%s is empty: there shall be a folder or a .tar.gz for each student" %
                         folder)
    return [one._replace(notes=one.notes[:MOST_NOTES]) for one in found.values()]


def plain(text):
    """Without what a terminal, or a path, would take for something else."""
    return re.sub(r"[^\w .,@+-]", "?", text)


# ---- a folder ------------------------------------------------------------------------------


def from_folder(folder, known):
    sources, notes = {}, []
    for exercise in known:
        for beginning in ([".mine"], []):
            words = [*beginning, exercise.chapter, exercise.name + ".c"]
            try:
                bytes = read_file(folder, words)
            except (FileNotFoundError, NotADirectoryError):
                continue  # a link where a folder should be is none
            except OSError as error:
                notes.append("%s is not read: %s" % ("/".join(words), error.strerror))
            else:
                keep(exercise.key, bytes, sources, notes)
                break
    return sources, notes


def read_file(folder, words):
    """A file below the folder, none of whose parts may be a link."""
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for word in words:
            kind = os.O_NONBLOCK if word is words[-1] else os.O_DIRECTORY  # no waiting for a FIFO
            there = os.open(word, os.O_RDONLY | os.O_NOFOLLOW | kind, dir_fd=here)
            os.close(here)
            here = there
        if not stat.S_ISREG(os.fstat(here).st_mode):
            raise OSError(0, "no plain file")
        with open(os.dup(here), "rb") as file:
            return file.read(MOST_SOURCE + 1)
    finally:
        os.close(here)


# ---- an archive ----------------------------------------------------------------------------


def from_archive(path, known):
    sources, notes = {}, []
    try:
        with tarfile.open(fileobj=io.BytesIO(uncompressed(path)), mode="r:") as archive:
            for member in archive:
                take(archive, member, known, sources, notes)
    except (OSError, EOFError, zlib.error, tarfile.TarError, ValueError) as error:
        notes.append("the archive cannot be read to its end: %s" % error)
    return sources, notes


def uncompressed(path):
    """All of it, in memory; ValueError if it is a bomb."""
    with open(path, "rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    with (gzip.open if compressed else open)(path, "rb") as file:
        bytes = file.read(MOST_ARCHIVE + 1)
    if len(bytes) > MOST_ARCHIVE:
        raise ValueError("more than %d MiB" % (MOST_ARCHIVE >> 20))
    return bytes


def take(archive, member, known, sources, notes):
    """One member, if it is an exercise's file, in whatever folder of the archive."""
    words = member.name.split("/")
    if not words[0] or ".." in words:
        notes.append("%s is not read: it leads out of its folder" % plain(member.name[-80:]))
        return
    for exercise in known:
        if words[-2:] == [exercise.chapter, exercise.name + ".c"]:
            if member.isreg():
                bytes = archive.extractfile(member).read(MOST_SOURCE + 1)
                keep(exercise.key, bytes, sources, notes)
            else:
                notes.append("%s is not read: no plain file" % plain("/".join(words[-2:])))


def keep(key, bytes, sources, notes):
    if len(bytes) > MOST_SOURCE:
        notes.append("%s is not read: more than %d KiB" % (key, MOST_SOURCE >> 10))
    else:
        sources[key] = bytes
