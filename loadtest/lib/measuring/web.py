"""web: a well-formed exchange with a server, by http.client."""

import contextlib
import http.client
import os
from urllib.parse import urlsplit

from lib import Trouble
from top import TOP

PATIENCE_SECONDS = 10


@contextlib.contextmanager
def connected(url, path):
    """A connection to a server, for the time of a `with`. An error on it becomes Trouble, with the
    path that was asked for."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_SECONDS)
    try:
        yield connection
    except (OSError, http.client.HTTPException) as error:
        raise Trouble("it does not answer for %s: %s" % (path, error)) from error
    finally:
        connection.close()


def fetch(url, path):
    """Status and body of one response, over a connection of its own."""
    with connected(url, path) as connection:
        connection.request("GET", path, headers={"Connection": "close"})
        answer = connection.getresponse()
        return answer.status, answer.read()


def file_of(path):
    """All serve this project's public/."""
    return os.path.join(TOP, "public", path.lstrip("/"))
