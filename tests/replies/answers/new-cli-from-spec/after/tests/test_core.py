import io
import unittest

from hexview.core import format_line, lines, read

SAMPLE = b"Hello\n\t\\\"'`\x00\xff\xc3\xa4~"


class LinesTest(unittest.TestCase):
    def test_the_line_of_the_spec(self):
        want = "00000000  48 65 6c 6c 6f 0a 09 5c  22 27 60 00 ff c3 a4 7e  |Hello..\\\"'`....~|"
        self.assertEqual([want], list(lines(SAMPLE)))

    def test_empty(self):
        self.assertEqual([], list(lines(b"")))

    def test_15(self):
        (line,) = lines(b"A" * 15)
        self.assertEqual(
            "00000000  41 41 41 41 41 41 41 41  41 41 41 41 41 41 41     |AAAAAAAAAAAAAAA|", line)

    def test_16(self):
        (line,) = lines(b"A" * 16)
        self.assertTrue(line.endswith("  |" + "A" * 16 + "|"))

    def test_17(self):
        first, second = lines(b"A" * 17)
        self.assertTrue(second.startswith("00000010  41   "))
        self.assertTrue(second.endswith("  |A|"))
        self.assertEqual(first.index("|"), second.index("|"))

    def test_the_bar_stands_in_the_same_column(self):
        for count in range(1, 17):
            with self.subTest(count):
                self.assertEqual(60, format_line(0, b"x" * count).index("|"))

    def test_printable(self):
        self.assertTrue(format_line(0, b"\x1f\x20\x7e\x7f").endswith("|. ~.|"))

    def test_color(self):
        line = format_line(0, b"\x00\x01\x00", color=True)
        self.assertIn("\x1b[2m00\x1b[0m 01 \x1b[2m00\x1b[0m", line)
        plain = line.replace("\x1b[2m", "").replace("\x1b[0m", "")
        self.assertEqual(format_line(0, b"\x00\x01\x00"), plain)


class ReadTest(unittest.TestCase):
    def test_skip_and_count(self):
        self.assertEqual(b"cd", read(io.BytesIO(b"abcdef"), 2, 2))

    def test_skip_past_the_end(self):
        self.assertEqual(b"", read(io.BytesIO(b"abc"), 10))

    def test_count_past_the_end(self):
        self.assertEqual(b"c", read(io.BytesIO(b"abc"), 2, 10))
