"""words: what a check says, as one would say it."""


def how_many(number, one, many=None):
    """ "1 zombie", "2 zombies"; `many` where an s is not enough: "children"."""
    return "%d %s" % (number, one if number == 1 else many or one + "s")
