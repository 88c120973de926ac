"""stand_in: a Redis that behaves as a check tells it to, badly too.

It knows what the guestbook asks: INCR, GET, LRANGE, RPUSH and LTRIM. Each command has a manner,
ANSWER unless it was told another one, and keeps it until it is told again:

    redis = ex.stand_in()
    redis.manner("INCR", stand_in.HOLD)     # the answer waits for redis.release()
    redis.manner("GET", stand_in.SILENCE)   # there is none, and the connection stays
    redis.manner("LRANGE", stand_in.CLOSE)  # the connection ends instead
    redis.manner("RPUSH", b"+what?\\r\\n")    # these bytes instead
    server = ex.serve(redis=redis)
    ...
    redis.asked()                           # ["INCR guestbook:visitors"], of all connections
"""

import socket
import threading

ANSWER, HOLD, SILENCE, CLOSE = "answer", "hold", "silence", "close"


class StandIn:
    """For the time of a `with`, on a port of its own; a thread for each connection."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.where = "127.0.0.1:%d" % self._listener.getsockname()[1]
        self._lock = threading.Condition()  # of all below
        self._manners = {}
        self._asked = []
        self._held = 0  # commands whose answers wait
        self._released = 0  # how often release() was called
        self._open = set()  # connections
        self._visitors = 0
        self._entries = []

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exception):
        self.release()
        with self._lock:
            self._manners.clear()
            ending = [self._listener, *self._open]
        for each in ending:
            shut(each)
        self._listener.close()

    # ---- for the check -------------------------------------------------------------------

    def manner(self, command, manner):
        """How it behaves from now on when it is asked that; "*": whatever it is asked."""
        with self._lock:
            if command == "*":
                self._manners.clear()
            self._manners[command] = manner

    def release(self):
        """Gives the answers that are being held. Later ones are held again."""
        with self._lock:
            self._released += 1
            self._lock.notify_all()

    def held(self):
        """How many commands wait for release()."""
        with self._lock:
            return self._held

    def asked(self):
        """All commands so far, in the order they came."""
        with self._lock:
            return list(self._asked)

    def connections(self):
        """How many are open."""
        with self._lock:
            return len(self._open)

    def hang_up(self):
        """Ends all connections, as a Redis does that is started again."""
        with self._lock:
            ending = list(self._open)
        for each in ending:
            shut(each)

    # ---- its threads ---------------------------------------------------------------------

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # the check is over
            with self._lock:
                self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            with connection.makefile("rb") as stream:
                words = read_command(stream)
                while words and self._answer(connection, words):
                    words = read_command(stream)
        except (OSError, ValueError):
            pass  # who asks is gone, or speaks another language
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _answer(self, connection, words):
        """As it was told. False: the connection is to end."""
        name = words[0].upper()
        with self._lock:
            self._asked.append(" ".join(words))
            manner = self._manners.get(name, self._manners.get("*", ANSWER))
            if manner == HOLD:
                self._wait_for_release()
        if manner == CLOSE:
            return False
        if isinstance(manner, bytes):
            connection.sendall(manner)
        elif manner != SILENCE:
            connection.sendall(self._reply(name, words))
        return True

    def _wait_for_release(self):
        before = self._released
        self._held += 1
        self._lock.wait_for(lambda: self._released > before)
        self._held -= 1

    def _reply(self, name, words):
        with self._lock:
            if name == "INCR":
                self._visitors += 1
                return b":%d\r\n" % self._visitors
            if name == "GET":
                return bulk(str(self._visitors))
            if name == "LRANGE":
                return b"*%d\r\n" % len(self._entries) + b"".join(map(bulk, self._entries))
            if name == "RPUSH":
                self._entries += words[2:]
                return b":%d\r\n" % len(self._entries)
            if name == "LTRIM":  # -N to -1: the newest N
                self._entries = self._entries[int(words[2]):]
                return b"+OK\r\n"
        return b"-ERR unknown command\r\n"


def shut(connection):
    """Wakes whoever sleeps in accept(2) or recv(2) on it; closing alone would not."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it has ended already


def bulk(text):
    bytes = text.encode("utf-8", "surrogateescape")
    return b"$%d\r\n%s\r\n" % (len(bytes), bytes)


def read_command(stream):
    """The words of one command; None at the end. It is an array of bulk strings, as every client
    library sends it."""
    line = stream.readline()
    if not line:
        return None
    if not line.startswith(b"*"):
        raise ValueError(line)
    words = []
    for _ in range(int(line[1:])):
        length = int(stream.readline()[1:])
        words.append(stream.read(length + 2)[:-2].decode("utf-8", "surrogateescape"))
    return words
