"""place: where the grader lies. Import this first."""

import os
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
GRADER = os.path.join(TOP, "common", "classroom", "grader")
sys.path.insert(0, GRADER)
