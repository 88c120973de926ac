"""place: where the grader lies. Import this first."""

import os
import sys
from pathlib import Path

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
GRADER = os.path.join(TOP, "common", "classroom", "grader")
sys.path.insert(0, GRADER)


def script(folder, name, text):
    """The path of a program that a test has made up."""
    path = Path(folder, name)
    path.write_text(text, "ascii")
    path.chmod(0o755)
    return str(path)
