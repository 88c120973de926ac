"""handed_in: what students hand in, read and never unpacked.

A folder has an entry for each student, named after him or her: an archive (.zip, .tar, .tar.gz or
.tgz), or a folder. That is a `.mine`, or holds one, or holds such archives. The names that Moodle and
Canvas give to hand-ins are understood, and a mapping may give others. Only files are read whose name
is that of an exercise, and whose folder is its chapter's; or any folder that is no chapter's, if only
one exercise has that name. A browser's "queue (1).c" is queue.c. The starting files, and those that
make has built of them, are left out: an archive of the whole project has them. Nothing is written, no
link is followed, and what is marked as done does not count. What was not understood is in the notes.
"""

import csv
import gzip
import io
import lzma
import os
import re
import tarfile
import unicodedata
import zipfile
import zlib
from collections import namedtuple

from words import printable

ARCHIVE = re.compile(r"\.(zip|tar|tar\.gz|tgz)$")
MOST_SOURCE = 256 << 10  # bytes of a program
MOST_SERVER = 16 << 20
SERVER = "server"  # a term's work: server.c, or a program in any language
MOST_NOTES = 5
MOST_NAMED = 8  # files that are no exercises
MOST_ARCHIVE = 16 << 20  # of an archive, or of what is read of a .zip, when it is not compressed any more
MOST_MEMBERS = 20000
TOO_LARGE = "more than %d MiB, or %d files" % (MOST_ARCHIVE >> 20, MOST_MEMBERS)

# ashanna_LATE_4711_815_mine.zip; Anna Ash_4711_assignsubmission_file, which may be followed by _mine.zip. Only the
# beginning is the platform's: a student chooses the rest.
CANVAS = re.compile(r"(?P<name>[^_]+)(_LATE)?_(?P<id>\d+)_\d+_(?P<file>[^_].*)$")
MOODLE = re.compile(r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_[^\W_]+(_(?P<file>.*))?$")
AGAIN = re.compile(r" ?\(\d+\)(?=\.c$)|-\d+(?=\.c$)")  # of a browser and of Canvas
CHAPTER = re.compile(r"0\d_")
NOBODYS = ("exercises", "solutions")  # the folders of the project's own files

# sources: a dict from "01/reader" to bytes; notes: what is odd, in words; id: a school's, or ""
HandedIn = namedtuple("HandedIn", "student sources notes id", defaults=[""])


class Unreadable(Exception):
    """The folder, and why."""


def read(folder, known, students=None, say=print):
    """A list of HandedIn, by name, of the exercises that are known. students: what read_students()
    gave. What is nobody's hand-in is said."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise Unreadable("%s: %s" % (folder, error.strerror)) from error
    found = {}
    for entry in entries:
        if entry.name.startswith("."):
            continue
        is_file = entry.is_file(follow_symlinks=False)
        who, alone, origin = person(entry.name, is_file, students or {})
        is_archive = is_file and ARCHIVE.search(entry.name)
        if not (is_archive or is_file and alone or entry.is_dir(follow_symlinks=False)):
            say("%s is not read: neither a folder nor a .zip, .tar, .tar.gz or .tgz" %
                plain(entry.name))
            continue
        one, owner = found.setdefault(who, (HandedIn(who[0], {}, [], who[1]), origin))
        if owner != origin:
            one.notes.insert(0, "another hand-in has this name, and is not read: the file of the class may tell them apart")
            say("%s IS NOT READ: another hand-in has the name %s, too" % (plain(entry.name), who[0]))
            continue
        read_entry(one, entry.path, alone, known)
    if not found:
        raise Unreadable("%s is empty: there shall be a folder or an archive for each student" %
                         folder)
    names, ids = zip(*found)
    return [distinct(one, names.count(who[0]) > 1, who[1] and ids.count(who[1]) > 1, say)
            for who, (one, _) in sorted(found.items())]


def distinct(one, shares_name, shares_id, say):
    """With a name that no other has (plain() leaves none a parenthesis), and an id that no other has, or none."""
    notes = list(one.notes)
    if shares_id:
        notes.insert(0, "another name has the id %s, too: neither gets the other's marks" % one.id)
        say("%s: ANOTHER NAME HAS THE ID %s, TOO: the marks of both have none" % (one.student, one.id))
    return one._replace(student="%s (%s)" % (one.student, one.id) if shares_name and one.id else one.student,
                        id="" if shares_id else one.id, notes=list(map(printable, notes[:MOST_NOTES])))


def read_one(path, known):
    """The HandedIn of the one student whose folder or archive this is."""
    one = HandedIn(plain(ARCHIVE.sub("", os.path.basename(os.path.abspath(path)))), {}, [])
    if not os.path.exists(path):
        raise Unreadable("%s is not there" % path)
    read_entry(one, path, os.path.basename(path), known)
    return one


def read_entry(one, path, name, known):
    if os.path.isdir(path):
        read_folder(one, path, known)
    elif ARCHIVE.search(path):
        read_archive(one, path, known)
    else:
        read_file(one, path, key_of([name], known))


def read_students(path):
    """{name of a hand-in: (name, id)} of a CSV file with the columns handed, id and name."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return {plain(row["handed"]): (plain(row["name"]), plain(row["id"]))
                    for row in csv.DictReader(file)}
    except (OSError, UnicodeDecodeError, KeyError, TypeError, csv.Error) as error:
        raise Unreadable("%s is no CSV file with the columns handed, id and name: %s" % (
            path, error)) from error


def person(entry, is_file, students):
    """((name, id), the .c file that a platform has named so, or None, whose it is) of an entry. Two with one name and
    id are one student's only if they are the same one's: by the file of the class, the platform, or the entry."""
    raw = unicodedata.normalize("NFC", ARCHIVE.sub("", entry))
    whole = plain(raw)
    match = is_file and CANVAS.match(whole) or MOODLE.match(whole)
    words = match.groupdict() if match else {"name": whole, "id": "", "file": None}
    file = words["file"]
    listed = students.get(whole)
    who = listed or students.get(words["name"]) or (words["name"], words["id"])
    return who, file if file and file.endswith(".c") else None, listed and listed[1] or words["id"] or raw


def plain(text):
    """Without what a terminal, or a path, would take for something else. What looks alike is alike:
    a Mac writes an accent as a character of its own."""
    return re.sub(r"[^\w .,@+'\u2019-]", "?", unicodedata.normalize("NFC", text))


def most(key):
    return MOST_SERVER if key.endswith("/" + SERVER) else MOST_SOURCE


def keep(one, key, bytes):
    if len(bytes) > most(key):
        one.notes.append("%s is not read: more than %d KiB" % (key, most(key) >> 10))
    elif one.sources.setdefault(key, bytes) != bytes:
        one.notes.append("%s is there twice: the first one counts" % key)


def key_of(words, known):
    """The key of the exercise that a path means; None if it means none."""
    if words[-4:-2] == ["build", "exercises"] or words[-2:-1] and words[-2] in NOBODYS:
        return None
    name = AGAIN.sub("", words[-1].lower())
    alike = [each for each in known if name == each.name + ".c" or name == each.name == SERVER]
    if words[-2:-1] and CHAPTER.match(words[-2]):
        alike = [each for each in alike if each.chapter == words[-2]]
    return alike[0].key if len(alike) == 1 else None


def read_folder(one, folder, known):
    others, before = [], len(one.notes)
    for path in sorted(files_in(folder), key=lambda path: (".mine" not in path.split(os.sep), path)):
        whole, key = os.path.join(folder, path), key_of(path.split(os.sep), known)
        if key:
            read_file(one, whole, key)
        elif ARCHIVE.search(path) and os.path.isfile(whole) and not os.path.islink(whole):
            read_archive(one, whole, known)
        else:
            others.append(path)
    if not one.sources and len(one.notes) == before:
        note_others(one, others)


def files_in(folder):
    """The paths of its files, without those that make has built."""
    for where, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if each not in (".git", "build")]
        for name in names:
            yield os.path.relpath(os.path.join(where, name), folder)


def read_file(one, path, key):
    if not key:
        note_others(one, [os.path.basename(path)])
    elif os.path.isfile(path) and not os.path.islink(path) and os.access(path, os.R_OK):
        with open(path, "rb") as file:
            keep(one, key, file.read(most(key) + 1))
    else:
        one.notes.append("%s is not read: no plain file" % key)


def note_others(one, names):
    """There is no exercise among them."""
    named = ", ".join(map(plain_path, sorted(names)[:MOST_NAMED]))
    one.notes.append("it has no exercise, only " + named if named else "it is empty")


def plain_path(path):
    return "/".join(map(plain, path.split("/")))


def read_archive(one, path, known):
    others, before, left = [], len(one.sources), MOST_ARCHIVE
    try:
        for number, (name, content) in enumerate(members(path)):
            if number >= MOST_MEMBERS or left < 0:
                raise ValueError(TOO_LARGE)
            words = [word for word in name.replace("\\", "/").split("/") if word != "."]
            key = key_of(words, known)
            if not all(words[:1]) or ".." in words:
                one.notes.append("%s is not read: it leads out of its folder" %
                                 plain_path(name[-80:]))
            elif not key:
                others.append(name)
            elif content is None:
                one.notes.append("%s is not read: no plain file" % key)
            else:
                read = content(most(key) + 1)
                keep(one, key, read)
                left -= len(read)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile,
            RuntimeError, ValueError) as error:  # zipfile has RuntimeError for a password
        one.notes.append("the archive cannot be read to its end: %s" % error)
        return
    if len(one.sources) == before and not one.notes:
        note_others(one, others)


def members(path):
    """(name, what gives its first so many bytes) of each in an archive; None: it is no plain file."""
    if path.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            for each in archive.infolist():
                if not each.is_dir():
                    kind = each.external_attr >> 28  # of its mode; 0: a system without any
                    yield each.filename, None if kind not in (0, 8) else (
                        lambda size, each=each: archive.open(each).read(size))
        return
    with tarfile.open(fileobj=io.BytesIO(uncompressed(path)), mode="r:") as archive:
        for each in archive:
            if not each.isdir():
                yield each.name, None if not each.isreg() else (
                    lambda size, each=each: archive.extractfile(each).read(size))


def uncompressed(path):
    """All of it, in memory; ValueError if it is a bomb."""
    with open(path, "rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    with (gzip.open if compressed else open)(path, "rb") as file:
        bytes = file.read(MOST_ARCHIVE + 1)
    if len(bytes) > MOST_ARCHIVE:
        raise ValueError(TOO_LARGE)
    return bytes
