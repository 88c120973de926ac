"""Charts: what stands where, that all of it can be read, and pictures fit for a page."""

import os
import re
import shutil
import sys
import unittest
import xml.etree.ElementTree as ElementTree
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from lib.reporting import chart, gnuplot, panels, scale

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

    def test_there_is_room_beyond_the_figures_but_no_tick(self):
        axis = scale.Scale(UP, [95], 0, 0.25)
        self.assertGreater(axis.high, 100)
        self.assertEqual(axis.ticks(4), [0, 50])

    def test_of_little_there_is_an_axis_too(self):
        for figures in ([0], [5], [100], [5, 5]):
            for axis in (UP, LOG):
                if figures != [0] or axis is UP:
                    with self.subTest(figures=figures, log=axis.log):
                        made = scale.Scale(axis, figures)
                        self.assertLess(made.low, made.high)
                        self.assertGreaterEqual(len(made.ticks(6)), 2)

    def test_round_ticks(self):
        self.assertEqual(scale.Scale(UP, [20000]).ticks(6), [0, 5000, 10000, 15000, 20000])
        self.assertEqual(scale.Scale(LOG, [5, 200]).ticks(6), [5, 10, 20, 50, 100, 200])
        self.assertEqual(scale.Scale(LOG, [5, 50000]).ticks(6), [10, 100, 1000, 10000])

    def test_of_many_ticks_the_ends_and_a_round_one_between(self):
        levels = [20, 50, *range(100, 1001, 100), 2000, 5000, 8000, *range(10000, 15001, 1000)]
        axis = scale.Scale(chart.Axis("clients", True, levels), levels)
        self.assertEqual(axis.ticks(3), [20, 500, 15000])

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

    def test_others_by_their_order(self):
        names = ["offered", "epoll", "replies"]
        self.assertNotEqual(chart.style("offered", names), chart.style("replies", names))
        self.assertEqual(chart.style("epoll", names), chart.STYLES["epoll"])

    def test_another_flavour_or_revision_is_dashed_in_its_colour(self):
        for name in ("nginx:default", "nginx@v1.0"):
            look = chart.style(name, [name])
            self.assertEqual(look.colour, chart.STYLES["nginx"].colour)
            self.assertNotEqual(look.dash, chart.STYLES["nginx"].dash)

    def test_what_is_dark_is_light_on_a_dark_page(self):
        self.assertLess(gnuplot.brightness(gnuplot.for_dark(gnuplot.PAPER)), 30)
        for rgb in (gnuplot.INK, gnuplot.FAINT, *(look.colour for look in chart.STYLES.values())):
            self.assertGreater(gnuplot.brightness(gnuplot.for_dark(rgb)), 115)


class WithoutGnuplot(unittest.TestCase):
    def test_there_is_no_picture(self):
        with mock.patch.object(gnuplot, "available", return_value=False):
            self.assertIsNone(chart.lines("x", "t", ACROSS, UP, {"epoll": [(20, 1)]}))
            self.assertIsNone(chart.bars("x", "t", UP, {"": {"epoll": 1}}))
            self.assertIsNone(chart.histogram("x", "t", UP, UP, [(0, 1, 5)]))


class Nothing(unittest.TestCase):
    def test_there_is_no_picture_of_nothing(self):
        self.assertIsNone(chart.lines("x", "t", ACROSS, UP, {}))
        self.assertIsNone(chart.lines("x", "t", ACROSS, UP, {"epoll": [(20, None)]}))
        self.assertIsNone(chart.bars("x", "t", UP, {"20 clients": {"epoll": None}}))
        self.assertIsNone(chart.histogram("x", "t", UP, UP, []))


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

    def strokes(self, rgb):
        """The pieces that lines of this colour consist of, as lists of places."""
        return [re.findall(r"[\d.]+,[\d.]+", piece) for path in self.root.iter(SVG + "path")
                if path.get("stroke") == rgb for piece in path.get("d").split("M")[1:]]


SERIES = {"epoll": [(20, 14652, 14100, 15020), (100, None), (1000, (18000, 17000, 19000))],
          "forking": [(20, 2900), (100, 2800), (1000, None)]}
SEVEN = {name: [(20, 100 + number), (100, 300, 200, 400), (1000, 250)]
         for number, name in enumerate(list(chart.STYLES)[:7])}


@unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
class Pages(Picture):
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
                    chart.stacked("x", "t", UP, {"": {"epoll": {"part %d" % n: 1 for n in range(
                        11)}}}),
                    chart.histogram("x", "t", UP, UP, [(0, 1, 5)], {"a": 0, "b": 1, "c": 1})):
            self.read(svg)
            for text, (x, y), group in self.words:
                size = float(group.get("font-size")) * 0.5 * len(text)
                side = {"start": 0, "middle": 0.5, "end": 1}[group.get("text-anchor")]
                self.assertTrue(0 <= x - side * size and x + (1 - side) * size <= self.size[0], text)
                self.assertTrue(10 <= y <= self.size[1] - 4, text)


@unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
class Lines(Picture):
    def test_a_few_share_a_panel_and_have_their_names_at_their_ends(self):
        texts = self.read(chart.lines("x", "t", ACROSS, UP, SERIES))
        places = {text: place for text, place, _ in self.words}
        for name in SERIES:
            self.assertEqual(texts.count(name), 1)
        self.assertGreater(places["epoll"][0], self.markers("epoll")[-1][0])
        self.assertEqual(texts.count("1,000"), 1)

    def test_names_of_lines_that_end_together_stand_apart_and_above_the_axis(self):
        for end in (100, 0):
            self.read(chart.lines("x", "t", ACROSS, UP, {
                name: [(20, 100), (1000, end)] for name in list(chart.STYLES)[:4]}))
            heights = sorted(place[1] for text, place, _ in self.words if text in chart.STYLES)
            self.assertTrue(all(low - high > 15 for high, low in zip(heights, heights[1:])))
            below = min(place[1] for text, place, _ in self.words if text == "1,000")
            self.assertLess(heights[-1], below - 10)

    def test_many_have_a_panel_each_with_the_others_in_grey(self):
        texts = self.read(chart.lines("x", "t", ACROSS, UP, SEVEN))
        for name in SEVEN:
            self.assertEqual(texts.count(name), 1)
            self.assertEqual(len(self.markers(name)), 3)
        self.assertEqual(len(self.strokes(gnuplot.OTHERS)), 1 + 7 * 6)  # one is in the key
        self.assertIn("the others", texts)
        first, second = self.markers("iterative"), self.markers("forking")
        self.assertEqual(first[0][1] > second[0][1], True)  # of one height, and the same axis
        self.assertAlmostEqual(first[1][1], second[1][1], places=1)

    def test_the_axes_of_panels_are_written_once(self):
        texts = self.read(chart.lines("x", "t", ACROSS, UP, SEVEN))
        self.assertEqual(texts.count("1,000"), 2)  # below the lowest of each column
        self.assertEqual(texts.count("200"), 4)  # beside the first of each row
        for title in (ACROSS.title, UP.title):
            self.assertEqual(texts.count(title), 1)

    def test_a_panel_tells_its_figures_where_the_ticks_are(self):
        texts = self.read(chart.lines("x", "t", ACROSS, UP, SEVEN))
        self.assertEqual([texts.count(text) for text in ("106", "250")], [1, 7])

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

    def test_ticks_stand_where_they_were_asked_for(self):
        texts = self.read(chart.lines("x", "t", ACROSS, UP, SERIES))
        for tick in ("20", "100", "1,000", "15,000"):
            self.assertIn(tick, texts)
        self.assertNotIn("50", texts)

    def test_even_steps_whatever_they_say(self):
        axis = chart.Axis("delay (ms)", ticks=[0, 1, 10, 50], even=True)
        texts = self.read(chart.lines("x", "t", axis, UP, {"epoll": [(0, 9), (10, 5), (50, 1)]}))
        left, middle, right = (x for x, _ in self.markers("epoll"))
        self.assertAlmostEqual(middle - left, 2 * (right - middle), places=1)
        for tick in ("0", "1", "10", "50"):
            self.assertIn(tick, texts)

    def test_a_gap_is_not_drawn_over(self):
        for middle, pieces in ((2, [3]), (None, [1, 1])):
            self.read(chart.lines("x", "t", ACROSS, UP, {"poll": [(20, 1), (100, middle),
                                                                  (1000, 3)]}))
            drawn = [len(piece) for piece in self.strokes(chart.STYLES["poll"].colour)]
            self.assertEqual(drawn, pieces)

    def test_the_set_behind_is_dotted_in_its_colour_and_named(self):
        texts = self.read(chart.lines("x", "t", ACROSS, UP, SEVEN, {
            "epoll": [(20, 50), (1000, 20)]}, "the article's figures"))
        self.assertIn("the article's figures", texts)
        dotted = [path for path in self.root.iter(SVG + "path") if path.get("stroke-dasharray")]
        self.assertEqual([path.get("stroke") for path in dotted],
                         [gnuplot.FAINT, chart.STYLES["epoll"].colour])

    def test_zero_has_no_place_on_a_logarithmic_axis_and_does_no_harm(self):
        self.assertIsNone(chart.lines("x", "t", LOG, LOG, {"epoll": [(0, 5), (5, 0)]}))
        for svg in (chart.lines("x", "t", LOG, LOG, {"epoll": [(0, 1), (5, 3, 0, 9)]}),
                    chart.bars("x", "t", LOG, {"": {"epoll": 0, "poll": 5}}),
                    chart.bars("x", "t", UP, {"": {"epoll": 0}}),
                    chart.histogram("x", "t", LOG, UP, [(0, 1, 5), (1, 2, 5)], {"min": 0})):
            self.read(svg)

    def test_a_cloud_stays_small(self):
        dots = [(n % 997, n % 1009 + 1) for n in range(50000)]
        svg = chart.lines("x", "t", UP, UP, {"each reply": dots}, dots=["each reply"])
        self.assertLess(len(svg), 400000)
        self.assertIn("each reply", self.read(svg))


@unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
class Bars(Picture):
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

    def test_numbers_of_the_axis_keep_apart_however_long_the_names_are(self):
        for name in ("poll", "threading, and all that was taken back", "x" * 50):
            texts = self.read(chart.bars("x", "t", UP, {"": {name: 113076}}))
            down = self.words[texts.index("0")][1][1]
            ticks = sorted((x, text) for text, (x, y), _ in self.words if y == down)
            self.assertGreater(len(ticks), 1)
            for (left, before), (right, text) in zip(ticks, ticks[1:]):
                self.assertGreater(right - left, (panels.width(before) + panels.width(text)) / 2)

    def test_marks_are_named(self):
        texts = self.read(chart.histogram("x", "t", LOG, UP, [(0.1, 1, 5), (1, 10, 7)],
                                          {"p99": 9.5, "median": 2}))
        self.assertIn("p99 9.50", texts)
        self.assertIn("median 2", texts)


if __name__ == "__main__":
    unittest.main()
