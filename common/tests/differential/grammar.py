"""grammar: makes up requests, most of them with one thing about them that is unusual or wrong.

Each part of a request has a table. Its first entry is the usual one. From time to time a part is
taken from the rest of its table, a byte is changed, or the end is left out. Requests(seed) makes
the same ones for the same seed.
"""

import random

METHODS = ["GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "BREW",
           "get", "", "G(T", "!#$%&'*+-.^_`|~1", "GET\t", "G\xe4T"]
SEGMENTS = ["a", "", ".", "..", "%2e", "%2E%2e", "%2f", "%", "%4", "%zz", "%00", "%1F", "%7f", "%80",
            "%25", "~", "a=b&c", "{x}", "[x]", "|^`", "a:b@c", "!$'()*+,;", "<", ">", "\"", "\\", "#",
            "\x7f", "\x80", "\xff", "\x01"]
QUERIES = ["", "?", "?page=2", "?a?b/c", "?%zz", "?#", "?{|}", "?\xe4"]
ADDRESSES = ["http://a", "HTTP://a:80", "http://", "http://a:", "http://[::1]:8001", "https://a",
             "http://u@a", "http://u:p@a", "http://a%41", "http://a%4", "http://a:b", "ftp://a", "http:/a",
             "http:a", "a"]
TARGETS = ["*", "a:80", "**", "", "*?a", "a", "//", "/*", "?a", "a/b"]
VERSIONS = ["HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/1.9", "HTTP/0.9", "HTTP/2.0", "HTTP/1.10", "HTTP/1",
            "http/1.1", "HTTP/1,1", "HTTP/ 1.1", "HTTP/1.1 ", "", "HTTP/a.1", "HTTP/1.a", "HTTP/11.1"]
SPACES = [" ", "  ", "\t", "", " \t", "\x0b", "\xa0"]
ENDS = ["\r\n", "\n", "\r", "\r\r\n", "\n\r", " \r\n", "\t\r\n", "\0\r\n"]
EMPTY = ["", "\r\n", "\r\n\r\n", "\r\n\r\n\r\n", "\n", "\r", " \r\n"]

HOSTS = ["a", "localhost:8001", "", " ", "[::1]", "[::1]:80", "[::1", "::1", "[v1.x]", "[::g]", "[1.2.3.4]",
         "[::1.2.3.4]", "[::1%25lo]", "a:", ":80", "a:b", "a:80:80", "a:99999", "a:65536", "a b", "a,b",
         "u@a", "a/b", "a?b", "a%41", "a%4", "a%00", "_", "a..b", "-", "\xe4", "127.0.0.1", "999.1.1.1", "a'b",
         "[]", "[::1]a", "a\\b", "a[", "a]", "*", "[1:2:3:4:5:6:7:8]", "[1:2:3:4:5:6:7::]", "[::ffff:1.2.3.256]",
         "[12345::]", "[v1.]", "[vg.x]"]
LENGTHS = ["3", "0", "03", "+3", "-3", "3,3", "3, 3", "3 3", "", "0x3", "3.0", "65536", "65537", "9" * 30,
           "0" * 30 + "3", "18446744073709551619", "4294967299", "\xb2", "3;", "three"]
CODINGS = ["chunked", "Chunked", "CHUNKED ", "gzip", "gzip, chunked", "chunked, gzip", "chunked, chunked",
           "identity", "", ",chunked", "chunked,", ", ,", "chunked;a=b", "chunked;", "chunked ;a", "x chunked",
           "\"chunked\"", "chunkedx", "gzip;a=\",chunked\"", "gzip;a=\", chunked", "chun,ked", "chunked\t"]
EXPECTS = ["100-continue", "100-Continue", "", "200-ok", "100-continue, x", "100-continue,", "100-continue;a",
           "x=\"100-continue\"", ",100-continue", "100-continue, 100-continue", "\"100-continue\""]
OPTIONS = ["close", "keep-alive", "Close", "KEEP-ALIVE", "keep-alive, close", "x, close", "close;a", "",
           "\"close\"", "\"a,close\"", "closed", "x,\tclose ,", "\"close", "close, \"", ",", "te"]
VALUES = ["y", "", " y ", "\ty\t", "\x80\xff", "a\0b", "a\x7fb", "a\x01b", "a\tb", "a:b", ":", "\"", "a,b"]
NAMES = ["x", "X", "x ", " x", "", "x:", "x y", "\xe4", "x(", "x\t", "\tx", "!#$%&'*+-.^_`|~1", "x\0"]
LINES = ["x", " folded: y", "\tfolded", " ", ":", ": y", "x\ty: z", "x\x0b: y"]
EXTENSIONS = ["", ";a", ";a=b", ";", " ;a", " ", "\t", "x", ";\xe4"]
SIZES = ["%x", "%X", "0%x", "%x ", " %x", "0x%x", "+%x", "-%x", "%xg", "", "00000000000000000000%x",
         "%x1", "10000000000000000%x", "\"%x\""]
CHANGES = ["", "\r", "\n", "\r\n", " ", "\t", "\0", "\x7f", "\x80", ":", ",", ";", "\"", "%", "/", "0", "5", "a"]


class Requests:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def one(self, table, odds=0.04):
        """The first of the table, or with these odds any of the others."""
        return self.random.choice(table[1:]) if self.random.random() < odds else table[0]

    def perhaps(self, odds):
        return self.random.random() < odds

    def around(self, limit):
        return limit + self.random.randint(-2, 2)

    # ---- its parts

    def path(self):
        path = "".join("/" + self.one(SEGMENTS, 0.1) for _ in range(self.random.randint(1, 4)))
        return path + self.one(QUERIES, 0.1)

    def target(self):
        if self.perhaps(0.02):
            return self.random.choice(TARGETS)
        address = self.one(ADDRESSES, 0.2) if self.perhaps(0.15) else ""
        return address + (self.path() if not address or self.perhaps(0.8) else self.one(QUERIES, 0.3))

    def request_line(self):
        method, version = self.one(METHODS, 0.2), self.one(VERSIONS, 0.1)
        target = self.target()
        if self.perhaps(0.01):
            target += "a" * (self.around(8000) - len(method + target + version) - 2)
        return method + self.one(SPACES, 0.01) + target + self.one(SPACES, 0.01) + version

    def field(self, name, values, odds):
        colon = self.one([": ", ":", ":\t", ": \t ", " :", "", "\t:", "::"], 0.02)
        return self.random.choice([name, name.lower(), name.upper()]) + colon + self.one(values, odds)

    def fields(self, framing):
        lines = [self.field("Host", HOSTS, 0.05)] if self.perhaps(0.97) else []
        lines += framing
        for name, values, odds in [("Host", HOSTS, 0.01), ("Expect", EXPECTS, 0.05),
                                   ("Connection", OPTIONS, 0.25), ("Connection", OPTIONS, 0.05)]:
            if self.perhaps(odds):
                lines.append(self.field(name, values, 0.5))
        while self.perhaps(0.3):
            lines.append(self.field(self.one(NAMES, 0.05), VALUES, 0.15))
        if self.perhaps(0.01):
            lines.append(self.random.choice(LINES))
        self.random.shuffle(lines)
        if self.perhaps(0.01):
            lines += ["x: y"] * (self.around(100) - len(lines))
        if self.perhaps(0.01):
            length = sum(len(line) + 2 for line in lines)
            lines.append("x: " + "y" * (self.around(16384) - length - 5))
        return lines

    def chunk(self, size):
        text = self.one(SIZES, 0.02)
        line = (text % size if "%" in text else text) + self.one(EXTENSIONS, 0.1)
        if self.perhaps(0.01):
            line = "0" * (self.around(256) - len(line)) + line
        return line + self.one(ENDS, 0.01)

    def chunks(self):
        sizes = [self.random.randint(1, 20) for _ in range(self.random.randint(0, 3))]
        if self.perhaps(0.01):
            sizes = [self.around(65536) // 2] * 2
        body = "".join(self.chunk(size) + "b" * size + self.one(ENDS, 0.01) for size in sizes)
        return body + self.chunk(0) + self.lines(self.trailers()) + self.one(ENDS, 0.01)

    def trailers(self):
        lines = [self.field(self.one(NAMES, 0.2), VALUES, 0.3)] if self.perhaps(0.2) else []
        if self.perhaps(0.01):
            lines += ["Content-Length: 5", "Host: b"]
        return lines + ["x: y"] * self.around(98) if self.perhaps(0.01) else lines

    def lines(self, lines):
        return "".join(line + self.one(ENDS, 0.005) for line in lines)

    def framing(self):
        """The lines that say how long the body is, and the body."""
        kind = self.random.random()
        if kind < 0.4:
            return [], ""
        if kind < 0.65:
            length = self.field("Content-Length", LENGTHS, 0.2)
            digits = length.partition(":")[2].strip(" \t")
            size = int(digits) if digits.isdecimal() and digits.isascii() else 3
            more = [self.field("Content-Length", LENGTHS, 0.3)] if self.perhaps(0.03) else []
            return [length] + more, "b" * (size if size < 70000 else 3)
        more = [self.field("Content-Length", LENGTHS, 0.3)] if self.perhaps(0.03) else []
        if self.perhaps(0.05):
            more.append(self.field("Transfer-Encoding", CODINGS, 0.5))
        return [self.field("Transfer-Encoding", CODINGS, 0.1)] + more, self.chunks()

    # ---- a request

    def whole(self):
        framing, body = self.framing()
        return (self.one(EMPTY, 0.05) + self.lines([self.request_line()] + self.fields(framing)) +
                self.one(ENDS, 0.005) + body)

    def bytes(self):
        sent = self.whole()
        if self.perhaps(0.1):
            at = self.random.randrange(len(sent) + 1)
            sent = sent[:at] + self.random.choice(CHANGES) + sent[at + self.random.randint(0, 1):]
        if self.perhaps(0.05):
            sent = sent[:self.random.randrange(len(sent) + 1)]
        elif self.perhaps(0.2):
            sent += self.whole()
        return sent.encode("latin-1")

    def cuts(self, length):
        """Where the bytes are cut: nowhere, at a few places, or everywhere."""
        kind = self.random.random()
        if kind < 0.4:
            return []
        if kind < 0.6 and length < 500:
            return list(range(1, length))
        return sorted({self.random.randint(1, max(length - 1, 1)) for _ in range(3)})
