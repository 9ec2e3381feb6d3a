import unittest

from durations import format_seconds, parse


class ParseTest(unittest.TestCase):
    def test_one_unit(self):
        self.assertEqual(parse("45s"), 45)

    def test_units_add_up(self):
        self.assertEqual(parse("1h 30m"), 5400)

    def test_text_that_is_no_duration(self):
        with self.assertRaises(ValueError):
            parse("soon")


class FormatTest(unittest.TestCase):
    def test_parts_that_are_zero_are_left_out(self):
        self.assertEqual(format_seconds(5400), "1h 30m")

    def test_nothing_at_all(self):
        self.assertEqual(format_seconds(0), "0s")
