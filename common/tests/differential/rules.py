"""rules: what the wire contract (common/HTTP.md) says of a request, read once more in Python.

read(bytes) tells what a client's bytes are: REFUSED with a status, a whole REQUEST, or only the
beginning of one (MORE is wanted). It follows the page's rules 1 to 9, 11 and 13, and the RFCs that
these name, and not http.c. So wherever the two differ, one of them is wrong, or the page can be
read in two ways.

It is short rather than fast: it has all bytes at once, and looks at them as often as it likes.
"""

import collections
import ipaddress
import re

MORE, REFUSED, REQUEST = "more", "refused", "request"
LINE, FIELDS, FIELD_BYTES, EMPTY_LINES = 8000, 100, 16384, 2
BODY, CHUNK_LINE = 65536, 256

Request = collections.namedtuple("Request", "used method http_1_0 path query host keep_alive "
                                            "continues lines fields body")

TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
TARGET = re.compile(rb"[A-Za-z0-9._~:/?@!$&'()*+,;=%\[\]{}|^`-]+")
FIELD = re.compile(rb"(%s):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*" % TOKEN)
CODING = re.compile(rb"[ \t]*(?:(chunked)|(?!chunked[ \t]*;)%s(?:[ \t]*;.*)?)[ \t]*" % TOKEN)
HOST = re.compile(rb"(\[[^\]]*\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+)(?::([0-9]{0,5}))?")
CHUNK = re.compile(rb"[0-9A-Fa-f]+")


class Refuse(Exception):
    """With the status."""


class Wait(Exception):
    """For more bytes."""


def must(condition, status=400):
    if not condition:
        raise Refuse(status)


class Bytes:
    """What the client has sent, and how much of it has been read."""

    def __init__(self, sent):
        self.sent, self.at = sent, 0

    def take(self, count):
        if len(self.sent) - self.at < count:
            raise Wait
        self.at += count
        return self.sent[self.at - count:self.at]

    def line(self, longest, status):
        """Rule 3. The line without its end. One that is too long is refused before that has come."""
        end = self.sent.find(b"\n", self.at)
        line = self.sent[self.at:] if end < 0 else self.sent[self.at:end]
        must(len(line.removesuffix(b"\r")) <= longest, status)
        if end < 0:
            raise Wait
        must(line.endswith(b"\r"))
        self.at = end + 1
        return line[:-1]


# ---- rules 1, 2 and 4: the request line -----------------------------------------------------------

def read_request_line(sent):
    for _ in range(EMPTY_LINES + 1):
        first = sent.sent[sent.at:sent.at + 1]
        must(first in b"\r" or re.fullmatch(TOKEN, first))
        line = sent.line(LINE, 414)
        if line:
            break
    parts = line.split(b" ")
    must(len(parts) == 3)
    method, target, version = parts
    must(re.fullmatch(TOKEN, method) and target and re.fullmatch(rb"HTTP/[0-9]\.[0-9]", version))
    must(version[5:6] == b"1", 505)
    must(TARGET.fullmatch(target))
    return method, target, version == b"HTTP/1.0"


def is_host(text):
    match = HOST.fullmatch(text)
    try:
        if match and match[1].startswith(b"["):
            ipaddress.IPv6Address(match[1][1:-1].decode("latin-1").replace("%", "no zone: %"))
        return match and int(match[2] or b"0") <= 65535
    except ValueError:
        return False


def read_target(method, target):
    """The path, the query (None: there is none), and the host if the target names one."""
    if target == b"*" and method == b"OPTIONS":
        return target, None, None
    host = None
    if not target.startswith(b"/"):
        address = re.fullmatch(rb"http://([^/?]*)(.*)", target, re.IGNORECASE)
        must(address and is_host(address[1]))
        host, target = address[1], address[2]
        if not target.startswith(b"/"):
            target = b"/" + target
    path, question, query = target.partition(b"?")
    return path, query if question else None, host


# ---- rules 5 to 8, and 11: fields -----------------------------------------------------------------

def read_fields(sent, fields, used, check=lambda name, value, before: None):
    """Up to the empty line. Appends to `fields`, of which `used` bytes have come before."""
    while True:
        began = sent.at
        line = sent.line(max(FIELD_BYTES - used - 2, 0), 431)
        if not line:
            return used
        used += sent.at - began
        must(len(fields) < FIELDS, 431)
        match = FIELD.fullmatch(line)
        must(match)
        name, value = match[1].lower(), match[2]
        check(name, value, values(fields, name))
        fields.append((name, value))


def check_field(name, value, before):
    """`before` are the values of the fields of this name that came before it."""
    if name == b"host":
        must(not before and is_host(value))
    if name == b"content-length":
        must(not before and re.fullmatch(rb"[0-9]+", value))
    if name == b"transfer-encoding":
        codings = b",".join(before + [value]).lower().split(b",")
        must(all(CODING.fullmatch(coding) for coding in codings))
        must(all(CODING.fullmatch(coding)[1] != b"chunked" for coding in codings[:-1]))
    if name == b"expect":
        must(value.lower() == b"100-continue", 417)


def values(fields, name):
    return [value for each, value in fields if each == name]


def options(fields):
    """The members of the list that the Connection fields are together."""
    return [option.strip(b" \t") for option in
            b",".join(values(fields, b"connection")).lower().split(b",")]


def body_length(fields, http_1_0):
    """The body's length, or None if it comes in chunks. All fields are there."""
    lengths, codings = values(fields, b"content-length"), values(fields, b"transfer-encoding")
    if codings:
        must(not http_1_0 and not lengths)
        must(b",".join(codings).strip(b" \t").lower() == b"chunked", 501)
        return None
    length = int(lengths[0].lstrip(b"0")[:6] or b"0") if lengths else 0
    must(length <= BODY, 413)
    return length


# ---- rule 9: chunks -------------------------------------------------------------------------------

def read_chunks(sent, fields, used):
    body = b""
    while True:
        line = sent.line(CHUNK_LINE, 400)
        must(CHUNK.fullmatch(line))
        size = int(line, 16)
        must(len(body) + size <= BODY, 413)
        if size == 0:
            read_fields(sent, list(fields), used)
            return body
        body += sent.take(size)
        sent.line(0, 400)


# ---- a request ------------------------------------------------------------------------------------

def read_request(sent):
    fields = []
    method, target, http_1_0 = read_request_line(sent)
    path, query, host = read_target(method, target)
    began, used = sent.at, read_fields(sent, fields, 0, check_field)
    hosts = values(fields, b"host")
    must(hosts or http_1_0)
    length, wanted = body_length(fields, http_1_0), options(fields)
    body = read_chunks(sent, fields, used) if length is None else sent.take(length)
    return Request(
        used=sent.at, method=method, http_1_0=http_1_0, path=path, query=query,
        host=host or b"".join(hosts), body=body, fields=fields, lines=sent.sent[began:began + used],
        keep_alive=b"close" not in wanted and (not http_1_0 or b"keep-alive" in wanted),
        continues=not http_1_0 and length != 0 and bool(values(fields, b"expect")))


def read(sent):
    """(REQUEST, Request), (REFUSED, status) or (MORE, None)"""
    try:
        return REQUEST, read_request(Bytes(sent))
    except Refuse as refuse:
        return REFUSED, refuse.args[0]
    except Wait:
        return MORE, None


# ---- rule 17: paths -------------------------------------------------------------------------------

def decode_path(path):
    """The path that names a file, or None: 400."""
    if re.search(rb"%(?![0-9A-Fa-f]{2})|%[01][0-9A-Fa-f]|%7[Ff]", path):
        return None
    plain = re.sub(rb"%(..)", lambda escape: bytes([int(escape[1], 16)]), path)
    kept, segments = [], plain.split(b"/")[1:]
    for segment in segments:
        if segment == b".." and not kept:
            return None
        if segment == b"..":
            kept.pop()
        elif segment not in (b"", b"."):
            kept.append(segment)
    folder = kept and segments[-1] in (b"", b".", b"..")
    return b"/" + b"/".join(kept) + (b"/" if folder else b"")
