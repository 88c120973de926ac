"""said: is what the documents say still so? test_documents.py looks at every *.md of the project.

- Quoted code is the code. A fenced block names its file behind the language, from the top of the
  project:

      ```c 03_preforking/main.c

  GitHub takes the first word for the colours and shows neither. All its lines stand in that file,
  one after the other, all moved to the left by the same blanks if that reads better. A line with
  nothing but ..., /* ... */ or # ... marks a cut; what follows it comes later in the file. Of a
  ```diff that names a source, this holds for the new lines and those around them.
- A block of C names its file, or says `c sketch` if it is in none.
- A link leads to a file or a folder, its #anchor to a heading. Links to other hosts are not followed.
- A file or folder in backticks is there: seen from the document's folder or from the top; a name
  without a slash anywhere in the project. Of a longer command, and of one in a block, those words
  are looked at that begin with one of our folders or with ./
- Commands stand in backticks, in indented blocks, in ```sh, and behind $ in ```console, whose other
  lines are output, as all of ```text is.
- A `make TARGET` is one of the Makefile's, and so are its VARIABLES=, before it or behind. Behind EX=
  stands an exercise.
- Each --option behind one of our programs is in that program's --help. One alone in backticks is an
  option of ours; another program's stands behind the program's name.
- Below `$ ./SERVER --help` stands what that prints.

Words in capitals (PID, NAME, NAME.c, 0N_name) stand for something, and are not looked up.
"""

import collections
import itertools
import os
import re
import sys
import urllib.parse

sys.dont_write_bytecode = True  # leaves no __pycache__ among the sources

import markdown
import project

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

Fault = collections.namedtuple("Fault", "path line what")

TYPED = re.compile(r"0\d_\w+/(?!main\.c)\w+\.c")
CUT = re.compile(r"\s*(?:\.\.\.|/\* \.\.\. \*/|# \.\.\.)\s*$")
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)

SUFFIXES = {"c", "h", "md", "py", "sh", "lua", "svg", "png", "html", "css", "js", "tsv", "conf"}
PLACEHOLDER = re.compile(r"0N|(?!README|LICENSE)[A-Z][A-Z_]*(?:\.\w+)?$")  # NAME, NAME.c
NO_NAME = re.compile(  # HTTP/1.1, text/html, requests/s, 1/2, I/O
    r"[A-Za-z]+/\d|(?:text|image|audio|video|font|application|multipart)/|\w+/s$|\d+/\d+$|I/O$")
MADE_LATER = {  # by a run, or by the reader who is told to
    "report.html", "cells.tsv", "environment.txt", "raw/", "public/book/", ".github/workflows/actions.yml"}
SYSTEM_HEADERS = {"hiredis/async.h", "threads.h"}

WORD = re.compile(r"""(?:[^\s'"|&;]|'[^']*'|"[^"]*")+|[|&;]+|['"]""")
OPERATOR = re.compile(r"[|&;]+$")
VARIABLE = re.compile(r"([A-Z][A-Z_]*)=")
TARGET = re.compile(r"[a-z][\w-]*")
OPTION = re.compile(r"--[a-z][\w-]*")


# ---- quoted code --------------------------------------------------------------------------------

def quotes(document, ours):
    for block in document.blocks:
        language, _, path = block.info.partition(" ")
        if path == "sketch" or language == "diff" and TYPED.fullmatch(path):  # by test_bare.py
            continue
        if language == "c" and not path:
            yield Fault(document.path, block.line - 1,
                        "a block of C names its file (```c 01_iterative/main.c), or is a `c sketch`")
        elif path and path not in ours.files:
            yield Fault(document.path, block.line - 1, "quotes %s, which is not there" % path)
        elif path:
            lines = block.lines
            if language == "diff" and path.endswith(".c"):
                lines = [line[1:] for line in lines if line[:1] != "-"]
            code = ours.text(path)
            if not stand_in(lines, code):
                wrong = next(n for n in range(len(lines)) if not stand_in(lines[:n + 1], code))
                yield Fault(document.path, block.line + wrong, "is not in %s at this place: %s" % (path, lines[wrong]))


def stand_in(lines, code):
    """Do they, one after the other, all behind the same blanks? A cut stands for anything."""
    wanted = ""
    for is_cut, run in itertools.groupby(lines, lambda line: bool(CUT.match(line))):
        run = "\n".join(map(str.rstrip, run)).strip("\n")
        if run and not is_cut:
            blanks = "blanks%d" % len(wanted)
            first, *others = map(re.escape, run.split("\n"))
            wanted += "[ \t]*\n".join([".*?^(?P<%s>[ \t]*)%s" % (blanks, first), *(
                other and "(?P=%s)%s" % (blanks, other) for other in others)]) + "[ \t]*$"
    return re.match("(?ms)" + wanted, code)


# ---- links --------------------------------------------------------------------------------------

def links(document, ours):
    for line, target in document.links:
        if ELSEWHERE.match(target):
            continue
        path, _, anchor = urllib.parse.unquote(target).partition("#")
        if path:  # from the top of the project
            path = os.path.join("" if path[0] == "/" else os.path.dirname(document.path), path.lstrip("/"))
        if not ours.exists(path or document.path):
            yield Fault(document.path, line, "links to %s, which is not there" % target)
        elif anchor and not has_anchor(document, os.path.normpath(path or document.path), anchor, ours):
            yield Fault(document.path, line, "links to %s, and there is no #%s" % (target, anchor))


def has_anchor(document, path, anchor, ours):
    """#... names a heading of a document."""
    there = document if path == document.path else path.endswith(".md") and markdown.Document(path, ours.text(path))
    return there and anchor in there.anchors


# ---- names of files and folders -----------------------------------------------------------------

def names(document, ours):
    beneath_ours = re.compile(r"(?<![\w./~$*-])(?:\./[\w+-]|(?:%s)/)[\w./+-]*"
                              % "|".join(map(re.escape, ours.folders)))
    for line, text in commands_in(document):
        words = [text] if is_name(text) else beneath_ours.findall(text)
        for word in (word.rstrip(".") for word in words):
            if not stands_for_something(word) and not is_there(document, ours, word):
                yield Fault(document.path, line, "names %s, which is not there" % word)


def is_name(word):
    """Does it look like the name of a file or folder of this project?"""
    if re.search(r"[^\w./+-]", word) or word.startswith(("/", "-")):
        return False
    stem, _, suffix = word.rpartition(".")
    return not NO_NAME.match(word) if "/" in word else bool(stem) and suffix in SUFFIXES


def stands_for_something(word):
    parts = word.split("/")
    return (parts[0] in project.NOT_OURS or "..." in word
            or any(PLACEHOLDER.match(part) for part in parts))


def is_there(document, ours, word):
    if word.startswith("./"):
        word = word[2:]
        if ours.is_target(word):  # a program that make builds
            return True
    folder = os.path.dirname(document.path)
    return (word in MADE_LATER | SYSTEM_HEADERS or word in ours.names or ours.exists(word)
            or ours.exists(os.path.join(folder, word)))


# ---- commands -----------------------------------------------------------------------------------

def commands_in(document):
    """(line, text) of all that may be a command; one that goes over several lines is joined."""
    yield from document.spans
    for block in document.blocks + document.indented:
        if block.info not in ("", "sh", "console"):
            continue
        first, text = block.line, ""
        for number, line in enumerate(block.lines, block.line):
            text += line.lstrip() if text else line
            if text.endswith("\\"):
                text = text[:-1]
                continue
            if block.info != "console" or text.startswith("$ "):
                yield first, text
            first, text = number + 1, ""


def split(text):
    """The commands of one line, each as its words; without what stands behind a # or a wide gap."""
    words = []
    text = re.split(r"(?<=\S)\s{3,}|(?:^|\s)#", text.removeprefix("$ "))[0]
    for word in WORD.findall(text):
        if OPERATOR.match(word):
            yield words
            words = []
        else:
            words.append(word)
    yield words


def make(document, ours):
    for line, text in commands_in(document):
        for words in split(text):
            before = list(itertools.takewhile(VARIABLE.match, words))
            if words[len(before):len(before) + 1] != ["make"]:
                continue
            for word in before + words[len(before) + 1:]:
                variable = VARIABLE.match(word)
                if variable and variable.group(1) not in ours.variables:
                    yield Fault(document.path, line, "make knows no %s=" % variable.group(1))
                if word.startswith("EX=") and not stands_for_something(word[3:]) \
                        and word[3:] not in ours.exercises:
                    yield Fault(document.path, line, "there is no exercise %s" % word[3:])
                if TARGET.fullmatch(word) and not PLACEHOLDER.match(word) \
                        and not ours.is_target(word):
                    yield Fault(document.path, line, "make has no target %s" % word)


def options(document, ours):
    for line, text in commands_in(document):
        for words in split(text):
            program, rest = program_of(words, ours)
            known = ours.options(program) if program else set()
            for option in filter(None, map(OPTION.match, rest)):
                if option.group() not in known:
                    yield Fault(document.path, line, "%s has no option %s" % (program, option.group()))
    for line, text in document.spans:
        option = OPTION.match(text)
        if option and option.group() not in ours.all_options():
            yield Fault(document.path, line, "%s is no option of ours; another program's stands "
                        "behind the program's name" % option.group())


def helps(document, ours):
    for block in document.blocks:
        asked = re.fullmatch(r"\$ \./(\w+) --help", block.lines[0]) if block.info == "console" else None
        if asked and block.lines[1:] != ours.help(asked[1]).splitlines():
            yield Fault(document.path, block.line, "is not what %s prints" % asked[0][2:])


def program_of(words, ours):
    """Which of our programs a command runs, perhaps behind another (taskset -c 0 ./epoll), and the
    words behind it."""
    for place, word in enumerate(words):
        name = word.removeprefix("./")
        if name in ours.experiments or name in ours.servers and (place == 0 or word != name):
            return name, words[place + 1:]
        if place == 0 and "loadtest/" + name in ours.experiments:
            return "loadtest/" + name, words[1:]
    return None, []


CHECKS = (quotes, links, names, make, options, helps)
