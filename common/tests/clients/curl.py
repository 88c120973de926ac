"""curl, in both versions of HTTP."""

import os
import re

from case import Case, public

FORM = "guest-name=%s&guest-remarks=%s"


class Curl(Case):
    def curl(self, *arguments, **options):
        """What curl printed, of which --write-out's part is the last line."""
        return self.run_client("curl", "-sS", *arguments, **options)[0]

    def test_curl_gets_two_files_over_one_connection(self):
        out = self.curl("--http1.1", "-w", "%{http_code} %{num_connects} ", "-o", "page",
                        self.url("/"), "-o", "image", self.url("/tux.png"))
        self.assertEqual(out, "200 1 200 0 ")
        self.assert_same_file(self.place("page"), "index.html")
        self.assert_same_file(self.place("image"), "tux.png")

    def test_curl_keeps_a_connection_over_http_1_0_if_it_asks_to(self):
        out = self.curl("--http1.0", "-H", "Connection: keep-alive", "-w", "%{num_connects} ",
                        "-o", "page", self.url("/"), "-o", "image", self.url("/tux.png"))
        self.assertEqual(out, "1 0 ")

    def test_curl_posts_a_form_in_chunks(self):
        form = FORM % ("In+chunks", "Nobody+said+how+many.")
        out = self.curl("--http1.1", "-H", "Transfer-Encoding: chunked", "--data-binary", "@-",
                        "-w", "%{http_code}", self.url("/guestbook"), said=form.encode())
        self.assertEqual(out, "303")
        self.assertEqual(self.newest_entry(), ["In chunks", "Nobody said how many."])

    def test_curl_posts_a_form_and_follows_to_the_page(self):
        out = self.curl("-L", "-d", FORM % ("Follower", "Where+do+you+lead+me%3F"), "-w",
                        "\n%{http_code} %{num_redirects} %{num_connects}", self.url("/guestbook"))
        page, figures = out.rsplit("\n", 1)
        self.assertEqual(figures, "200 1 1")
        self.assertIn("Where do you lead me?", page)

    def test_curl_expects_100_continue_and_gets_it(self):
        form = FORM % ("Careful", "x" * 1000)
        _, err = self.run_client("curl", "-sSv", "--http1.1", "-H", "Expect: 100-continue",
                                 "--expect100-timeout", "20", "--data-binary", "@-",
                                 self.url("/guestbook"), said=form.encode())
        statuses = [line.split()[2] for line in err.splitlines() if line.startswith("< HTTP/1.1")]
        self.assertEqual(statuses, ["100", "303"])
        self.assertEqual(self.newest_entry(), ["Careful", "x" * 1000])

    def test_curl_is_refused_before_it_sends_a_body_too_large(self):
        before = self.entries()
        out = self.curl("--http1.1", "-H", "Expect: 100-continue", "--expect100-timeout", "20",
                        "--data-binary", "@-", "-o", "page", "-w", "%{http_code} %{size_upload}",
                        self.url("/guestbook"), said=b"x" * 100000)
        self.assertEqual(out, "413 0")
        self.assertEqual(self.entries(), before)

    def test_curl_resumes_a_download(self):
        self.begin_download("tux.png", 20000)
        out = self.curl("-C", "-", "-o", "tux.png", "-w", "%{http_code} %{size_download}",
                        self.url("/tux.png"))
        self.assertEqual(out, "206 %d" % (os.path.getsize(public("tux.png")) - 20000))
        self.assert_same_file(self.place("tux.png"), "tux.png")

    def test_curl_gets_a_file_only_if_it_is_newer(self):
        status = ("-o", "file", "-w", "%{http_code} %{size_download}", self.url("/style.css"))
        self.assertEqual(self.curl("-z", public("style.css"), *status), "304 0")
        self.assertEqual(self.curl("-z", "Thu, 01 Jan 1970 00:00:01 GMT", *status),
                         "200 %d" % os.path.getsize(public("style.css")))

    def test_curl_gets_a_file_only_if_its_entity_tag_is_another(self):
        status = ("-o", "file", "-w", "%{http_code}", self.url("/style.css"))
        self.assertEqual(self.curl("--etag-save", "tag", *status), "200")
        self.assertEqual(self.curl("--etag-compare", "tag", *status), "304")

    def test_curl_asks_for_heads_alone_and_keeps_the_connection(self):
        out = self.curl("--http1.1", "-I", "-w", "new: %{num_connects}, got: %{size_download}\n",
                        self.url("/tux.png"), self.url("/guestbook"))
        self.assertEqual(re.findall(r"new: .*", out), ["new: 1, got: 0", "new: 0, got: 0"])
        self.assertIn("Content-Length: %d\r\n" % os.path.getsize(public("tux.png")), out)
        self.assertIn("Content-Type: image/png\r\n", out)
