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
        one = HandedIn(plain(ARCHIVE.sub("", entry.name)), {}, [])
        if one.student in found:
            raise Unreadable("%s is there twice in %s" % (one.student, folder))
        if entry.is_dir(follow_symlinks=False):
            read_folder(one, entry.path, known)
        elif entry.is_file(follow_symlinks=False) and ARCHIVE.search(entry.name):
            read_archive(one, entry.path, known)
        else:
            one.notes.append("neither a folder nor a .tar.gz: not read")
        found[one.student] = one._replace(notes=one.notes[:MOST_NOTES])
    if not found:
        raise Unreadable("%s is empty: there shall be a folder or a .tar.gz for each student" %
                         folder)
    return list(found.values())


def plain(text):
    """Without what a terminal, or a path, would take for something else."""
    return re.sub(r"[^\w .,@+-]", "?", text)


def keep(one, key, bytes):
    if len(bytes) > MOST_SOURCE:
        one.notes.append("%s is not read: more than %d KiB" % (key, MOST_SOURCE >> 10))
    else:
        one.sources[key] = bytes


def read_folder(one, folder, known):
    for exercise in known:
        for beginning in (".mine", "."):
            path = os.path.normpath(os.path.join(folder, beginning, exercise.chapter,
                                                 exercise.name + ".c"))
            if not os.path.lexists(path):
                continue
            is_plain = os.path.isfile(path) and not leads_elsewhere(path, folder)
            if is_plain and os.access(path, os.R_OK):
                with open(path, "rb") as file:
                    keep(one, exercise.key, file.read(MOST_SOURCE + 1))
            else:
                one.notes.append("%s is not read: no plain file" % exercise.key)
            break


def leads_elsewhere(path, folder):
    """Is a part of the path, below the folder, a link?"""
    return os.path.realpath(path) != os.path.join(os.path.realpath(folder),
                                                  os.path.relpath(path, folder))


def read_archive(one, path, known):
    files = {(each.chapter, each.name + ".c"): each.key for each in known}
    try:
        with tarfile.open(fileobj=io.BytesIO(uncompressed(path)), mode="r:") as archive:
            for member in archive:
                words = member.name.split("/")
                key = files.get(tuple(words[-2:]))
                if not words[0] or ".." in words:
                    one.notes.append("%s is not read: it leads out of its folder" %
                                     plain(member.name[-80:]))
                elif key and member.isreg():
                    keep(one, key, archive.extractfile(member).read(MOST_SOURCE + 1))
                elif key:
                    one.notes.append("%s is not read: no plain file" % key)
    except (OSError, EOFError, zlib.error, tarfile.TarError, ValueError) as error:
        one.notes.append("the archive cannot be read to its end: %s" % error)


def uncompressed(path):
    """All of it, in memory; ValueError if it is a bomb."""
    with open(path, "rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    with (gzip.open if compressed else open)(path, "rb") as file:
        bytes = file.read(MOST_ARCHIVE + 1)
    if len(bytes) > MOST_ARCHIVE:
        raise ValueError("more than %d MiB" % (MOST_ARCHIVE >> 20))
    return bytes
