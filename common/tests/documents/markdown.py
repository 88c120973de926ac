"""markdown: what the checker sees of a document. Its blocks, spans, links and headings, each with
its line.

As much of GitHub's Markdown as this project writes, and no more: blocks that are fenced or indented,
`code spans`, links and images in place, src= and href=, headings that begin with #.
What stands in an HTML comment is not there.
"""

import collections
import re

Block = collections.namedtuple("Block", "line info lines")  # line: of the first one inside
Span = collections.namedtuple("Span", "line text")
Link = collections.namedtuple("Link", "line target")

FENCED = re.compile(r"^( *)(`{3,}|~{3,}) *([^`\n]*)\n(.*?)^ *\2[`~]* *$", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?: {4}|\t)(.*)")
LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|\d+[.)])\s")
HEADING = re.compile(r" {0,3}#{1,6}\s+(.*?)\s*#*$")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
SPAN = re.compile(r"(?<!`)(`+)(?!`)((?:(?!\n\s*\n).)+?)(?<!`)\1(?!`)", re.DOTALL)
LINKS = (
    re.compile(r"\]\(\s*<?([^\s)>]+)"),
    re.compile(r"\b(?:src|srcset|href)=[\"']([^\"'\s]+)"),
)
ID = re.compile(r"\b(?:id|name)=[\"']([^\"']+)")


class Document:
    def __init__(self, path, text):
        self.path = path  # from the top of the project
        self.lines = text.split("\n")
        self.blocks = [Block(line_of(text, found.start()) + 1, found[3].strip(),
                             re.sub("(?m)^ {0,%d}" % len(found[1]), "", found[4]).split("\n")[:-1])
                       for found in FENCED.finditer(text)]
        self.indented = []  # Blocks without info
        prose = self._take_indented(FENCED.sub(blank, text))
        self.prose = prose = COMMENT.sub(blank, prose)
        self.spans = [Span(line_of(prose, found.start(2)), " ".join(found.group(2).split()))
                      for found in SPAN.finditer(prose)]
        self.anchors = anchors(prose)
        prose = SPAN.sub(blank, prose)
        self.links = sorted(Link(line_of(prose, found.start(1)), found.group(1))
                            for pattern in LINKS for found in pattern.finditer(prose))

    def _take_indented(self, text):
        """Takes them out. Returns the rest, with an empty line for each line taken."""
        prose, in_list, may_begin = [], False, True
        for number, line in enumerate(text.split("\n"), 1):
            found = INDENTED.match(line)
            if found and found[1].strip() and may_begin and not in_list:
                self.indented.append(Block(number, "", [found[1]]))
                line = ""
            else:
                may_begin = not line.strip()
                if line.strip() and not line.startswith(" "):
                    in_list = bool(LIST_ITEM.match(line))
            prose.append(line)
        return "\n".join(prose)


def blank(found):
    """As many blanks as were there, and as many lines."""
    return re.sub(r"[^\n]", " ", found.group())


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def anchors(prose):
    """What #... may name: GitHub's names for the headings, and every id= there is."""
    names, seen = set(ID.findall(prose)), collections.Counter()
    for line in prose.split("\n"):
        heading = HEADING.match(line)
        if heading:
            name = anchor(heading.group(1))
            names.add("%s-%d" % (name, seen[name]) if seen[name] else name)
            seen[name] += 1
    return names


def anchor(heading):
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"<[^>]*>|[*`]", "", text)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
