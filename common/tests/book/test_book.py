"""The checker itself, on a project of its own with a fault in it: it must name the right line."""

import os
import shutil
import tempfile
import unittest
import unittest.mock

import book
import markdown
import project

FILES = {
    "Makefile": "all: $(BIN)epoll notes\n$(BIN)epoll bare:\n\t@echo $(PARTS)\nPARTS = unit $(EX)\n## help\nhelp:\ndeps-%:\n"
                ".PHONY: all help\n",
    "notes": "",
    "README.md": "# The top\n",
    "07_epoll/main.c": """\
/* An essay. */
int twice(int n)
{
    if (n > 0) {
        n *= 2;

        n += 0;
    }
    return n;
}

int main(void)
{
    return twice(0);
}
""",
    "07_epoll/README.md": "",  # the document that is checked, as a rule
    "07_epoll/exercises/edge.md": "",
    "common/conn.c": "one\ntwo\n",
    "common/tests/run": "echo ${ONLY-}\n",
    "epoll": "#!/bin/sh\necho '  -p, --port N  -w, --workers N'\n",
    "loadtest/compare": "#!/usr/bin/env python3\nprint('[--levels LIST] [--dry-run]')\n",
    "loadtest/hosts": "#!/bin/sh\necho --begun\n",  # takes no options, and would begin
    "loadtest/lib/subjects/redis.py": 'os.environ.get("REDIS")\n',
    "build/old.c": "",
}


class Checker(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        top = tempfile.mkdtemp(prefix="zerohttpd.")
        cls.addClassCleanup(shutil.rmtree, top)
        for path, text in FILES.items():
            os.makedirs(os.path.dirname(os.path.join(top, path)), exist_ok=True)
            with open(os.path.join(top, path), "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(os.path.join(top, path), 0o755)
        cls.ours = project.Project(top)

    def faults(self, text, path="07_epoll/README.md"):
        return [(fault.line, fault.what)
                for fault in book.check(markdown.Document(path, text), self.ours)]

    def assert_right(self, *lines):
        self.assertEqual(self.faults("\n".join(lines)), [])

    def assert_wrong(self, line, words, *lines):
        """One fault, on that line, whose text holds these words."""
        faults = self.faults("\n".join(lines))
        self.assertEqual([found for found, _ in faults], [line], faults)
        self.assertIn(words, faults[0][1])


class Quotes(Checker):
    def test_a_block_that_is_in_the_file_is_right(self):
        self.assert_right("Look:", "```c 07_epoll/main.c", "int twice(int n)", "{", "```")

    def test_a_block_may_be_moved_to_the_left(self):
        self.assert_right("```c 07_epoll/main.c", "if (n > 0) {", "    n *= 2;", "", "    n += 0;", "}",
                          "```")

    def test_a_block_in_a_list_is_indented_with_its_fence(self):
        self.assert_right("- so:", "", "  ```c 07_epoll/main.c", "  int twice(int n)", "  {", "  ```")

    def test_lines_moved_unevenly_are_a_fault(self):
        self.assert_wrong(3, "n *= 2;", "```c 07_epoll/main.c", "if (n > 0) {", "  n *= 2;", "```")

    def test_a_line_that_has_changed_is_named(self):
        self.assert_wrong(6, "n *= 3;", "Text.", "", "```c 07_epoll/main.c", "{", "    if (n > 0) {",
                          "        n *= 3;", "", "        n += 0;", "```")

    def test_empty_lines_around_a_part_count(self):
        self.assert_wrong(6, "return 3;", "```c 07_epoll/main.c", "", "int twice(int n)", "...", "",
                          "    return 3;", "```")

    def test_a_line_left_out_without_a_cut_is_a_fault(self):
        self.assert_wrong(3, "return n;", "```c 07_epoll/main.c", "{", "    return n;", "}", "```")

    def test_a_cut_joins_two_parts_in_their_order(self):
        for cut in ("...", "    ...", "    /* ... */", "# ..."):
            self.assert_right("```c 07_epoll/main.c", "int twice(int n)", "{", cut, "    return n;", "}",
                              "```")

    def test_parts_in_the_wrong_order_are_a_fault(self):
        self.assert_wrong(4, "before", "```c 07_epoll/main.c", "int main(void)", "...",
                          "int twice(int n)", "```")

    def test_half_a_line_is_a_fault(self):
        self.assert_wrong(2, "int twice", "```c 07_epoll/main.c", "int twice", "```")

    def test_the_middle_of_a_line_is_a_fault(self):
        self.assert_wrong(2, "twice(0);", "```c 07_epoll/main.c", "twice(0);", "```")

    def test_a_file_that_is_not_there_is_a_fault_of_the_fence(self):
        self.assert_wrong(2, "06_poll/main.c", "", "```c 06_poll/main.c", "int x;", "```")

    def test_what_was_built_is_not_quoted(self):
        self.assert_wrong(1, "build/old.c", "```c build/old.c", "x", "```")

    def test_a_block_that_quotes_nothing_is_a_fault(self):
        self.assert_wrong(1, "nothing", "```c 07_epoll/main.c", "", "...", "```")

    def test_c_without_a_file_is_a_fault_unless_it_is_a_sketch(self):
        self.assert_wrong(1, "sketch", "```c", "int x;", "```")
        self.assert_right("```c sketch", "int x;", "```")

    def test_longer_fences_and_tildes_are_fences(self):
        self.assert_wrong(2, "three", "````text common/conn.c", "three", "````")
        self.assert_wrong(2, "three", "~~~text common/conn.c", "three", "~~~")

    def test_the_last_lines_of_a_file_are_found(self):
        self.assert_right("```text common/conn.c", "one", "two", "```")


class Links(Checker):
    def test_files_folders_and_other_hosts_are_right(self):
        self.assert_right("[a](main.c) ![b](../common/conn.c) [c](../loadtest/) [d](/README.md)",
                          "[e](https://example.com/x) [f]: <mailto:x@example.com>", "[g](..)")

    def test_a_file_that_is_not_there(self):
        self.assert_wrong(3, "mian.c", "# A", "", "See [it](mian.c).")

    def test_a_link_whose_text_goes_over_two_lines(self):
        self.assert_wrong(2, "nothing.md", "See [that", "other](nothing.md).")

    def test_a_picture_in_a_link(self):
        self.assert_wrong(1, "a.svg", "[![A picture](a.svg)](main.c)")

    def test_a_definition_and_html(self):
        self.assert_wrong(1, "gone.md", "[it]: gone.md")
        self.assert_wrong(2, "b.png", "<picture>", '<img src="b.png" alt="">')

    def test_a_link_out_of_the_project(self):
        self.assert_wrong(1, "../../secret", "[x](../../secret)")

    def test_code_holds_no_links(self):
        self.assert_right("`[a](b)`", "", "```text", "[a](b.md)", "```", "<!-- [a](b.md) -->")

    def test_what_is_indented_in_a_list_or_a_paragraph_is_no_code(self):
        self.assert_wrong(3, "b.md", "- a", "", "    [a](b.md)")
        self.assert_wrong(2, "b.md", "a", "    [a](b.md)")

    def test_anchors_are_headings_as_github_names_them(self):
        self.assert_right("# What `poll()` is asked, *always*", "", "# Twice", "", "# Twice", "",
                          "[a](#what-poll-is-asked-always) [b](#twice) [c](#twice-1)",
                          '<a id="here"></a> [d](#here) [e](../README.md#the-top)')

    def test_an_anchor_that_is_not_there(self):
        self.assert_wrong(3, "#twice-1", "# Twice", "", "[b](#twice-1)")
        self.assert_wrong(1, "#bottom", "[e](../README.md#bottom)")

    def test_a_line_of_a_file_is_an_anchor(self):
        self.assert_right("[a](../common/conn.c#L2) [b](../common/conn.c#L1-L2)")
        self.assert_wrong(1, "#L3", "[a](../common/conn.c#L3)")


class Names(Checker):
    def test_what_is_there(self):
        self.assert_right("`main.c` `conn.c` `common/` `common/tests/run` `07_epoll/main.c` `../common`")

    def test_what_is_no_name_of_ours(self):
        self.assert_right("`/proc/PID/task` `/tmp` `text/html` `HTTP/1.1` `requests/s` `poll/*` `I/O`",
                          "`build/x/report.html` `.mine/0N_name/main.c` `0N_name/exercises/`", "`NAME.py` `x/NAME.c`",
                          "`127.0.0.1:6379` `sys/socket.h` `unistd.h` `report.html` `a.b`")

    def test_a_file_that_is_not_there(self):
        self.assert_wrong(2, "nc.h", "Look at", "`nc.h`.")
        self.assert_wrong(1, "common/con.c", "`common/con.c`")
        self.assert_wrong(1, "comon/", "`comon/`")

    def test_a_file_is_no_folder(self):
        self.assert_wrong(1, "main.c/", "`main.c/`")

    def test_words_of_commands(self):
        self.assert_right("`./epoll --port 1`", "", "```sh", "wc -l common/conn.c | ./bare",
                          "cat /other/common/x.c build/x", "```")
        self.assert_wrong(1, "./epol", "`./epol --port 1`")
        self.assert_wrong(3, "common/con.c", "", "```sh", "wc -l common/con.c", "```")
        self.assert_wrong(3, "loadtest/compete", "Then:", "", "    loadtest/compete")

    def test_output_is_no_command(self):
        self.assert_right("```text", "./epol: not found", "```")
        self.assert_wrong(2, "./epol", "```console", "$ ./epol", "./apol: not found", "```")


class Paths(Checker):
    """Those in scripts and sources."""

    def faults(self, text, path="Makefile"):
        return [(fault.line, fault.what) for fault in book.paths(path, text, self.ours)]

    def test_what_is_there(self):
        self.assert_right("common/tests/run: common/*.c", "-Icommon $(OUT)/common/old.o",
                          "the rest is in common/tests/ and loadtest/compare.", 'a("loadtest/lib")')

    def test_what_is_not_there(self):
        self.assert_wrong(2, "common/exercises/list", "all:", "\tcommon/exercises/list")
        self.assert_wrong(1, "common/*.py", "$(wildcard common/*.py)")
        self.assert_wrong(1, "loadtest/run", 'os.path.join(TOP, "loadtest/run")')

    def test_documents_tests_and_results_are_not_read(self):
        read = dict(book.programs(self.ours))
        self.assertEqual({path for path in FILES if not path.endswith(".md")}
                         - {"build/old.c"}, set(read))


class Make(Checker):
    def test_what_there_is(self):
        self.assert_right("`make` `make all` `make epoll && ./epoll` `make -j2 -s all PARTS='unit x'`",
                          "`ONLY='poll/*' make help` `REDIS=here:1 make` `make TARGET`", "",
                          "    make help        # says what", "    make all   builds all")

    def test_a_target_that_is_not_there(self):
        self.assert_wrong(2, "tset", "So:", "`make tset`")
        self.assert_wrong(4, "installl", "", "```sh", "$ make all",
                          "make help && make -s installl   # it", "```")

    def test_the_make_around_has_no_say(self):
        with unittest.mock.patch.dict(os.environ, {"BIN": "build/san/"}):
            self.assertTrue(project.Project(self.ours.top).is_target("epoll"))
            self.assertTrue(project.Project(self.ours.top).is_target("deps-serve"))

    def test_a_file_is_no_target(self):
        self.assert_wrong(1, "notes", "`make notes`")

    def test_an_exercise(self):
        self.assert_right("`make all EX=07/edge` `make all EX=0N/NAME`")
        self.assert_wrong(1, "no exercise 07/egde", "`make all EX=07/egde`")

    def test_a_variable_nobody_reads(self):
        self.assert_wrong(1, "PRATS=", "`make all PRATS=unit`")
        self.assert_wrong(1, "OLNY=", "`OLNY=x make all`")


class Options(Checker):
    def test_what_there_is(self):
        self.assert_right("`./epoll --port 0` `epoll --workers=3` `--levels` `loadtest/compare --dry-run`",
                          "`redis-server --port-x 1` `compare --levels 1`", "",
                          "    taskset -c 0 ./epoll --port 0 | grep --color x")

    def test_an_option_the_program_has_not(self):
        self.assert_wrong(2, "epoll has no option --levels", "", "`./epoll --levels 3`")
        self.assert_wrong(1, "--delay", "`compare --delay 3`")
        self.assert_wrong(3, "--cores", "", "```sh", "taskset -c 0 ./epoll --port 0 \\",
                          "    --cores 3", "```")

    def test_an_option_nobody_has(self):
        self.assert_wrong(1, "--wrokers", "The `--wrokers` option.")
        self.assert_wrong(1, "--begun", "The `--begun` option.")

    def test_a_server_that_is_not_built(self):
        ours = project.Project(self.ours.top, "build/elsewhere")
        with self.assertRaises(project.NotBuilt):
            book.check(markdown.Document("README.md", "`./epoll --port 0`"), ours)


class Counts(Checker):
    def test_a_row_that_counts_lines_is_right_by_a_tenth(self):
        self.assert_right("| a | `wc -l 0*/main.c` | 16 |", "| a | `wc -l */main.c common/*.c` | 16 |")
        self.assert_wrong(2, "there are 15", "", "| a | `wc -l 0*/main.c` | 1,300 |")
        self.assert_wrong(1, "there are 0", "| a | `wc -l common/*.h` | 2 |")

    def test_elsewhere_it_is_a_command(self):
        self.assert_right("`wc -l 0*/main.c` counts 3")


del Checker  # no tests of its own
