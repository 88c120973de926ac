#!/usr/bin/env bash
# setup.sh: Gradescope runs this once, as root, when it makes the image for an assignment.
#
# The zip for Gradescope is a copy of the project (make course), with this file and run_autograder at its
# top, and a file `assignment` that names the exercises: 01/queue 01/deadline
set -eu
cd /autograder/source
common/tools/deps build exercise
make -s all instruments exercise-programs # so that a hand-in is all that is left to compile
