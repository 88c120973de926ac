"""What README.md says twice it says alike: its figures are those of the tables they come from."""

import os
import re
import unittest

import book

SERVERS = ("iterative", "forking", "preforking", "threading", "prethreading", "poll", "epoll")


class Figures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.readme = tables("README.md")
        cls.delay = tables("loadtest/results/delay/table.md")[0]
        cls.sweep = tables("loadtest/results/sweep/table.md")[0]

    def test_the_row_of_each_of_the_seven(self):
        seven = self.only_with("verdict")
        self.assertEqual(len(seven), len(SERVERS))
        new, kept = (table for table in self.readme if "500 clients" in first(table))
        for server, (chapter, row) in zip(SERVERS, seven.items()):
            with self.subTest(server=server):
                self.assertIn(server, chapter)
                self.assertEqual(row["new"], new[server]["500 clients"])
                self.assertEqual(row["kept"], kept[server]["500 clients"])
                self.assertEqual(row["far"], self.delay[server]["50 ms: pages/s"])

    def test_performance_and_scalability(self):
        for server, row in self.only_with("15,000").items():
            for clients, figure in row.items():
                if clients != "clients at once":
                    self.assertEqual(figure, self.sweep[clients][server], (server, clients))

    def test_io_bound_and_cpu_bound(self):
        for server, row in self.only_with("50 ms more").items():
            self.assertEqual(row["0 ms more"], self.delay[server]["0 ms: pages/s"], server)
            self.assertEqual(row["50 ms more"], self.delay[server]["50 ms: pages/s"], server)

    def only_with(self, heading):
        """The one table of README.md that has this column."""
        found, = (table for table in self.readme if heading in first(table))
        return found


def tables(path):
    """The tables of a document, each as {first cell: {heading: cell}}."""
    with open(os.path.join(book.TOP, path), encoding="utf-8") as file:
        text = file.read()
    found = []
    for lines in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        headings, _, *rows = ([bare(cell) for cell in line.strip("|").split("|")]
                              for line in lines.splitlines())
        found.append({row[0]: dict(zip(headings, row)) for row in rows})
    return found


def first(table):
    return next(iter(table.values()))


def bare(cell):
    """Without the marks and notes behind a figure, and what Markdown adds."""
    cell = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell)
    return re.sub(r"(?: [*†]| \(\d+\))+$|`", "", cell.strip())


if __name__ == "__main__":
    unittest.main()
