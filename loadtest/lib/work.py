"""work: did every page cost the same?

A server that skips a call to Redis, asks twice, or answers from a cache would win a comparison
it does not take part in. So after each cell Redis' own statistics are held against the pages
that the load generator received: one INCR, one GET and one LRANGE for each, and a visitor.
"""


def unequal(pages, counts, in_flight=0):
    """What is wrong with the `counts` that `pages` pages have left in Redis, in words; None if
    it is three calls and one visitor a page exactly. A run that ends by the clock leaves requests
    `in_flight`, at most so many, which may have been counted too."""
    if all(0 <= count - pages <= in_flight for count in counts):
        return None
    return "for %s pages Redis counted %s INCR, %s GET, %s LRANGE and %s visitors" % tuple(
        format(number, ",") for number in (pages, *counts))
