"""`make collect`: what students hand in is checked by our checks, and does us no harm."""

import csv
import ctypes
import gzip
import io
import json
import os
import re
import shutil
import stat
import subprocess
import tarfile
import tempfile
import unittest
import unittest.mock
import zipfile
from pathlib import Path

import place  # first: it says where the rest lies
import alike
import cage
import checked
import checks
import exercises
import handed_in
import jail
import marks

COURSE = os.path.join(place.TOP, "common", "classroom", "course")
KEY = "01/queue"  # it prints a number, and the check compares it
FILE, READER = "01_iterative/queue.c", "01_iterative/reader.c"
MOST_TASKS, MOST_MIB = 20, 200

LOOPS = "int main(void)\n{\n    for (;;)\n        ;\n}\n"
FORKS = "#include <unistd.h>\n\nint main(void)\n{\n    for (;;)\n        fork();\n}\n"
EATS = """\
#include <stdlib.h>
#include <string.h>

int main(void)
{
    for (;;) {
        char *piece = malloc(1 << 20);
        if (piece)
            memset(piece, 1, 1 << 20);
    }
}
"""
LIES = """\
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
    char words[200];
    puts("passed");
    fflush(stdout);
    snprintf(words, sizeof words,
             "for pid in %d 1; do"
             "  echo passed >/proc/$pid/fd/1; echo passed >/proc/$pid/fd/2; kill -9 $pid;"
             "done; touch PLACE/harm .mine/01_iterative/queue.done", (int)getppid());
    return system(words) & 0;
}
"""
ENDLESS = '#include "/dev/zero"\n'


def archive(members, mode="w:gz"):
    """The bytes of an archive with these TarInfos, and what is in them."""
    bytes = io.BytesIO()
    with tarfile.open(fileobj=bytes, mode=mode) as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return bytes.getvalue()


def zipped(members):
    """The bytes of a .zip of {name or ZipInfo: bytes}."""
    bytes = io.BytesIO()
    with zipfile.ZipFile(bytes, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return bytes.getvalue()


def named(name, kind=tarfile.REGTYPE, leads_to=""):
    member = tarfile.TarInfo(name)
    member.type = kind
    member.linkname = leads_to
    return member


def put(path, content):
    """Writes a file, and the folders above it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    return path


class Place(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="zerohttpd.")
        self.addCleanup(shutil.rmtree, self.folder)

    def hand_in(self, path, content):
        return put(os.path.join(self.folder, path), content)


LARGE = b"/" * (handed_in.MOST_SOURCE + 1)
MOODLE = "Anna O'Ash_4711_assignsubmission_file"
A_LINK = zipfile.ZipInfo(FILE)
A_LINK.external_attr = (stat.S_IFLNK | 0o777) << 16

# {path: what is handed in}, and {student: the exercises that are read of it, and how many notes there are}
READ = (
    # a folder is a .mine, or holds one, and nothing else of it counts
    ({"anna/.mine/" + FILE: "1", "ben/" + FILE: "2", "ben/01_iterative/queue.done": "a hash",
      "ben/result.json": '{"passed": 100}'}, {"anna": ({KEY: b"1"}, 0), "ben": ({KEY: b"2"}, 0)}),
    # an archive may have it in any folder
    ({**{"%d.tar.gz" % number: archive([(named(begin + FILE), b"1")])
         for number, begin in enumerate((".mine/", "./", "anna/.mine/", ""))},
      "plain.tar": archive([(named(FILE), b"1")], "w")}, dict.fromkeys(["0", "1", "2", "3", "plain"], ({KEY: b"1"}, 0))),
    # a file alone needs no folder, unless it may be of chapter 5 and of chapter 7
    ({"anna/queue.c": "1", "ben.zip": zipped({"queue.c": b"2"}), "carl.tar.gz": archive([(named("./queue.c"), b"3")]),
      "dora/drain.c": "4"}, {"anna": ({KEY: b"1"}, 0), "ben": ({KEY: b"2"}, 0), "carl": ({KEY: b"3"}, 0), "dora": ({}, 1)}),
    # starting files in an archive of the whole folder are nobody's work
    ({"anna.zip": zipped({"course/01_iterative/exercises/queue.c": b"1", "course/build/exercises/" + FILE: b"2",
                          "course/build/exercises/" + READER: b"3", "course/.mine/" + FILE: b"4"})},
     {"anna": ({KEY: b"4"}, 0)}),
    # what leads out of an archive is not read, and no link is followed
    *(({"eve.tar.gz": archive([(named(name), b"1"), (named(READER), b"2")])}, {"eve": ({"01/reader": b"2"}, 1)})
      for name in ("../" + FILE, "/" + FILE, ".mine/../../" + FILE)),
    *(({"eve.tar.gz": archive([(named(FILE, kind, "/etc/passwd"), b"")])}, {"eve": ({}, 1)})
      for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE)),
    ({"eve.zip": zipped({A_LINK: b"/etc/passwd", "../" + READER: b"1"}), "bomb.zip": zipped({FILE: LARGE}),
      "nonsense.zip": b"what is this?"}, {"eve": ({}, 2), "bomb": ({}, 1), "nonsense": ({}, 1)}),
    # nor what is too large, or broken
    ({"folder/" + FILE: LARGE, "archive.tar.gz": archive([(named(FILE), LARGE)]),
      "bomb.tgz": gzip.compress(bytes(handed_in.MOST_ARCHIVE + 1)),
      "half.tar.gz": archive([(named(FILE), os.urandom(9000))])[:5000], "nonsense.tar.gz": b"what is this?" * 100},
     dict.fromkeys(["folder", "archive", "bomb", "half", "nonsense"], ({}, 1))),
    ({"eve.zip": zipped({"%d/queue.c" % number: LARGE[1:] for number in range(70)})}, {"eve": ({KEY: LARGE[1:]}, 1)}),
    # a folder and an archive of one name are one student; of what is there twice the first one counts
    ({"anna/" + FILE: "1", "anna.tar.gz": archive([(named(FILE), b"2"), (named(READER), b"3")]), "ben/" + FILE: "4"},
     {"anna": ({KEY: b"1", "01/reader": b"3"}, 1), "ben": ({KEY: b"4"}, 0)}),
    # a name is the same however its accents are written, and harmless
    ({"Andr\u00e9/" + FILE: "1", "Andre\u0301.tar.gz": archive([(named(READER), b"2")])},
     {"Andr\u00e9": ({KEY: b"1", "01/reader": b"2"}, 0)}),
    ({"\x1b[31mred\n/" + FILE: ""}, {"??31mred?": ({KEY: b""}, 0)}),
    # Moodle puts archives into folders, and Canvas all files into one
    ({MOODLE + "/mine.tar.gz": archive([(named(".mine/" + FILE), b"1")]),
      MOODLE + "/again.zip": zipped({".mine\\01_iterative\\reader.c": b"2"}), "Ben.zip": zipped({"Ben/.mine/" + FILE: b"3"})},
     {"Anna O'Ash": ({KEY: b"1", "01/reader": b"2"}, 0), "Ben": ({KEY: b"3"}, 0)}),
    ({"Anna Ash_1_assignsubmission_file/" + FILE: "1", "Anna Ash_2_assignsubmission_file/" + FILE: "2"},
     {"Anna Ash (1)": ({KEY: b"1"}, 0), "Anna Ash (2)": ({KEY: b"2"}, 0)}),
    ({"Anna Ash_1_assignsubmission_file_my-work.zip": zipped({FILE: b"1"}), "Ann_1_assignsubmission_file_queue.c": "2",
      "Ann_2_assignsubmission_file/queue.c": "3", "Ann 1_3_assignsubmission_file/queue.c": "4"},
     {"Anna Ash": ({KEY: b"1"}, 1), "Ann (1)": ({KEY: b"2"}, 1), "Ann (2)": ({KEY: b"3"}, 0), "Ann 1": ({KEY: b"4"}, 0)}),
    # whatever a student calls a file, it stays his or hers, and of two with one name none gets the other's marks
    ({"evemallory_4711_816_mine.zip": zipped({READER: b"1"}), "benben_18_503_queue.c": "3",
      "evemallory_4711_815_x_18_assignsubmission_file.zip": zipped({FILE: b"2"})},
     {"evemallory": ({"01/reader": b"1", KEY: b"2"}, 0), "benben": ({KEY: b"3"}, 0)}),
    ({"Ann*/" + FILE: "1", "Ann:/" + READER: "2"}, {"Ann?": ({KEY: b"1"}, 1)}),
    ({"ashanna_17_501_queue-1.c": "1", "ashanna_LATE_17_502_reader.c": "2",
      "benben_18_503_mine.zip": zipped({".mine/" + FILE: b"3"}), "benben_18_504_readme.txt": "4"},
     {"ashanna": ({KEY: b"1", "01/reader": b"2"}, 0), "benben": ({KEY: b"3"}, 0)}),
    # odd names of files are found
    ({"anna/queue (1).c": "1", "ben/\u0417\u0430\u0434\u0430\u0447\u0438/Queue.c": "2",
      "carl.zip": zipped({"\u89e3\u7b54/queue.c": b"3"}), "dora/02_forking/queue.c": "of which chapter?",
      "emil/course/01_iterative/exercises/queue.c": "the starting file"},
     {"anna": ({KEY: b"1"}, 0), "ben": ({KEY: b"2"}, 0), "carl": ({KEY: b"3"}, 0), "dora": ({}, 1), "emil": ({}, 1)}),
)


class Reading(Place):
    known = [each for each in exercises.every() if each.key in (KEY, "01/reader", "05/drain", "07/drain")]

    def read(self, students=None):
        self.said = []
        return {one.student: one for one in handed_in.read(self.folder, self.known, students, self.said.append)}

    def test_what_is_read(self):
        for handed, expected in READ:
            self.setUp()
            for path, content in handed.items():
                self.hand_in(path, content)
            with self.subTest(handed.keys()):
                self.assertEqual({name: (one.sources, len(one.notes)) for name, one in self.read().items()}, expected)
                self.assertEqual(sorted(os.listdir(self.folder)), sorted({path.partition("/")[0] for path in handed}))

    def test_links_are_not_followed(self):
        secret = self.hand_in("secret.txt", "a secret")
        self.hand_in("real/" + FILE, "1")
        for name in ("file", "pipe", "folder"):
            os.makedirs(os.path.join(self.folder, name, "01_iterative" * (name != "folder")))
        os.symlink(secret, os.path.join(self.folder, "file", FILE))
        os.mkfifo(os.path.join(self.folder, "pipe", FILE))
        os.symlink("../real/01_iterative", os.path.join(self.folder, "folder", "01_iterative"))
        os.symlink("real", os.path.join(self.folder, "student"))
        self.assertEqual({name: one.sources for name, one in self.read().items()},
                         {"file": {}, "pipe": {}, "folder": {}, "real": {KEY: b"1"}})
        self.assertEqual(["secret.txt is not read: neither a folder nor a .zip, .tar, .tar.gz or .tgz",
                          "student is not read: neither a folder nor a .zip, .tar, .tar.gz or .tgz"], self.said)

    def test_a_folder_without_students_is_said(self):
        with self.assertRaisesRegex(handed_in.Unreadable, "is empty"):
            self.read()

    def test_a_mapping_says_who_has_handed_in(self):
        path = self.hand_in("class.csv", "\ufeffhanded,id,name\nteam1,s17,Anna Ash\nBen,s18,\"Ben, B.\"\n")
        self.hand_in("team1.zip", zipped({FILE: b"1"}))
        self.hand_in("Ben_4711_assignsubmission_file/" + FILE, "2")
        self.hand_in("cecil_17_501_queue.c", "3")
        self.assertEqual({"Anna Ash": "s17", "Ben, B.": "s18", "cecil": "17"},
                         {name: one.id for name, one in self.read(handed_in.read_students(path)).items()})
        self.assertEqual("4711", self.read()["Ben"].id)
        self.hand_in("Carl_4711_assignsubmission_file/" + FILE, "4")
        self.assertEqual(["", ""], [self.read()[name].id for name in ("Ben", "Carl")])
        self.assertIn("ANOTHER NAME HAS THE ID 4711", self.said[-1])
        with self.assertRaisesRegex(handed_in.Unreadable, "handed, id and name"):
            handed_in.read_students(self.hand_in("other.csv", "name,points\nAnna,1\n"))

    def test_one_student_alone(self):
        path = self.hand_in("submission/.mine/" + FILE, "1")
        for each in (os.path.join(self.folder, "submission"), path):
            self.assertEqual({KEY: b"1"}, handed_in.read_one(each, self.known).sources)

    def test_what_was_not_understood_is_named(self):
        self.hand_in("anna/src/que.c", "1")
        self.hand_in("ben.zip", zipped({"Abgabe/que.c": b"1"}))
        self.hand_in("carl.tar.gz", archive([]))
        os.mkdir(os.path.join(self.folder, "dora"))
        self.hand_in("eve.tar.gz", archive([(named("../" + FILE), b"1")]))
        self.hand_in("fay/" + FILE, "1")
        self.hand_in("fay.zip", zipped({FILE: b"2"}))
        self.assertEqual({"anna": ["it has no exercise, only src/que.c"],
                          "ben": ["it has no exercise, only Abgabe/que.c"],
                          "carl": ["it is empty"], "dora": ["it is empty"],
                          "eve": ["../%s is not read: it leads out of its folder" % FILE],
                          "fay": ["01/queue is there twice: the first one counts"]},
                         {name: one.notes for name, one in self.read().items()})


class Sandbox(Place):
    def test_what_may_be_written_to_memory_is_limited(self):
        """Half of the machine's memory would be the kernel's own limit."""
        around = jail.build().around(self.folder)
        if not around:
            self.skipTest("this machine lets nobody make a sandbox")
        places = [each for each in jail.EMPTY
                  if os.path.isdir(each) and not place.TOP.startswith(each + "/")]
        said = subprocess.check_output([*around, "df", "--output=size", "--block-size=1", *places], encoding="ascii")
        sizes = [int(line) for line in said.split()[1:] if line.isdecimal()]
        self.assertEqual([jail.MOST_IN_MEMORY] * len(places), sizes)

    def test_a_hand_in_sees_no_other(self):
        """Neither those that are checked meanwhile, nor those that are still to come."""
        os.makedirs(os.path.join(place.TOP, "build"), exist_ok=True)
        elsewhere = tempfile.mkdtemp(dir=os.path.join(place.TOP, "build"))
        self.addCleanup(shutil.rmtree, elsewhere)
        for name in ("cells/own/queue.c", "cells/other/queue.c"):
            self.hand_in(name, "1")
        Path(os.path.join(elsewhere, "ben.c")).write_text("2", "ascii")
        own = os.path.join(self.folder, "cells", "own")
        around = jail.build().around(own, [elsewhere])
        if not around:
            self.skipTest("this machine lets nobody make a sandbox")
        found = subprocess.check_output([*around, "find", elsewhere, os.path.dirname(own), "-name", "*.c"],
                                        encoding="utf-8")
        self.assertEqual([os.path.join(own, "queue.c")], found.splitlines())


    @unittest.skipUnless(os.uname().machine in jail.KEYCTL, "who knows the call's number?")
    def test_it_has_another_session_keyring(self):
        """KEYCTL_GET_KEYRING_ID of KEY_SPEC_SESSION_KEYRING; -1 where nobody may ask."""
        syscall, asks = ctypes.CDLL(None).syscall, (jail.KEYCTL[os.uname().machine], 0, -3, 0)
        before = syscall(*asks)
        self.assertFalse(jail.build().has_keys)
        self.assertTrue(before == -1 or syscall(*asks) != before)

    @unittest.skipIf(os.geteuid(), "only the superuser gives it a user of its own")
    def test_the_redis_it_may_talk_to_has_another_user_yet(self):
        with checked.Caged("/bin/true", str) as ex:
            user = os.stat(ex.redis().where[len("unix:"):]).st_uid
            self.assertEqual(user, jail.for_redis(ex.folder).user or 0)


class Alike(unittest.TestCase):
    START = "int main(void)\n{\n    return 0;\n}\n"
    OWN = ("int sum(int *of, int n)\n{\n    int all = 0;\n    for (int i = 0; i < n; i++)\n"
           "        all += of[i] * of[i] - n;\n    while (all > 100 && n > 1)\n        all = all / 2 + n;\n"
           "    return all;\n}\n")

    def test_what_the_starting_file_has_is_nobodys(self):
        self.assertEqual("int x;\n", alike.own_lines(self.START + "int x;\n", self.START))

    @unittest.skipUnless(shutil.which(alike.TOOL), "needs sim_c")
    def test_a_copy_with_other_names_is_found(self):
        other = "char *text(char *at)\n{\n    return at ? at + 1 : at;\n}\n"
        sources = {"anna": self.START + self.OWN, "carl": self.START + other,
                   "ben": self.START + re.sub("all", "total", self.OWN) + "/* my own */\n"}
        found = alike.pairs({name: text.encode() for name, text in sources.items()}, self.START)
        self.assertEqual({("anna", "ben")}, {tuple(sorted(each[1:])) for each in found}, found)

    @unittest.skipUnless(shutil.which(alike.TOOL), "needs sim_c")
    def test_what_takes_too_long_to_compare_is_said(self):
        limits = [each if "cpu" not in each else "--cpu=1" for each in jail.COMPILER]
        with unittest.mock.patch.object(jail, "COMPILER", limits), self.assertRaises(alike.Unknown):
            alike.pairs({name: b"a;\n" * 60000 for name in ("ben", "eve")}, self.START)


class Marks(Place):
    WORK = [handed_in.HandedIn("Anna O'Ash", {}, [], "4711"), handed_in.HandedIn("=cmd()", {}, [])]
    RESULTS = {("Anna O'Ash", KEY): {"outcome": "passed", "held": 2, "of": 2, "missed": None, "seed": 1},
               ("Anna O'Ash", "02/cap"): {"outcome": "not yet", "held": 4, "of": 7, "missed": "503",
                                          "seed": 2},
               ("=cmd()", KEY): {"outcome": "does not compile", "seed": 3}}

    def rows(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8", newline="") as file:
            return list(csv.reader(file))

    def test_a_class(self):
        marks.write(self.folder, self.WORK, self.RESULTS)
        self.assertEqual([
            ["Identifier", "Full name", "Grade", "Maximum Grade", "Feedback comments"],
            ["Participant 4711", "Anna O'Ash", "1", "2", "01/queue: passed; 02/cap: not yet, 4 of 7 "
             "expectations held; then was expected: 503 (seed 2)"],
            ["", "'=cmd()", "0", "2", "01/queue: does not compile"]], self.rows("moodle.csv"))
        self.assertEqual([["Anna O'Ash", "4711", "", "", "", "1"], ["'=cmd()", "", "", "", "", "0"]],
                         self.rows("canvas.csv")[2:])

    def test_one_student(self):
        path = os.path.join(self.folder, "results.json")
        marks.write_gradescope(path, {pair: each for pair, each in self.RESULTS.items()
                                      if pair[0] == "Anna O'Ash"})
        found = json.loads(text_of(path))
        self.assertEqual((1, ["passed", "failed"]),
                         (found["score"], [each["status"] for each in found["tests"]]))


@place.with_git
class Collecting(Place):
    """Once, with a student for each kind of program."""

    def collect(self, *options, status=0):
        done = subprocess.run([os.path.join(COURSE, "collect"), *options, self.folder],
                              env=place.ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True,
                              encoding="utf-8", check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout

    def test_each_gets_what_is_due(self):
        exercise, = exercises.find(KEY, exercises.every())
        handed = {"loops": LOOPS, "eats": EATS, "lies": LIES.replace("PLACE", self.folder),
                  "endless": ENDLESS, "broken": "int main(", "starts": text_of(exercise.start)}
        due = {"loops": "over the limit", "eats": "over the limit", "lies": "not yet",
               "endless": "over the limit", "broken": "does not compile", "starts": "not yet"}
        if can_be_counted():
            handed["forks"] = FORKS
            due["forks"] = "over the limit"
        if os.path.exists(exercise.at(exercise.solution)):
            solution = "build/" + "solutions/" + FILE
            checks.make(solution)
            handed["honest"] = text_of(solution)
            due["honest"] = "passed"
        for student, source in handed.items():
            self.hand_in("%s.tar.gz" % student, archive([(named(".mine/" + FILE), source.encode()),
                                                         (named("../" + FILE), b"#error\n")]))
        logs = os.path.join(tempfile.mkdtemp(prefix="zerohttpd."), "logs")
        self.addCleanup(shutil.rmtree, os.path.dirname(logs))
        before = os.listdir(self.folder)
        os.chmod(self.folder, 0o777)
        found = json.loads(self.collect("--json", "--only", KEY, "--logs", logs, "--most-tasks",
                                        str(MOST_TASKS), "--most-memory", str(MOST_MIB)))
        self.assertEqual(len(due), found["totals"]["handed in"])
        self.assertEqual(2 * len(due), sum(found["totals"].values()))
        self.assertTrue(found["date"] and found["revision"])
        outcomes = {one["student"]: one["exercises"][KEY]["outcome"] for one in found["students"]}
        if outcomes.get("endless") == "does not compile":  # the compiler was told first
            due["endless"] = "does not compile"
        self.assertEqual(outcomes, due, logs_in(logs))
        starts, = [one["exercises"][KEY] for one in found["students"] if one["student"] == "starts"]
        self.assertTrue(starts["missed"] and starts["held"] < starts["of"] and starts["seed"], starts)
        self.assertEqual(found, json.loads(text_of(os.path.join(logs, "class.json"))))
        for one in found["students"]:
            self.assertIn("leads out", one["notes"][0])
            self.assertTrue(os.path.exists(one["exercises"][KEY]["log"]))
        if jail.build().sandbox:
            self.assertEqual(os.listdir(self.folder), before, "nobody wrote outside")

    def test_a_write_past_a_buffer_does_not_pass(self):
        """A byte behind it, which harms nobody: only the sanitizer sees it."""
        exercise, = exercises.find("01/reader", exercises.every())
        if not os.path.exists(exercise.at(exercise.solution)):
            self.skipTest("a course's copy has no solutions")
        solution = "build/" + "solutions/" + READER
        checks.make(solution)
        source = text_of(solution)
        self.hand_in("right/" + READER, source)
        self.hand_in("past/" + READER, source.replace("len += (size_t)n;",
                                                      "len += (size_t)n; head[len] = 0;"))
        logs = os.path.join(self.folder, ".logs")
        found = json.loads(self.collect("--json", "--only", "01/reader", "--logs", logs))
        self.assertEqual({"right": "passed", "past": "not yet"},
                         {one["student"]: one["exercises"]["01/reader"]["outcome"]
                          for one in found["students"]}, logs_in(logs))
        self.assertIn("runtime error: index 4096 out of bounds", logs_in(logs))

    def test_the_table_has_a_row_for_each_student(self):
        self.hand_in("anna/" + FILE, "int main(")
        self.hand_in("anna/01_iterative/gone.c", "int main(")
        self.hand_in("ben/" + FILE, "int main(")
        os.mkdir(os.path.join(self.folder, "carl"))
        printed = self.collect("--logs", os.path.join(self.folder, ".logs"))
        self.assertRegex(printed, r"(?m)^01 +(gone +queue|queue +gone)$")
        self.assertRegex(printed, r"(?m)^anna +does not compile +does not compile$")
        self.assertRegex(printed, r"(?m)^ben +(–|does not compile) +(–|does not compile)$")
        self.assertRegex(printed, r"(?m)^carl +– +–$")
        self.assertIn("anna: 0 passed of 2 handed in\n", printed)
        page = text_of(os.path.join(self.folder, ".logs.html"))
        link, = re.findall(r'href="([^"]*ben[^"]*)" title="does not compile"', page)
        self.assertIn("error", text_of(os.path.join(self.folder, link)))


    def test_one_student_has_a_status(self):
        self.hand_in("queue.c", "int main(")
        path = os.path.join(self.folder, "results.json")
        words = "--one", "--only", KEY, "--logs", os.path.join(self.folder, ".logs"), "--gradescope", path
        self.collect(*words, status=1)
        self.assertEqual(0, json.loads(text_of(path))["score"])
        os.remove(os.path.join(self.folder, "queue.c"))
        self.collect(*words, status=1)


def can_be_counted():
    """May a program that forks without end be tried here? Not without a count that binds it."""
    group = cage.Group(MOST_TASKS)
    group.remove()
    return bool(group.path or jail.build().user)


def text_of(path):
    return Path(os.path.join(place.TOP, path)).read_text("utf-8")


def logs_in(folder):
    texts = []
    for where, _, names in os.walk(folder):
        for name in names:
            texts.append("\n%s\n%s" % (where, re.sub("(?m)^", "  ", Path(os.path.join(where, name)).read_text("utf-8")[-2000:])))
    return "".join(texts)


if __name__ == "__main__":
    unittest.main()
