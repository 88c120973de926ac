"""chromium: a browser that obeys.

It is driven over the DevTools protocol, whose messages are JSON, each ended by a NUL. With
--remote-debugging-pipe it reads them from descriptor 3 and writes its own to 4; here both are one
socket. Nothing is ever waited for by sleeping: the browser says when a page has loaded.

https://chromedevtools.github.io/devtools-protocol/
"""

import json
import os
import shutil
import socket

from case import ENVIRONMENT, FOLDER, SOON_SECONDS, contents, patience, processes

# Google's own package brings the permission for its sandbox that some systems ask for.
NAMES = ("google-chrome", "chromium", "chromium-browser")
OPTIONS = ("--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--disable-quic",
           "--no-first-run", "--disable-background-networking", "--disable-component-update",
           "--disable-sync", "--disable-breakpad", "--no-proxy-server")
SHELL = 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null'  # from input and output to 3 and 4


def find():
    return next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """One process for all pages. It ends when Python does."""

    def __init__(self, program):
        options = [*OPTIONS, "--user-data-dir=" + os.path.join(FOLDER, "chromium")]
        if os.geteuid() == 0:
            options.append("--no-sandbox")  # it has none for root
        self._log = os.path.join(FOLDER, "chromium.err")
        self._pipe, its_end = socket.socketpair()
        self._pipe.settimeout(2 * patience(SOON_SECONDS))  # until() waits for as long as that
        with its_end, open(self._log, "wb") as log:
            processes.start(["sh", "-c", SHELL, "sh", program, *options], stdin=its_end,
                            stdout=its_end, stderr=log, env=ENVIRONMENT)
        self._unread = b""
        self._calls = 0
        self.events = []  # as they came: dicts with sessionId, method, params

    def call(self, method, session=None, **params):
        """Has it do something, and waits until it has. Returns the result."""
        self._calls += 1
        message = {"id": self._calls, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        self._pipe.sendall(json.dumps(message).encode() + b"\0")
        answer = self.receive()
        while answer.get("id") != self._calls:
            answer = self.receive()
        if "error" in answer:
            raise AssertionError("%s: %s" % (method, answer["error"]))
        return answer["result"]

    def receive(self):
        """Its next message: the answer to a call, or an event, which is kept as well."""
        while b"\0" not in self._unread:
            some = self._pipe.recv(1 << 20)
            if not some:
                raise AssertionError("Chromium ended: " + contents(self._log).decode())
            self._unread += some
        text, self._unread = self._unread.split(b"\0", 1)
        message = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message


class Page:
    """A window with nothing remembered: no cookie, no cache, no connection of another's."""

    def __init__(self, browser):
        self._browser = browser
        self._context = browser.call("Target.createBrowserContext")["browserContextId"]
        target = browser.call("Target.createTarget", url="about:blank",
                              browserContextId=self._context)["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target,
                                     flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(domain + ".enable")

    def close(self):
        self._browser.call("Target.disposeBrowserContext", browserContextId=self._context)

    def _call(self, method, **params):
        return self._browser.call(method, self._session, **params)

    def events(self, method):
        """The details of those since the last open() or click()."""
        return [event["params"] for event in self._browser.events
                if event["method"] == method and event.get("sessionId") == self._session]

    def _until_loaded(self, method, **params):
        self._browser.events.clear()
        self._call(method, **params)
        while not self.events("Page.loadEventFired"):
            self._browser.receive()

    def open(self, url):
        self._until_loaded("Page.navigate", url=url)

    def value(self, script):
        """What a script comes to; of a promise, what it is kept with."""
        result = self._call("Runtime.evaluate", expression=script, awaitPromise=True,
                            returnByValue=True)
        if "exceptionDetails" in result:
            raise AssertionError("%s: %s" % (script, result["exceptionDetails"]))
        return result["result"].get("value")

    def until(self, condition):
        """Waits until a script comes to something true. It looks fifty times a second, so what is
        true for a moment only may be missed. AssertionError if that takes too long."""
        if not self.value("""new Promise(resolve => {
            const end = performance.now() + %d;
            const look = () => {
                if (%s) resolve(true);
                else if (performance.now() > end) resolve(false);
                else setTimeout(look, 20);
            };
            look();
        })""" % (1000 * patience(SOON_SECONDS), condition)):
            raise AssertionError("it never came to be that " + condition)

    def type(self, selector, text):
        self.value("document.querySelector('%s').focus()" % selector)
        self._call("Input.insertText", text=text)

    def click(self, selector):
        """And waits until another page has loaded."""
        self._until_loaded("Runtime.evaluate", expression="document.querySelector('%s').click()" % selector)

    def without_scripts(self):
        self._call("Emulation.setScriptExecutionDisabled", value=True)

    def errors(self):
        """What the console shows in red."""
        return ([event["entry"]["text"] for event in self.events("Log.entryAdded")
                 if event["entry"]["level"] == "error"] +
                [str(event["args"]) for event in self.events("Runtime.consoleAPICalled")
                 if event["type"] in ("error", "assert")] +
                [str(event["exceptionDetails"])
                 for event in self.events("Runtime.exceptionThrown")])

    def resize(self, width, height):
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                   deviceScaleFactor=1, mobile=width < 600)
