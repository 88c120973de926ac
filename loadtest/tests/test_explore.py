"""The model that public/explore.html plays with: its laws, and whether the page shows what is stored."""

import os
import shutil
import subprocess
import unittest

import programs
import processes
from lib.measuring import machine

PAGE = "public/explore.html"


@programs.needs("node")
class Explore(unittest.TestCase):
    def node(self, *words):
        done = subprocess.run(["node", *words], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              encoding="utf-8")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_model_keeps_its_laws(self):
        self.node("--test", os.path.join(programs.HERE, "explore_laws.mjs"))

    def test_the_page_shows_the_stored_runs_and_says_how_wrong_the_model_is(self):
        folder = programs.folder(self)
        for path in ("loadtest/explore", "public/model.js", PAGE):
            os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            shutil.copy(os.path.join(machine.TOP, path), os.path.join(folder, path))
        os.symlink(os.path.join(programs.LOADTEST, "results"), folder + "/loadtest/results")
        self.node(folder + "/loadtest/explore", "--page")
        self.assertEqual(processes.printed(os.path.join(folder, PAGE)), processes.printed(os.path.join(machine.TOP, PAGE)),
                         "loadtest/explore --page writes it")
