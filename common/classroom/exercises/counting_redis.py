"""counting_redis: a Redis that knows nothing but INCR, and lets a check say who gets a reply when.

    redis = ex.counting_redis()
    redis.hold()             # from here on nobody gets a reply
    server = ex.serve(redis=redis)
    ...
    redis.asking()           # how many connections wait for one
    redis.reply_to_one()     # one of them gets it
    redis.hold_one()         # all get theirs, and will, but one connection
    redis.release()          # all of them
    redis.told               # the numbers in the replies so far

The numbers begin anywhere and leave gaps, as if other servers counted their visitors, too: who has
not asked cannot know them.
"""

import os
import re
import socket
import threading

INCR = re.compile(rb"\*2\r\n\$4\r\nINCR\r\n\$18\r\nguestbook:visitors\r\n", re.IGNORECASE)


class CountingRedis:
    """Made by ex.counting_redis(), and ended with the check."""

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
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        os.chmod(path, 0o777)  # the program may be another user's
        self._listener.listen(128)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)  # close() alone would not end accept()
        self._listener.close()

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
            try:
                connection.sendall(b":%d\r\n" % self._number)
            except OSError:
                pass  # it has gone
        self._owed[connection] = 0

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection):
        came = b""
        with connection:
            while True:
                try:
                    piece = connection.recv(4096)
                except OSError:
                    piece = b""
                if not piece:
                    break
                came += piece
                asked = len(INCR.findall(came))
                came = INCR.split(came)[-1]
                if asked:
                    self._ask(connection, asked)
            with self._lock:
                self._owed.pop(connection, None)

    def _ask(self, connection, number):
        with self._lock:
            self.used += connection not in self._owed
            self.asked += number
            self._owed[connection] = self._owed.get(connection, 0) + number
            if not self._holds and connection is not self._one:
                self._reply(connection)
