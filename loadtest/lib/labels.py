"""labels: where the name of a line can stand, so that no key is needed.

All in pixels, from the upper left corner. A box is (left, top, right, bottom).
"""

GAP = 9  # between the end of a line and its name
AROUND = [(dx, dy) for reach in (0, 7, 16) for dx, dy in (
    (1, 0), (1, -11 - reach), (1, 11 + reach), (0, -17 - reach), (0, 17 + reach),
    (-1, -15 - reach), (-1, 15 + reach))]  # to the right, right above, ..., left below


def spread(places, height, top, bottom):
    """Moves the middles of texts apart that stand in one column, as little as need be, in their
    order. None if there is not room for all."""
    if height * len(places) > bottom - top:
        return None
    order = sorted(range(len(places)), key=lambda each: places[each])
    blocks = []  # [sum of what its texts wished, number of texts]; a block stands close together
    for each in order:
        blocks.append([places[each], 1])
        while len(blocks) > 1 and _start(blocks[-1], height, top, bottom) < _end(
                blocks[-2], height, top, bottom):
            wished, count = blocks.pop()
            blocks[-1] = [blocks[-1][0] + wished, blocks[-1][1] + count]
    middles = []
    for block in blocks:
        first = _start(block, height, top, bottom) + height / 2
        middles += [first + height * n for n in range(block[1])]
    return [middles[order.index(each)] for each in range(len(places))]


def _start(block, height, top, bottom):
    wished, count = block
    start = wished / count - height * count / 2
    return min(max(start, top), bottom - height * count)


def _end(block, height, top, bottom):
    return _start(block, height, top, bottom) + height * block[1]


def beside(end, width, height, area, taken, paths):
    """The middle of a text near the end of a line, where it covers no line, no other text and
    nothing outside the area; None if there is no such place.

    `taken` are boxes, `paths` lists of points."""
    x, y = end
    for side, dy in AROUND:
        middle = x + side * (GAP + width / 2), y + dy
        box = (middle[0] - width / 2, middle[1] - height / 2,
               middle[0] + width / 2, middle[1] + height / 2)
        if _inside(box, area) and not any(_overlap(box, other) for other in taken) \
                and not any(crosses(path, box) for path in paths):
            return middle
    return None


def _inside(box, area):
    return box[0] >= area[0] and box[1] >= area[1] and box[2] <= area[2] and box[3] <= area[3]


def _overlap(one, other):
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def crosses(path, box):
    """Does a line through these points touch the box?"""
    return any(_segment_touches(a, b, box) for a, b in zip(path, path[1:] or path))


def _segment_touches(a, b, box):
    """Liang and Barsky: what is left of the segment when each side of the box has cut it."""
    low, high = 0.0, 1.0
    for axis in (0, 1):
        start, way = a[axis], b[axis] - a[axis]
        if way == 0:
            if not box[axis] <= start <= box[axis + 2]:
                return False
            continue
        cuts = sorted(((box[axis] - start) / way, (box[axis + 2] - start) / way))
        low, high = max(low, cuts[0]), min(high, cuts[1])
    return low <= high
