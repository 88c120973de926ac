#!/usr/bin/python3
"""asyncio: the guestbook's page with aiohttp and redis.asyncio. One thread runs all of this. At each
`await` it turns to another client.

    guestbook_asyncio.py --port N --redis HOST:PORT       started where templates/ is
"""

import argparse
import html
import os
import re
import time

import redis.asyncio
from aiohttp import web

# The project's template is written in Mustache: a comment, a section with a name, or a name alone.
TAG = re.compile(r"\{\{(?:!.*?|#(\w+)\}\}(.*?)\{\{/\1|(\w+))\}\}", re.DOTALL)

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--redis", required=True)
options = parser.parse_args()
store = redis.asyncio.Redis.from_url("redis://" + options.redis, decode_responses=True)
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


async def guestbook(_request):
    await store.incr("guestbook:visitors")
    visitors = await store.get("guestbook:visitors")
    found = await store.lrange("guestbook:entries", -21, -1)  # the last one is the newest
    compute()
    page = render(template, {
        "server": "asyncio", "page": "1", "counted": [{}], "visitors": f"{int(visitors):,}",
        "entries": [shown(entry) for entry in reversed(found[-20:])], "nobody": [{}] * (not found),
        "older": [{}] * (len(found) > 20), "older_page": "2"})
    return web.Response(text=page, content_type="text/html")


app = web.Application()
app.add_routes([web.get("/guestbook", guestbook)])
web.run_app(app, host="127.0.0.1", port=options.port, backlog=1024, access_log=None, print=None)
