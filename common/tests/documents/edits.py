"""edits: a file after a reader has typed what a page's ```diff blocks show."""

import difflib


def typed(text, lines):
    """Lines behind - go, those behind + come, and the others are found. `...`: the next place, further down."""
    found, at, hunks = text.split("\n"), 0, [[]]
    for line in lines:
        if line == "...":
            hunks.append([])
        else:
            hunks[-1].append(line or " ")
    for hunk in hunks:
        old = [line[1:] for line in hunk if line[0] in " -"]
        new = [line[1:] for line in hunk if line[0] in " +"]
        at = next((place for place in range(at, len(found)) if found[place:place + len(old)] == old), None)
        if at is None:
            raise ValueError("a place like this is not in the file:\n" + "\n".join(old))
        found[at:at + len(old)] = new
        at += len(new)
    return "\n".join(found)


def without_essay(text):
    return text.partition("*/\n")[2]


def differences(is_there, should_be):
    return "\n".join(difflib.unified_diff(is_there.split("\n"), should_be.split("\n"), lineterm=""))
