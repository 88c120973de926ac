"""marks: what `make collect` found, in the forms that learning platforms read.

    moodle.csv      an offline grading worksheet: identifier, name, grade, feedback
    canvas.csv      a gradebook: student, id, grade
    a file for Gradescope, its results.json, of one student

Nobody has tried them in Moodle, Canvas or Gradescope: they follow their documentation. A point is an
exercise that has passed, or one of the grader's hundred. What else held is in the feedback, because a
starting file has some of it.
"""

import csv
import json
import os

PASSED = "passed"
COLUMN = "ZeroHTTPd"  # Canvas' name of the assignment


def feedback(result):
    """Of one exercise, for the student."""
    missed = result.get("missed")
    if "points" in result:
        return "; ".join([result["outcome"], *(each["case"] for each in result["failures"])])
    if not missed:
        return result["outcome"]
    return "%s, %d of %d expectations held; then was expected: %s (seed %d)" % (
        result["outcome"], result["held"], result["of"], missed, result["seed"])


def points(result):
    return result.get("points", int(result["outcome"] == PASSED))


def worth(result):
    """The most points there are."""
    return result["of"] if "points" in result else 1


def of_student(results, name):
    """(points, the feedback of each exercise, in a line)."""
    theirs = {key: each for (student, key), each in sorted(results.items()) if student == name}
    return (sum(map(points, theirs.values())),
            "; ".join("%s: %s" % (key, feedback(each)) for key, each in theirs.items()))


def plain(text):
    """A spreadsheet must not take it for a formula."""
    return "'" + text if text[:1] in ("=", "+", "-", "@") else text


def write(folder, work, results):
    """Both lists of a class: a row for each student, out of as many points as exercises came."""
    most = sum(max(worth(each) for (_, other), each in results.items() if other == key)
               for key in {key for _, key in results})
    rows = [(one, *of_student(results, one.student)) for one in work]
    write_rows(os.path.join(folder, "moodle.csv"), [
        ["Identifier", "Full name", "Grade", "Maximum Grade", "Feedback comments"],
        *(["Participant " + one.id if one.id else "", plain(one.student), got, most, plain(said)]
          for one, got, said in rows)])
    write_rows(os.path.join(folder, "canvas.csv"), [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", COLUMN],
        ["    Points Possible", "", "", "", "", most],
        *([plain(one.student), one.id, "", "", "", got] for one, got, _ in rows)])


def write_rows(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def write_gradescope(path, results):
    tests = [{"name": key, "score": points(each), "max_score": worth(each),
              "status": "passed" if each["outcome"] == PASSED else "failed",
              "output": feedback(each)} for (_, key), each in sorted(results.items())]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"score": sum(each["score"] for each in tests), "tests": tests}, file, indent=1)
