"""Charts: where texts and ticks can stand, and pictures fit for a page."""

import os
import shutil
import sys
import unittest
import xml.etree.ElementTree as ElementTree
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from lib import chart, gnuplot, labels, scale

SVG = "{http://www.w3.org/2000/svg}"
LEVELS = [20, 100, 1000]
ACROSS = chart.Axis("clients at once", log=True, ticks=LEVELS)
UP = chart.Axis("requests a second")


class Scales(unittest.TestCase):
    def test_places_on_a_linear_and_a_logarithmic_axis(self):
        self.assertEqual(scale.Scale(0, 50, False, 100).at(10), 20)
        self.assertAlmostEqual(scale.Scale(1, 100, True, 100).at(10), 50)
        self.assertIsNone(scale.Scale(1, 100, True, 100).at(0))

    def test_limits_are_round_and_linear_ones_begin_at_zero(self):
        self.assertEqual(scale.limits([2800, 19500], False), (0, 20000))
        self.assertEqual(scale.limits([7, 2700], True), (5, 5000))
        self.assertEqual(scale.limits([-3.5, 4], False)[0], -4)

    def test_limits_of_little(self):
        for figures in ([], [0], [5], [100]):
            for log in (False, True):
                with self.subTest(figures=figures, log=log):
                    low, high = scale.limits(figures, log)
                    self.assertLess(low, high)

    def test_round_ticks(self):
        self.assertEqual(scale.round_ticks(0, 20000, False), [0, 5000, 10000, 15000, 20000])
        self.assertEqual(scale.round_ticks(5, 200, True), [5, 10, 20, 50, 100, 200])
        self.assertEqual(scale.round_ticks(5, 50000, True), [10, 100, 1000, 10000])

    def test_of_crowded_ticks_the_ends_and_the_rounder_ones_are_written(self):
        places = [(900, 0, 30), (1000, 35, 30), (1100, 50, 30), (1200, 100, 30)]
        self.assertEqual(scale.thinned(places), {900, 1000, 1200})
        self.assertEqual(scale.thinned([]), set())

    def test_numbers_as_people_write_them(self):
        self.assertEqual([scale.number(n) for n in (0, 0.5, 1000, 15000.0, 1e6)],
                         ["0", "0.5", "1,000", "15,000", "1,000,000"])
        self.assertEqual([scale.figure(n) for n in (9.031, 14.26, 31, 12345.6)],
                         ["9.03", "14.3", "31", "12,346"])


class Labels(unittest.TestCase):
    def test_names_in_a_column_move_apart_in_their_order(self):
        self.assertEqual(labels.spread([100, 104, 300], 20, 0, 400), [92, 112, 300])
        self.assertEqual(labels.spread([300, 104, 100], 20, 0, 400), [300, 112, 92])

    def test_they_stay_inside(self):
        self.assertEqual(labels.spread([0, 0], 20, 0, 400), [10, 30])
        self.assertEqual(labels.spread([400, 400], 20, 0, 400), [370, 390])

    def test_too_many_have_no_room(self):
        self.assertIsNone(labels.spread([1, 2, 3], 20, 0, 59))

    def test_a_name_avoids_a_line_and_the_edge(self):
        area = (0, 0, 200, 200)
        self.assertEqual(labels.beside((100, 100), 40, 16, area, [], []), (129, 100))
        crossing = [(110, 0), (110, 200)]
        x, _ = labels.beside((100, 100), 40, 16, area, [], [crossing])
        self.assertLess(x + 20, 110)
        x, y = labels.beside((195, 100), 10, 16, area, [], [])
        self.assertTrue(x + 5 <= 200 and y != 100)

    def test_where_all_is_full_there_is_no_place(self):
        self.assertIsNone(labels.beside((5, 5), 40, 16, (0, 0, 200, 200), [(0, 0, 200, 200)], []))

    def test_a_line_touches_a_box(self):
        box = (10, 10, 20, 20)
        self.assertTrue(labels.crosses([(0, 0), (30, 30)], box))
        self.assertTrue(labels.crosses([(15, 0), (15, 30)], box))
        self.assertFalse(labels.crosses([(0, 0), (30, 5)], box))
        self.assertFalse(labels.crosses([(0, 21), (30, 51)], box))


class Styles(unittest.TestCase):
    def test_no_two_look_alike_even_in_grey(self):
        looks = list(chart.STYLES.values())
        self.assertEqual(len({look.colour for look in looks}), len(looks))
        self.assertEqual(len({(look.point, look.dash) for look in looks}), len(looks))

    def test_others_by_their_order(self):
        names = ["offered", "epoll", "replies"]
        self.assertNotEqual(chart.style("offered", names), chart.style("replies", names))
        self.assertEqual(chart.style("epoll", names), chart.STYLES["epoll"])

    def test_another_flavour_or_revision_is_dotted_in_its_colour(self):
        for name in ("nginx:default", "nginx@v1.0"):
            look = chart.style(name, [name])
            self.assertEqual(look.colour, chart.STYLES["nginx"].colour)
            self.assertNotEqual(look.dash, chart.STYLES["nginx"].dash)


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


@unittest.skipUnless(shutil.which("gnuplot"), "gnuplot is not installed")
class Pictures(unittest.TestCase):
    SERIES = {"epoll": [(20, 14652, 14100, 15020), (100, None), (1000, (18000, 17000, 19000))],
              "forking": [(20, 2900), (100, 2800), (1000, None)]}

    def texts(self, svg):
        """What can be read in it. Its XML must be right."""
        self.root = ElementTree.fromstring(svg)
        return [each.text.strip() for each in self.root.iter(SVG + "text")]

    def test_it_is_fit_for_a_page(self):
        svg = chart.lines("sweep", "A <title> & 'so' on", ACROSS, UP, self.SERIES)
        self.texts(svg)
        self.assertEqual(self.root.get("role"), "img")
        self.assertIn("viewBox", self.root.attrib)
        self.assertFalse({"width", "height"} & set(self.root.attrib))
        self.assertEqual([each.text for each in self.root.iter(SVG + "title")],
                         ["A <title> & 'so' on"])
        self.assertIn("epoll, forking", self.root.find(SVG + "desc").text)
        self.assertNotIn("<script", svg)
        self.assertFalse(svg.startswith("<?xml"))

    def test_two_on_a_page_share_no_id_and_refer_to_their_own(self):
        seen = set()
        for name in ("one", "two"):
            svg = chart.lines(name, "t", ACROSS, UP, self.SERIES)
            self.texts(svg)
            ids = {each.get("id") for each in self.root.iter() if each.get("id")}
            links = {value[1:] for each in self.root.iter() for key, value in each.attrib.items()
                     if key.endswith("href")}
            self.assertFalse(ids & seen)
            self.assertLessEqual(links, ids)
            self.assertTrue(links)
            seen |= ids

    def test_texts_mean_nothing_to_gnuplot(self):
        title = r"it's `touch /tmp/no` \n @x {a_b} %d $1"
        self.assertIn(title, self.texts(chart.bars("x", title, UP, {"": {"epoll": 1}})))

    def test_ticks_stand_where_they_were_asked_for(self):
        texts = self.texts(chart.lines("x", "t", ACROSS, UP, self.SERIES))
        for tick in ("20", "100", "1,000", "20,000"):
            self.assertIn(tick, texts)
        self.assertNotIn("50", texts)

    def test_even_steps_whatever_they_say(self):
        axis = chart.Axis("delay (ms)", ticks=[0, 1, 10, 50], even=True)
        svg = chart.lines("x", "t", axis, UP, {"epoll": [(0, 9), (50, 1)]})
        texts = self.texts(svg)
        self.assertEqual(svg.count("#x-gpPt12' transform"), 2)  # both markers are inside
        for tick in ("0", "1", "10", "50"):
            self.assertIn(tick, texts)

    def test_names_stand_once_at_the_ends_of_lines_or_in_a_key(self):
        for series in (self.SERIES, {name: [(20, 100), (1000, 100)] for name in chart.STYLES}):
            texts = self.texts(chart.lines("x", "t", ACROSS, UP, series))
            for name in series:
                self.assertEqual(texts.count(name), 1)
        crowd = {"series %d" % n: [(20, 1), (1000, 2)] for n in range(30)}
        texts = self.texts(chart.lines("x", "t", ACROSS, UP, crowd))
        self.assertEqual(sum(text.startswith("series") for text in texts), 30)

    def test_nothing_is_written_outside(self):
        wide = {"a rather long name %d" % n: [(20, n + 1), (1000, 2 * n + 1)] for n in range(5)}
        ticks = chart.Axis("clients", log=True, ticks=[20, 1000000])
        crowd = {str(n): [(20, 1), (1000000, 2)] for n in range(30)}  # has a key, and no names
        for svg in (chart.lines("x", "t " * 90, ACROSS, UP, wide),
                    chart.lines("x", "t", ticks, UP, crowd),
                    chart.bars("x", "t", UP, {"": {"epoll": 123456789, "a long name of it": 7}}),
                    chart.histogram("x", "t", UP, UP, [(0, 1, 5)], {"a": 0, "b": 1, "c": 1})):
            self.texts(svg)
            width = float(self.root.get("viewBox").split()[2])
            for group in self.root.iter(SVG + "g"):
                text = group.find(SVG + "text")
                if text is None or not text.text.strip():
                    continue
                x = float(group.get("transform")[len("translate("):].split(",")[0])
                size = float(group.get("font-size")) * 0.5 * len(text.text.strip())
                side = {"start": 0, "middle": 0.5, "end": 1}[group.get("text-anchor")]
                self.assertTrue(0 <= x - side * size and x + (1 - side) * size <= width, text.text)

    def test_a_gap_is_not_drawn_over(self):
        whole = chart.lines("x", "t", ACROSS, UP, {"poll": [(20, 1), (100, 2), (1000, 3)]})
        broken = chart.lines("x", "t", ACROSS, UP, {"poll": [(20, 1), (100, None), (1000, 3)]})
        line = "stroke-dasharray='7.0,3.0'  d='M"

        def strokes(svg):
            return svg.partition(line)[2].partition("'")[0].count("L")

        self.assertEqual((strokes(whole), strokes(broken)), (2, 0))

    def test_figures_stand_beside_bars_and_reasons_instead(self):
        texts = self.texts(chart.bars("x", "t", UP, {
            "20 clients": {"poll": (19000, 18000, 20000), "epoll": None},
            "500 clients": {"poll": "refused: 12 resets", "epoll": 9.034}}))
        for text in ("20 clients", "19,000", "no figure", "refused: 12 resets", "9.03"):
            self.assertIn(text, texts)

    def test_the_set_behind_is_named(self):
        texts = self.texts(chart.lines("x", "t", ACROSS, UP, self.SERIES,
                                       {"epoll": [(20, 2050)]}, "the article's figures"))
        self.assertIn("Pale, dotted lines: the article's figures", texts)

    def test_zero_has_no_place_on_a_logarithmic_axis_and_does_no_harm(self):
        log = chart.Axis("ms", log=True)
        self.assertIsNone(chart.lines("x", "t", log, log, {"epoll": [(0, 5), (5, 0)]}))
        for svg in (chart.lines("x", "t", log, log, {"epoll": [(0, 1), (5, 3, 0, 9)]}),
                    chart.bars("x", "t", log, {"": {"epoll": 0, "poll": 5}}, {"": {"poll": 0}}),
                    chart.bars("x", "t", UP, {"": {"epoll": 0}}),
                    chart.histogram("x", "t", log, UP, [(0, 1, 5), (1, 2, 5)], {"min": 0})):
            self.texts(svg)

    def test_a_cloud_stays_small(self):
        dots = [(n % 997, n % 1009 + 1) for n in range(50000)]
        svg = chart.lines("x", "t", UP, UP, {"each reply": dots}, dots=["each reply"])
        self.assertLess(len(svg), 400000)

    def test_marks_are_named(self):
        texts = self.texts(chart.histogram("x", "t", chart.Axis("ms", log=True), UP,
                                           [(0.1, 1, 5), (1, 10, 7)], {"p99": 9.5, "median": 2}))
        self.assertIn("p99 9.50", texts)
        self.assertIn("median 2", texts)


if __name__ == "__main__":
    unittest.main()
