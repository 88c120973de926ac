"""What all tests of loadtest/ share. Import it first: lib and the Chromium of common/tests/clients are
found only behind it."""

import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
LOADTEST = os.path.dirname(HERE)
sys.path[:0] = [LOADTEST]
sys.path += [os.path.join(os.path.dirname(LOADTEST), "common/tests/clients")]

from lib import stored
from lib.measuring import machine


def load(name):
    """A program of loadtest/ as a module, for tests of what it computes."""
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(LOADTEST, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module  # dataclasses look there
    loader.exec_module(module)
    return module


def needs(*tools):
    """Skips a test, or a class of tests, where one of these programs is missing: names, or paths."""
    missing = [tool for tool in tools if not shutil.which(tool)]
    return unittest.skipIf(missing, "missing: %s" % ", ".join(missing))


def run(name, *words, stderr=subprocess.STDOUT, **options):
    """Runs a program of loadtest/, to its end. Returns the CompletedProcess."""
    return subprocess.run([os.path.join(LOADTEST, name), *words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=stderr, encoding="utf-8", errors="replace", check=False,
                          cwd=os.path.dirname(LOADTEST), **options)


def folder(case):
    """The path of a new folder, which is removed after this test, or after this class of tests."""
    new = tempfile.TemporaryDirectory()
    (case.addClassCleanup if isinstance(case, type) else case.addCleanup)(new.cleanup)
    return os.path.realpath(new.name)


def cells(folder):
    """The rows of a run's cells.tsv, as dicts. There are none before it begins."""
    return stored.rows(machine.read(os.path.join(folder, "cells.tsv")))
