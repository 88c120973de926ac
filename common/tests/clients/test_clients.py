"""Real clients against each of the seven servers; a test's name is test_clients.poll.test_chromium_...
And the wall, against all of them at once: test_clients.wall.test_...; and the model's page.
A client that is not installed is skipped."""

import case
from browser import Browser
from explore import Explore
from markup import Markup
from proxy import Proxy
from status import Status
from wall import Wall
from wire import Wire
import top

CLIENTS = (Browser, Markup, Proxy, Status, Wire)


def setUpModule():
    case.set_up()


def load_tests(loader, _tests, _pattern):
    """Makes the seven classes, and one for all seven. The clients' own, which name no server, are
    no tests."""
    classes = [type(name, CLIENTS, {"server_name": name}) for name in top.NAMES]
    classes.append(type("wall", (Wall,), {}))
    classes.append(type("explore", (Explore,), {}))
    return loader.suiteClass(map(loader.loadTestsFromTestCase, classes))
