"""gunicorn: the guestbook's page as a WSGI application, with redis-py. gunicorn decides who runs it:
processes, each with one client at a time (sync), or processes with a few threads each (gthread).

    REDIS_URL=redis://HOST:PORT gunicorn --bind 127.0.0.1:N --workers 5 guestbook_wsgi:app
    REDIS_URL=redis://HOST:PORT gunicorn --bind 127.0.0.1:N --workers 2 --threads 5 guestbook_wsgi:app

Started where templates/ is, with --pythonpath and this folder.
"""

import html
import os
import re
import time

import redis

# The project's template is written in Mustache: a comment, a section with a name, or a name alone.
TAG = re.compile(r"\{\{(?:!.*?|#(\w+)\}\}(.*?)\{\{/\1|(\w+))\}\}", re.DOTALL)

# A pool: each thread that asks takes a connection out of it, and puts it back.
store = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
with open("templates/guestbook/index.html", encoding="utf-8") as file:
    template = file.read()


def render(text, values):
    return TAG.sub(lambda tag: html.escape(values.get(tag[3], "")) if tag[3] else "".join(
        render(tag[2], {**values, **item}) for item in values.get(tag[1], [])), text)


def shown(entry):
    time, name, remarks = entry.split("\n", 2)
    return {"signed": [{}], "time": time, "day": time[:10], "clock": time[11:16], "name": name, "remarks": remarks}


def compute():
    end = time.thread_time_ns() + 1000 * int(os.environ.get("WORK_US", 0))  # as with --work of the seven
    while time.thread_time_ns() < end:
        pass


def guestbook():
    store.incr("guestbook:visitors")
    visitors = store.get("guestbook:visitors")
    found = store.lrange("guestbook:entries", -21, -1)  # the last one is the newest
    compute()
    return render(template, {
        "server": "gunicorn", "page": "1", "counted": [{}], "visitors": f"{int(visitors):,}",
        "entries": [shown(entry) for entry in reversed(found[-20:])], "nobody": [{}] * (not found),
        "older": [{}] * (len(found) > 20), "older_page": "2"})


def app(environ, start_response):
    if environ["PATH_INFO"] != "/guestbook":
        start_response("404 Not Found", [("Content-Length", "0")])
        return []
    page = guestbook().encode()
    start_response("200 OK", [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", str(len(page)))])
    return [page]
