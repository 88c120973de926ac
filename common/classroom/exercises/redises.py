"""redises: two kinds of Redis that answer when a check lets them.

HeldRedis keeps the guestbook waiting for as long as a check wants:

    redis = ex.redis()
    redis.hold()         # from here on nobody gets an answer to INCR, which begins every page
    server = ex.serve(redis=redis)
    ...
    redis.held()         # how many connections wait for one
    redis.release()
    redis.asked()        # how often it was asked for a page, so far

A program under test may use it, but not govern it (an ACL, of Redis 6): it cannot let itself have the answers that are
being held. Nor can it find the password, which no command line has.

CountingRedis knows nothing but INCR, and lets a check say who gets a reply when:

    redis = ex.counting_redis()
    redis.hold()
    ...
    redis.asking()           # how many connections wait for a reply
    redis.reply_to_one()     # one of them gets it
    redis.hold_one()         # all get theirs, and will, but one connection
    redis.release()          # all of them
    redis.told               # the numbers in the replies so far

The numbers begin anywhere and leave gaps, as if other servers counted their visitors, too: who has
not asked cannot know them.
"""

import contextlib
import hashlib
import os
import re
import secrets
import socketserver
import threading

import redis
from waiting import Skipped

LONG_MS = "3600000"
ASKED = b"guestbook:visitors\r\n"  # the last line of an INCR


class HeldRedis(redis.Redis):
    def __init__(self, where):
        super().__init__(where)
        password = secrets.token_hex()
        hashed = "#" + hashlib.sha256(password.encode()).hexdigest()
        if self.ask("ACL", "SETUSER", "check", "on", hashed, "~*", "+@all") == "OK":
            self.environment = {**os.environ, "REDISCLI_AUTH": password}
            self._cli += ["--user", "check"]
            self.ask("ACL", "SETUSER", "default", "-@admin", "-@dangerous", "+info")

    def hold(self):
        """CLIENT PAUSE of Redis 6.2: commands that write get no answer; GET and LRANGE do."""
        if self.ask("CLIENT", "PAUSE", LONG_MS, "WRITE") != "OK":
            raise Skipped("this check needs Redis 6.2 or later, and here is %s" % self.version())

    def release(self):
        """Gives the answers that are being held, and holds no more."""
        self.ask("CLIENT", "UNPAUSE")

    def held(self):
        return sum(bool(re.search(r" flags=\w*b", line)) for line in self.ask("CLIENT", "LIST").splitlines())

    def asked(self):
        """How often it was asked for a page so far."""
        asked = self.commands()
        return asked.get("incr", 0) + asked.get("incrby", 0)

    def hang_up(self):
        """Ends all connections, as a Redis does that is started again."""
        self.ask("CLIENT", "KILL", "TYPE", "normal")


class CountingRedis(socketserver.ThreadingUnixStreamServer):
    """Made by ex.counting_redis(), and ended with the check."""

    daemon_threads, block_on_close, request_queue_size = True, False, 128

    def __init__(self, folder, chance):
        path = os.path.join(folder, "counting.sock")
        self.where = "unix:" + path
        self.told = []
        self.asked = 0  # how often it was
        self.used = 0  # how many connections have asked anything
        self._chance = chance
        self._number = chance.randrange(1000, 1000000)
        self._holds = False
        self._one = None  # the connection that is held when the others are not
        self._owed = {}  # a connection that has asked, and is open: how many replies
        self._lock = threading.RLock()
        super().__init__(path, None)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()

    def hold(self):
        with self._lock:
            self._holds, self._one = True, None

    def release(self):
        self._release_but(None)

    def hold_one(self):
        self._release_but(next(self._waiting(), None))

    def reply_to_one(self):
        with self._lock:
            for connection in list(self._waiting())[:1]:
                self._reply(connection)

    def asking(self):
        with self._lock:
            return len(list(self._waiting()))

    def connections(self):
        """How many of those that have asked anything are open."""
        return len(self._owed)

    # ---- its side ------------------------------------------------------------------------

    def _waiting(self):
        return (connection for connection, owed in self._owed.items() if owed)

    def _release_but(self, one):
        with self._lock:
            self._holds, self._one = False, one
            for connection in list(self._waiting()):
                if connection is not one:
                    self._reply(connection)

    def _reply(self, connection):
        for _ in range(self._owed[connection]):
            self._number += self._chance.randint(1, 5)
            self.told.append(self._number)
            with contextlib.suppress(OSError):  # it has gone
                connection.sendall(b":%d\r\n" % self._number)
        self._owed[connection] = 0

    def finish_request(self, connection, _address):
        """In a thread of this connection, until it ends."""
        with contextlib.suppress(OSError), connection.makefile("rb") as lines:
            for line in lines:
                if line == ASKED:
                    self._ask(connection)
        with self._lock:
            self._owed.pop(connection, None)

    def _ask(self, connection):
        with self._lock:
            self.used += connection not in self._owed
            self.asked += 1
            self._owed[connection] = self._owed.get(connection, 0) + 1
            if not self._holds and connection is not self._one:
                self._reply(connection)
