"""The pages and the refusals are HTML without an error, by the parser of the HTML standard, html5lib."""

import os
import subprocess
import unittest
import urllib.error
import urllib.request

from case import Case

PYTHON = "/usr/bin/python3"  # Debian's, which finds the packages of Debian
PARSE = ("import html5lib, sys; parser = html5lib.HTMLParser(); parser.parse(sys.stdin.buffer, transport_encoding='utf-8')"
         "; print(*parser.errors, sep='\\n')")
HAS_HTML5LIB = os.path.exists(PYTHON) and subprocess.run([PYTHON, "-c", "import html5lib"], check=False,
                                                         stderr=subprocess.DEVNULL).returncode == 0
TYPED = b"guest-name=%3Cb%3E%26&guest-remarks="  # a name of markup, and no remark
PAGES = (("/", None, 200), ("/guestbook", None, 200), ("/wall.html", None, 200), ("/explore.html", None, 200),
         ("/status/", None, 200), ("/missing", None, 404), ("/guestbook?page=none", None, 400), ("/guestbook", TYPED, 400))


@unittest.skipUnless(HAS_HTML5LIB, "html5lib is not installed")
class Markup(Case):
    def test_every_page_is_html_without_an_error(self):
        for path, typed, status in PAGES:
            with self.subTest(path, typed=typed):
                try:
                    page = urllib.request.urlopen(self.url(path), typed)
                except urllib.error.HTTPError as refused:
                    page = refused
                with page:
                    self.assertEqual(page.status, status)
                    text = page.read()
                self.assertIn(b"<html", text)
                self.assertEqual(subprocess.run([PYTHON, "-c", PARSE], input=text, check=True, stdout=subprocess.PIPE)
                                 .stdout.strip(), b"")
