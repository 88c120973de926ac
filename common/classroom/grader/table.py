"""table: which test counts in which section, and what to read when it fails.

One line for each file of the suite, or for a case that belongs elsewhere than its file does. A
test holds that no file is forgotten and that every heading is there.
"""

import glob
import os
import re
from collections import namedtuple

from places import CHAPTERS, MODELS, TESTS

Section = namedtuple("Section", "key name points seconds")  # seconds: its time limit
SECTIONS = [
    Section("works", "it works", 20, 120),
    Section("http", "HTTP", 25, 120),
    Section("model", "is it this model", 25, 60),
    Section("weather", "weather", 20, 150),
    Section("cost", "cost", 10, 90),
]

Place = namedtuple("Place", "section file heading")  # OWN: the chapter of the model itself
OWN = "OWN"
SHARED = "common/README.md"

STATUS = "servers/status.c"  # for a server that has one

FILES = {
    "servers/guestbook.c": Place("works", SHARED, "`guestbook`: a small machine of five steps"),
    "servers/files.c": Place("works", SHARED, "`template` and `files`: what is sent"),
    "servers/options.c": Place("works", SHARED, "`net`, `redis`, `board`, `children`"),
    "servers/process.c": Place("works", OWN, "The code"),
    STATUS: Place("works", SHARED, "`net`, `redis`, `board`, `children`"),
    "servers/modest.c": Place("works", SHARED, "`template` and `files`: what is sent"),
    "servers/http.c": Place("http", SHARED, "`http`: bytes become a request"),
    "servers/wire.c": Place("http", SHARED, "`http`: bytes become a request"),
    "servers/special_files.c": Place("http", SHARED, "`template` and `files`: what is sent"),
    "servers/entries.c": Place("http", SHARED, "`guestbook`: a small machine of five steps"),
    "servers/clients.c": Place("weather", SHARED, "Blocking lives in the socket"),
    "servers/deadlines.c": Place("weather", SHARED, "Deadlines"),
    "servers/faults.c": Place("weather", OWN, "Where it breaks"),
    "servers/polite.c": Place("weather", "03_preforking/README.md", "Where it breaks"),
    "servers/redis.c": Place("weather", SHARED, "The box, opened once"),
    "servers/standin.c": Place("weather", SHARED, "Redis without waiting: `redis_async`"),
    "servers/under_way.c": Place("weather", SHARED, "Lingering"),
    "weather/descriptors.c": Place("weather", OWN, "Where it breaks"),
    "weather/memory.c": Place("cost", OWN, "Predict, then measure"),
    "weather/redis.c": Place("weather", SHARED, "The box, opened once"),
    "weather/stops.c": Place("weather", OWN, "The code"),
}

CASES = {
    "three_hundred_requests_leave_no_descriptor_behind": Place("cost", OWN, "The code"),
    "a_server_without_anything_to_do_sleeps": Place("cost", SHARED, "Deadlines"),
    "a_body_that_is_too_large_is_refused_without_a_reset": Place("http", SHARED, "Lingering"),
    "a_refused_client_that_goes_on_is_listened_to_for_its_time_and_no_longer":
        Place("weather", SHARED, "Lingering"),
}

CALLS = Place("cost", OWN, "Predict, then measure")  # of the system calls, which apart.py counts

LOAD = "it loads the machine, and judges by speed"
EXTRA = "a server need not have --status or --user"
LEFT_OUT_FILES = {"weather/polite.c": LOAD}
LEFT_OUT = {
    "the_status_is_for_local_clients_or_for_all": EXTRA,
    "with_status_all_clients_from_elsewhere_may_see_it": EXTRA,
    "it_becomes_the_user_that_it_is_told_before_its_first_client": EXTRA,
    "a_user_whom_it_cannot_become_ends_it": EXTRA,
    "it_says_that_it_is_roots_if_other_machines_can_reach_it": EXTRA,
    "all_seven_give_the_same_answers_field_by_field": "it compares all seven with each other",
    "twenty_thousand_requests_of_all_kinds_leave_nothing_behind": LOAD,
    "twenty_stops_under_wrk_and_ab_truncate_no_response": LOAD,
    "twenty_restarts_under_load_never_find_the_port_taken": LOAD,
    "ten_thousand_requests_leave_no_child_and_no_descriptor": LOAD,
    "a_worker_killed_under_load_costs_one_client_and_is_replaced_in_a_second": LOAD,
    "a_parent_killed_under_load_leaves_no_worker_and_a_free_port": LOAD,
    "a_post_answered_303_is_stored_once_and_any_other_at_most_once": LOAD,
    "a_second_after_a_restart_of_redis_every_page_is_there": LOAD,
    "a_page_of_a_million_entries_is_there_in_50_ms_and_takes_no_more_memory": LOAD,
}

CASE = re.compile(r"^(EVERY_SERVER|CONCURRENT_SERVERS|BLOCKING_SERVERS|ONLY_SERVER|AGAINST|RULE)"
                  r"\((?:(\w+), )?(\w+)\)", re.MULTILINE)


def suite_files():
    """The suite's sources, except for the crowds, which fill a machine: PROGRAM/NAME.c, in order."""
    return sorted(os.path.relpath(path, TESTS) for program in ("servers", "weather")
                  for path in glob.glob(os.path.join(TESTS, program, "*.c")))


def cases_in(text):
    """(case, models) of one source."""
    every = {"EVERY_SERVER": MODELS, "CONCURRENT_SERVERS": MODELS[1:],
             "BLOCKING_SERVERS": MODELS[:5], "RULE": MODELS}
    found = {}
    for macro, model, name in CASE.findall(text):
        name = "rule_%s_holds" % name if macro == "RULE" else name
        found.setdefault(name, []).extend(every.get(macro, [model]))
    return found


def all_cases(model):
    """{case: its file} of all that the suite asks of a model."""
    cases = {}
    for name in suite_files():
        with open(os.path.join(TESTS, name), encoding="utf-8") as file:
            cases.update({case: name for case, models in cases_in(file.read()).items()
                          if model in models})
    return cases


def counted(model):
    """{case: (its file, its Place)} of what counts."""
    return {case: (name, CASES.get(case) or FILES[name]) for case, name in all_cases(model).items()
            if case not in LEFT_OUT and name not in LEFT_OUT_FILES}


def pointer(place, model):
    """As in "common/README.md: Deadlines"."""
    file = CHAPTERS[model] + "/README.md" if place.file == OWN else place.file
    return "%s: %s" % (file, place.heading)
