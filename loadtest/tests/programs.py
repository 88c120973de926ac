"""The programs of loadtest/, as modules: for tests of what they compute."""

import importlib.machinery
import importlib.util
import os
import sys

LOADTEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, LOADTEST)


def load(name):
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(LOADTEST, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module  # dataclasses look there
    loader.exec_module(module)
    return module
