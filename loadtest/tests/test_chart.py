"""Charts: what stands where, that all of it can be read, and pictures fit for a page."""

import re
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree

import programs
from lib.reporting import chart, gnuplot, scale

SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
LEVELS = [20, 100, 1000]
ACROSS = chart.Axis("clients at once", log=True, ticks=LEVELS)
UP = chart.Axis("requests a second")
LOG = chart.Axis("ms", log=True)


class Scales(unittest.TestCase):
    def test_places_on_a_linear_and_a_logarithmic_axis(self):
        self.assertEqual(scale.Scale(UP, [50]).at(10), 0.2)
        self.assertAlmostEqual(scale.Scale(LOG, [1, 100]).at(10), 0.5)

    def test_a_linear_axis_begins_at_zero_unless_a_figure_is_below(self):
        self.assertEqual(scale.Scale(UP, [2800, 19500]).low, 0)
        self.assertEqual(scale.Scale(UP, [-3.5, 4]).low, -3.5)

    def test_round_ticks(self):
        self.assertEqual(scale.Scale(UP, [20000]).ticks(6), [0, 5000, 10000, 15000, 20000])
        self.assertEqual(scale.Scale(LOG, [5, 200]).ticks(6), [5, 10, 20, 50, 100, 200])
        self.assertEqual(scale.Scale(LOG, [5, 50000]).ticks(6), [10, 100, 1000, 10000])

    def test_numbers_as_people_write_them(self):
        self.assertEqual([scale.number(n) for n in (0, 0.5, 1000, 15000.0, 1e6)],
                         ["0", "0.5", "1,000", "15,000", "1,000,000"])
        self.assertEqual([scale.figure(n) for n in (9.031, 14.26, 31, 12345.6)],
                         ["9.03", "14.3", "31", "12,346"])


class Styles(unittest.TestCase):
    def test_no_two_look_alike_even_in_grey(self):
        looks = list(chart.STYLES.values())
        self.assertEqual(len({look.colour for look in looks}), len(looks))
        self.assertEqual(len({look.point for look in looks}), len(looks))

    def test_another_flavour_or_revision_is_dashed_in_its_colour(self):
        for name in ("nginx:default", "nginx@v1.0"):
            look = chart.style(name, [name])
            self.assertEqual(look.colour, chart.STYLES["nginx"].colour)
            self.assertNotEqual(look.dash, chart.STYLES["nginx"].dash)


class Picture(unittest.TestCase):
    """What is in an SVG. Its XML must be right."""

    def read(self, svg):
        self.root = ElementTree.fromstring(svg)
        self.size = [float(each) for each in self.root.get("viewBox").split()[2:]]
        self.words = [(text.text.strip(), self.place(group), group)
                      for group in self.root.iter(SVG + "g")
                      for text in group.findall(SVG + "text") if text.text.strip()]
        return [text for text, _, _ in self.words]

    def place(self, group):
        return [float(each) for each in re.findall(r"[\d.]+", group.get("transform"))[:2]]

    def markers(self, name):
        """Where those of a series stand, in the order in which they were drawn."""
        look = chart.STYLES[name]
        return [self.place(each) for each in self.root.iter(SVG + "use")
                if each.get("color") == look.colour
                and each.get(LINK).endswith("gpPt%d" % (look.point - 1))]


SERIES = {"epoll": [(20, 14652, 14100, 15020), (100, None), (1000, (18000, 17000, 19000))],
          "forking": [(20, 2900), (100, 2800), (1000, None)]}
SEVEN = {name: [(20, 100 + number), (100, 300, 200, 400), (1000, 250)]
         for number, name in enumerate(list(chart.STYLES)[:7])}


@programs.needs("gnuplot")
class Pictures(Picture):
    def test_it_is_fit_for_a_page(self):
        svg = chart.lines("sweep", "A <title> & 'so' on", ACROSS, UP, SERIES)
        self.read(svg)
        self.assertEqual(self.root.get("role"), "img")
        self.assertEqual([each.text for each in self.root.iter(SVG + "title")],
                         ["A <title> & 'so' on"])
        self.assertIn("epoll, forking", self.root.find(SVG + "desc").text)
        self.assertNotIn("<script", svg)
        self.assertFalse(svg.startswith("<?xml"))

    def test_two_on_a_page_share_no_id_and_refer_to_their_own(self):
        seen = set()
        for name in ("one", "two"):
            self.read(chart.lines(name, "t", ACROSS, UP, SERIES))
            ids = {each.get("id") for each in self.root.iter() if each.get("id")}
            links = {each.get(LINK)[1:] for each in self.root.iter() if each.get(LINK)}
            self.assertFalse(ids & seen)
            self.assertLessEqual(links, ids)
            self.assertTrue(links)
            seen |= ids

    def test_on_a_dark_page_every_colour_has_a_light_one(self):
        svg = chart.lines("x", "t", ACROSS, UP, SEVEN)
        self.read(svg)
        style = self.root.find(SVG + "style").text
        self.assertIn("@media (prefers-color-scheme: dark)", style)
        for rgb in (gnuplot.PAPER, gnuplot.INK, gnuplot.OTHERS, chart.STYLES["threading"].colour):
            self.assertIn("='%s'] {" % rgb, style)
            self.assertRegex(svg, r"""(fill|stroke|color) ?= ?["']%s["']""" % rgb)

    def test_texts_mean_nothing_to_gnuplot(self):
        title = r"it's `touch /tmp/no` \n @x {a_b} %d $1"
        self.assertIn(title, self.read(chart.bars("x", title, UP, {"": {"epoll": 1}})))

    def test_nothing_is_written_outside(self):
        wide = {"a rather long name %d" % n: [(20, n + 1), (1000, 2 * n + 1)] for n in range(4)}
        ticks = chart.Axis("clients", log=True, ticks=[20, 1000000])
        crowd = {"number %d" % n: [(20, 1), (1000000, 123456)] for n in range(30)}
        for svg in (chart.lines("x", "t " * 90, ACROSS, UP, wide),
                    chart.lines("x", "t", ticks, UP, crowd, crowd, "others' figures " * 3),
                    chart.bars("x", "t", UP, {"": {"epoll": 123456789, "a long name of it": 7}}),
                    chart.lines("x", "t", ACROSS, UP, SEVEN, together=True)):
            self.read(svg)
            for text, (x, y), group in self.words:
                size = float(group.get("font-size")) * 0.5 * len(text)
                side = {"start": 0, "middle": 0.5, "end": 1}[group.get("text-anchor")]
                self.assertTrue(0 <= x - side * size and x + (1 - side) * size <= self.size[0], text)
                self.assertTrue(10 <= y <= self.size[1] - 4, text)

    def test_more_is_higher_and_later_is_to_the_right(self):
        levels = [20, 50, 100, 200, 1000]
        rising = [(level, 7 * 9 ** at) for at, level in enumerate(levels)]
        for names in (["epoll"], list(SEVEN)):
            for up in (UP, LOG):
                for across in (LOG, UP, chart.Axis("c", ticks=levels, even=True)):
                    self.read(chart.lines("x", "t", across, up, {name: rising for name in names}))
                    places = self.markers("epoll")
                    self.assertEqual(len(places), 5)
                    self.assertEqual(places, sorted(places, key=lambda place: place[0]))
                    self.assertEqual(places, sorted(places, key=lambda place: -place[1]))

    def test_figures_stand_beside_bars_and_reasons_instead(self):
        texts = self.read(chart.bars("x", "t", UP, {
            "20 clients": {"poll": (19000, 18000, 20000), "epoll": None},
            "500 clients": {"poll": "refused: 12 resets", "epoll": 9.034}}))
        for text in ("20 clients", "19,000", "no figure", "refused: 12 resets", "9.03"):
            self.assertIn(text, texts)

    def test_a_bar_is_as_long_as_its_figure(self):
        self.read(chart.bars("x", "t", UP, {"": {"poll": 100, "epoll": 50}}))
        lengths = []
        for bar in self.root.iter(SVG + "polygon"):
            xs = [float(place.split(",")[0]) for place in bar.get("points").split()]
            lengths.append(max(xs) - min(xs))
        self.assertAlmostEqual(lengths[0], 2 * lengths[1], delta=0.1)

    def test_a_figure_that_is_no_limit_is_grey_and_says_at_least(self):
        svg = chart.bars("x", "t", UP, {"": {"poll": 100, "epoll": 50}}, {("", "epoll")})
        self.assertIn("≥ 50", self.read(svg))
        self.assertNotIn(chart.STYLES["epoll"].colour, svg)

    def test_seven_may_share_a_panel_with_their_bounds(self):
        texts = self.read(chart.lines("x", "t", ACROSS, UP, SEVEN, {"at most, by 100": [(20, 90), (1000, 80)]},
                                      together=True))
        for name in [*SEVEN, "at most, by 100"]:
            self.assertEqual(texts.count(name), 1)
        places = [self.markers(name) for name in SEVEN]
        self.assertEqual([*map(len, places)], [3] * 7)
        self.assertEqual(len({x for (x, _), _, _ in places}), 7)  # no range hides another

    def test_a_region_is_hatched_only_where_it_was_asked_for(self):
        plain = chart.lines("x", "t", ACROSS, UP, SEVEN)
        for places, more in (([], False), ([1000], True)):
            svg = chart.lines("x", "t", ACROSS, UP, SEVEN, hatched={"poll": places}, hatched_name="full")
            self.assertEqual("full" in self.read(svg), more)
            self.assertEqual(len(svg) > len(plain) + 100, more)

    @programs.needs("rsvg-convert")
    def test_without_any_style_sheet_the_colours_are_the_same(self):
        """Some readers of SVG know no CSS."""
        for svg in (chart.lines("x", "t", ACROSS, UP, SEVEN, hatched={"poll": [1000]}, hatched_name="full"),
                    chart.bars("x", "t", UP, {"": {"poll": (5, 3, 7), "epoll": 2}})):
            bare = re.sub("<style>.*?</style>", "", svg, flags=re.DOTALL)
            drawn, undressed = (subprocess.run(["rsvg-convert"], input=each.encode(), check=True,
                                               stdout=subprocess.PIPE).stdout for each in (svg, bare))
            self.assertGreater(len(drawn), 5000)
            self.assertLess(abs(len(drawn) - len(undressed)), 0.1 * len(drawn))
