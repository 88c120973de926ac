"""work: did every page cost the same?

A server that skips a call to Redis, asks twice, or answers from a cache would do other work than
the servers it is compared with. So after each cell Redis' own statistics are compared with the
pages that the load generator received: one INCR, one GET and one LRANGE for each, and a visitor.
"""


def unequal(pages, counts, in_flight=0):
    """What is wrong with the `counts` that `pages` pages have left in Redis, in words; None if it
    is exactly three calls and one visitor a page. A run that ends by the clock leaves up to
    `in_flight` requests, which may have been counted, too."""
    if all(0 <= count - pages <= in_flight for count in counts):
        return None
    return "for %s pages Redis counted %s INCR, %s GET, %s LRANGE and %s visitors" % tuple(
        format(number, ",") for number in (pages, *counts))
