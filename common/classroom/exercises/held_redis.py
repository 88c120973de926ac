"""held_redis: a Redis that keeps the guestbook waiting for as long as a check wants.

    redis = ex.redis()
    redis.hold()         # from here on nobody gets an answer to INCR, which begins every page
    server = ex.serve(redis=redis)
    ...
    redis.held()         # how many connections wait for one
    redis.release()
    redis.counts().incr  # how often it was asked, so far

A program under test may use it, but not govern it (an ACL, of Redis 6): it cannot let itself have the answers that are
being held. Nor can it find the password, which no command line has.
"""

import hashlib
import os
import re
import secrets

from lib.measuring import machine
from lib.subjects import redis
from outcome import Skipped

LONG_MS = "3600000"


class HeldRedis(redis.Redis):
    def __init__(self, where):
        super().__init__(where)
        password = secrets.token_hex()
        self._environment = {**os.environ, "REDISCLI_AUTH": password}
        hashed = "#" + hashlib.sha256(password.encode()).hexdigest()
        if machine.output_of([*self._cli, "ACL", "SETUSER", "check", "on", hashed, "~*", "+@all"]) == "OK":
            self._cli += ["--user", "check"]
            self.ask("ACL", "SETUSER", "default", "-@admin", "-@dangerous", "+info")
        else:
            self._environment = None

    def ask(self, *words):
        return machine.output_of([*self._cli, *words], environment=self._environment)

    def hold(self):
        """CLIENT PAUSE of Redis 6.2: commands that write get no answer; GET and LRANGE do."""
        if self.ask("CLIENT", "PAUSE", LONG_MS, "WRITE") != "OK":
            raise Skipped("this check needs Redis 6.2 or later, and here is %s" % self.version())

    def release(self):
        """Gives the answers that are being held, and holds no more."""
        self.ask("CLIENT", "UNPAUSE")

    def held(self):
        return sum(bool(re.search(r" flags=\w*b", line)) for line in self._clients())

    def connections(self):
        """How many are open, without the one that asks."""
        return len(self._clients()) - 1

    def hang_up(self):
        """Ends all connections, as a Redis does that is started again."""
        self.ask("CLIENT", "KILL", "TYPE", "normal")

    def _clients(self):
        return self.ask("CLIENT", "LIST").splitlines()
