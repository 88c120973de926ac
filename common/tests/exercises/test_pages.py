"""The pages that `make exercises HTML=1` and `make collect` write, from results that are given."""

import os
import re
import shutil
import sys
import tempfile
import unittest
from collections import namedtuple
from pathlib import Path
from xml.etree import ElementTree

import place  # first: it says where the rest lies

sys.path[1:1] = [os.path.join(place.TOP, *names) for names in (
    ("loadtest",), ("common", "tests", "clients"))]
import browser
import exercises
import pages

TASK = """\
# %s

Chapter %s · build · 15 minutes · %s

Build it.

<details><summary>When it passes</summary>

All is well. **What it teaches.** A deadline is a point in time, which `poll`
keeps. It is set once.

</details>
"""
KNOWN = {("01_iterative", "first"): ("A <first> one", "★☆☆"),
         ("01_iterative", "harder"): ("A harder one", "★★☆"),
         ("02_forking", "easy"): ("An easy one", "★☆☆"),
         ("02_forking", "last"): ("The `last` one", "★★★")}
LESSON = "A deadline is a point in time, which <code>poll</code> keeps."
MISSED = "at most 3 calls & <no> more"
HandedIn = namedtuple("HandedIn", "student sources notes")


class Place(unittest.TestCase):
    """A project of the test's own, with four exercises in two chapters."""

    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="zerohttpd.")
        self.addCleanup(shutil.rmtree, self.top)
        for (chapter, name), (title, stars) in KNOWN.items():
            self.write("%s/exercises/%s.md" % (chapter, name), TASK % (title, chapter[1], stars))
        self.known = exercises.every(self.top)
        self.first, self.harder, self.easy, self.last = self.known

    def write(self, path, text):
        path = os.path.join(self.top, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(path).write_text(text, "utf-8")

    def begin(self, exercise, text="int main(void) {}\n"):
        self.write(exercise.mine, text)


class Marks(Place):
    def test_what_a_check_has_missed_holds_until_the_copy_changes(self):
        self.assertEqual(self.first.missed(), "")
        self.begin(self.first)
        self.first.mark_missed("three\nlines of it\n")
        self.assertEqual((self.first.state(), self.first.missed()), ("begun", "three lines of it"))
        self.begin(self.first, "int x;\n")
        self.assertEqual((self.first.state(), self.first.missed()), ("begun", ""))

    def test_the_next_is_the_easiest_in_the_first_chapter_that_is_not_done(self):
        self.assertEqual(exercises.following(self.known), self.first)
        for one, then in ((self.first, self.harder), (self.harder, self.easy),
                          (self.easy, self.last), (self.last, None)):
            self.begin(one)
            one.mark_done()
            self.assertEqual(exercises.following(self.known), then)


class Learner(Place):
    def page(self):
        """The page, and each of its rows by the exercise's key, without markup."""
        page = pages.of_learner(self.known, os.path.join(self.top, "build"))
        rows = {re.search("<br><code>(.*?)</code></th>", row)[1]: re.sub("<.*?>", "", row)
                for row in re.findall(r"<tr>.*?</tr>", page, re.DOTALL) if "<td" in row}
        self.assertEqual(list(rows), [each.key for each in self.known])
        return page, rows

    def test_each_is_done_or_fails_or_is_begun_or_not(self):
        for each in (self.first, self.harder, self.easy):
            self.begin(each)
        self.first.mark_done()
        self.harder.mark_missed(MISSED)
        page, rows = self.page()
        self.assertRegex(rows["01/first"], r"★☆☆\s*15 min\s*Done\. A deadline is a point in time")
        self.assertRegex(rows["01/harder"], r"★★☆\s*15 min\s*Fails\. Expected: at most 3 calls &amp; &lt;no")
        self.assertRegex(rows["02/easy"], "Begun")
        self.assertRegex(rows["02/last"], r"Not begun\s*$")
        self.assertIn("1 of 4 are done.", page)
        self.assertIn("<h2>Chapter 1: iterative, 1 of 2 done</h2>", page)
        self.assertIn("<h2>Chapter 2: forking, 0 of 2 done</h2>", page)

    def test_a_lesson_is_told_when_it_is_learned(self):
        page, _ = self.page()
        self.assertNotIn("A deadline", page)
        self.begin(self.last)
        self.last.mark_done()
        page, _ = self.page()
        self.assertEqual(page.count(LESSON), 1)
        self.assertNotIn("It is set once", page)

    def test_the_next_one_comes_first_with_its_link_and_its_command(self):
        page, _ = self.page()
        after = page.partition("<h2>Next</h2>")[2]
        self.assertRegex(after, r'\A\s*<p><a href="../01_iterative/exercises/first.md">A &lt;first&gt; one</a>'
                                r'[^\n]*<code>make exercise EX=01/first</code>')
        for each in self.known:
            self.begin(each)
            each.mark_done()
        page, _ = self.page()
        self.assertNotIn("<h2>Next", page)

    def test_a_task_is_read_in_the_book_if_there_is_one(self):
        self.write("build/book/02_forking/exercises/last.html", "")
        links = [each.get("href") for each in parsed(self.page()[0]).iter("a")]
        self.assertIn("book/02_forking/exercises/last.html", links)
        self.assertIn("../02_forking/exercises/easy.md", links)
        for link in links:
            self.assertTrue(os.path.exists(os.path.join(self.top, "build", link)), link)

    def test_it_is_one_file_and_in_order(self):
        look_at(self, self.page()[0])


class Class(unittest.TestCase):
    def setUp(self):
        self.known = [exercises.Exercise(*each) for each in KNOWN]
        work = [HandedIn("anna <b>", {"01/first": b"", "02/last": b""}, []),
                HandedIn("ben?", {"01/first": b""}, ["it has no exercise, only <x>"]),
                HandedIn("carl", {}, [])]
        results = {("anna <b>", "01/first"): {"outcome": "passed", "held": 3, "of": 3},
                   ("anna <b>", "02/last"): {"outcome": "does not compile"},
                   ("ben?", "01/first"): {"outcome": "not yet", "held": 2, "of": 3}}
        self.page = pages.of_class(self.known, work, results,
                                   lambda student, key: "collected/%s/%s.log" % (student, key[3:]))
        self.rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)
                     for row in re.findall(r"<tr>(.*?)</tr>", self.page)]

    def test_students_by_exercises_with_totals(self):
        words = [[re.sub("<.*?>", "", cell) for cell in row] for row in self.rows]
        self.assertEqual(words, [["student", "01/first", "02/last", "passed"],
                                 ["anna &lt;b&gt;", "✓", "C", "1 of 2"],
                                 ["ben?", "✗ 2/3", "–", "0 of 1"],
                                 ["carl", "–", "–", "0 of 0"],
                                 ["passed", "1", "0", "1 of 3"]])

    def test_a_mark_leads_to_what_the_check_said_and_says_what_it_means(self):
        self.assertIn('href="collected/anna%20%3Cb%3E/last.log"', self.rows[1][2])
        self.assertIn('href="collected/ben%3F/first.log"', self.rows[2][1])
        self.assertIn('aria-label="does not compile"', self.rows[1][2])
        self.assertIn('aria-label="not yet, 2 of 3"', self.rows[2][1])
        self.assertIn("C does not compile", self.page)

    def test_what_was_not_understood_is_told(self):
        self.assertIn("<li>ben?: it has no exercise, only &lt;x&gt;</li>", self.page)

    def test_it_is_one_file_and_in_order(self):
        look_at(self, self.page)

    def test_nothing_handed_in_is_a_table_too(self):
        look_at(self, pages.of_class(self.known, [HandedIn("carl", {}, ["empty"])], {}, None))


def parsed(page):
    """Its root. Everything that is opened is closed."""
    return ElementTree.fromstring(page.replace("<br>", "<br/>"))


def look_at(case, page):
    """What both pages are held to, without a browser."""
    tags = [each.tag for each in parsed(page).iter()]
    case.assertEqual(re.findall(r"url\(|@import|<(?:img|script|iframe)", page), [])
    case.assertFalse({"b", "x", "first"} & set(tags))
    levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    case.assertEqual(levels, [1] + [2] * (len(levels) - 1))
    case.assertEqual(re.findall(r"<th(?! scope=)[^>e]*>", page), [])


class Browser(Place):
    """Chromium shows them, on a phone and on a desk."""

    def test_both_fit_a_phone(self):
        known = exercises.every()
        work = [HandedIn(name, {each.key: b"" for each in known[number::2]}, ["a note"])
                for number, name in enumerate(("anna", "ben", "a student with a long name"))]
        results = {(one.student, key): {"outcome": (*pages.MARKS, "passed")[number % 7], "held": 7, "of": 9}
                   for one in work for number, key in enumerate(one.sources)}
        for each in self.known[:3]:
            self.begin(each)
        self.first.mark_done()
        self.harder.mark_missed(MISSED + " y" * 99)
        self.show("exercises", pages.of_learner(self.known, self.top))
        self.show("collected", pages.of_class(known, work, results, lambda *names: "/".join(names)))

    def show(self, name, text):
        path = Path(self.top, name + ".html")
        path.write_text(text, encoding="utf-8")
        page = browser.open_page(self, path.as_uri())
        self.assertEqual(page.errors(), [])
        browser.look_at(self, page, name)
