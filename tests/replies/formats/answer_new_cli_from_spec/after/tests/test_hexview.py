import contextlib
import io
import os
import tempfile
import unittest

from hexview.__main__ import main
from hexview.core import dump, format_line


class DumpTest(unittest.TestCase):
    def test_spec_example(self):
        data = bytes.fromhex("48656c6c6f0a095c22276000ffc3a47e")
        self.assertEqual(
            list(dump(data)),
            ["00000000  48 65 6c 6c 6f 0a 09 5c  22 27 60 00 ff c3 a4 7e  |Hello..\\\"'`....~|"],
        )

    def test_empty(self):
        self.assertEqual(list(dump(b"")), [])

    def test_15_16_17_bytes(self):
        for count, expected in ((15, 1), (16, 1), (17, 2)):
            with self.subTest(count=count):
                result = list(dump(b"a" * count))
                self.assertEqual(len(result), expected)
                self.assertEqual({line.index("|") for line in result}, {60})

    def test_color(self):
        self.assertIn("\x1b[2m00\x1b[0m", format_line(0, b"\0", color=True))
        self.assertNotIn("\x1b", format_line(0, b"\0"))


class MainTest(unittest.TestCase):
    def setUp(self):
        handle, self.path = tempfile.mkstemp()
        os.write(handle, b"0123456789abcdefg")
        os.close(handle)
        self.addCleanup(os.unlink, self.path)

    def run_main(self, *args):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(list(args))
            except SystemExit as exit_:
                code = exit_.code
        return code, out.getvalue(), err.getvalue()

    def test_skip_and_count(self):
        code, out, _ = self.run_main("-s", "1", "-n", "2", self.path)
        self.assertEqual(code, 0)
        self.assertTrue(out.startswith("00000001  31 32 "))
        self.assertTrue(out.endswith("|12|\n"))

    def test_skip_past_end(self):
        self.assertEqual(self.run_main("-s", "99", self.path), (0, "", ""))

    def test_missing_file(self):
        code, out, err = self.run_main(self.path + "-missing")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("-missing", err)

    def test_usage(self):
        self.assertEqual(self.run_main()[0], 2)
        self.assertEqual(self.run_main("-n", "-5", self.path)[0], 2)


if __name__ == "__main__":
    unittest.main()
