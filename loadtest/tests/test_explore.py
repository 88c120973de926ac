"""The model that public/explore.html plays with: its laws, and whether the page shows what is stored."""

import csv
import functools
import html
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import unittest

import programs
from lib.measuring import machine

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = os.path.join(machine.TOP, "public", "model.js")
PAGE = os.path.join(machine.TOP, "public", "explore.html")
ROW = re.compile(r'<tr data-run="(\w+)" data-at="([^"]*)">.*?</th>(.*?)</tr>')
SERVERS = ("iterative", "forking", "preforking", "threading", "prethreading", "poll", "epoll")
USUAL = {"clients": "100", "delay": "0", "work": "0", "cores": "1", "kept": "0"}


@functools.lru_cache(maxsize=None)
def rates(run):
    """{(server, clients, delay, work, cores, kept): the rates of its rounds}"""
    found = {}
    with open(os.path.join(machine.TOP, "loadtest/results", run, "cells.tsv"), encoding="utf-8") as file:
        for cell in csv.DictReader(file, delimiter="\t"):
            if cell["requests"] and not cell["wrong"]:
                key = (cell["subject"], float(cell["clients"]), float(cell["delay_ms"] or 0),
                       float(cell["work_ms"] or 0), float(cell["cores"] or 1), cell["generator"] != "ab")
                found.setdefault(key, []).append(float(cell["requests_per_second"]))
    return found


class Explore(unittest.TestCase):
    @unittest.skipUnless(shutil.which("node"), "node is not installed")
    def test_the_model_keeps_its_laws(self):
        with tempfile.TemporaryDirectory() as folder:
            model = shutil.copy(MODEL, os.path.join(folder, "model.mjs"))
            done = subprocess.run(["node", "--test", os.path.join(HERE, "explore_laws.mjs")], check=False,
                                  env={**os.environ, "MODEL": model}, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, encoding="utf-8")
        self.assertEqual(done.returncode, 0, done.stdout)

    @unittest.skipUnless(shutil.which("node"), "node is not installed")
    def test_the_page_says_how_wrong_the_model_is(self):
        done = subprocess.run([os.path.join(machine.TOP, "loadtest", "explore")], check=True,
                              stdout=subprocess.PIPE, encoding="utf-8")
        errors = done.stdout.splitlines()[-1]
        with open(PAGE, encoding="utf-8") as file:
            self.assertIn(" stored cells: %s. " % errors, file.read(), "loadtest/explore --page writes it")

    def test_the_page_shows_the_stored_runs(self):
        with open(PAGE, encoding="utf-8") as file:
            rows = ROW.findall(file.read())
        self.assertGreater(len(rows), 10)
        for run, address, cells in rows:
            at = {**USUAL, **dict(pair.split("=") for pair in html.unescape(address).split("&") if pair)}
            for server, cell in zip(SERVERS, re.findall(r"<td>(.*?)</td>", cells)):
                key = (server, *(float(at[name]) for name in ("clients", "delay", "work", "cores")), at["kept"] == "1")
                measured = rates(run).get(key)
                wanted = format(round(statistics.median_low(measured)), ",") if measured else "-"
                with self.subTest(run=run, address=address, server=server):
                    self.assertEqual(cell, wanted, "loadtest/explore --page writes them")
