"""wget: one file, the rest of a file, and a page with all it links to."""

import os

from case import Case, public


class Wget(Case):
    def wget(self, *arguments):
        self.run_client("wget", "--tries=1", *arguments)

    def test_wget_resumes_a_download(self):
        self.begin_download("large.bin", 3000000)
        self.wget("--continue", self.url("/large.bin"))
        self.assert_same_file(self.place("large.bin"), "large.bin")

    def test_wget_resumes_nothing_when_it_has_all(self):
        self.begin_download("tux.png", os.path.getsize(public("tux.png")))
        self.wget("--continue", self.url("/tux.png"))
        self.assert_same_file(self.place("tux.png"), "tux.png")

    def test_wget_keeps_the_time_of_a_file(self):
        self.wget("--timestamping", self.url("/style.css"))
        self.assertEqual(int(os.path.getmtime(self.place("style.css"))),
                         int(os.path.getmtime(public("style.css"))))

    def test_wget_fetches_a_page_with_all_it_links_to(self):
        self.wget("--recursive", "--level=1", "--no-host-directories",
                  "--exclude-directories=/book",  # which make book puts there
                  self.url("/"))
        for name in ("index.html", "style.css", "server.js", "tux.svg", "favicon.svg"):
            self.assert_same_file(self.place(name), name)
        self.assertTrue(os.path.exists(self.place("guestbook")))
