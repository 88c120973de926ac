"""web: a well-formed exchange with a server, by http.client."""

import contextlib
import http.client
from urllib.parse import urlsplit

from lib import Trouble

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


def fetch(url, path, method="GET"):
    """Status and body of one response, over a connection of its own."""
    with connected(url, path) as connection:
        connection.request(method, path, headers={"Connection": "close"})
        answer = connection.getresponse()
        return answer.status, answer.read()
