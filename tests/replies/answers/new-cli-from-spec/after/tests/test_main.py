import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def run(*args, data=b""):
    return subprocess.run([sys.executable, "-m", "hexview", *args], input=data,
                          capture_output=True, cwd=ROOT)


class MainTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "data.bin")
        with open(self.path, "wb") as file:
            file.write(bytes(range(17)))

    def test_a_file(self):
        result = run(self.path)
        self.assertEqual(0, result.returncode)
        self.assertEqual(2, len(result.stdout.splitlines()))

    def test_stdin(self):
        result = run("-", data=b"Hi")
        self.assertEqual(0, result.returncode)
        self.assertTrue(result.stdout.rstrip().endswith(b"|Hi|"))

    def test_empty_input(self):
        result = run("-")
        self.assertEqual((0, b""), (result.returncode, result.stdout))

    def test_skip_and_count(self):
        result = run("-s", "16", "-n", "1", self.path)
        self.assertTrue(result.stdout.startswith(b"00000010  10 "))

    def test_skip_past_the_end(self):
        result = run("-s", "100", self.path)
        self.assertEqual((0, b""), (result.returncode, result.stdout))

    def test_a_missing_file(self):
        result = run(self.path + ".no")
        self.assertEqual((1, b""), (result.returncode, result.stdout))
        self.assertIn(b"data.bin.no", result.stderr)

    def test_usage(self):
        for args in ([], ["-n", "x", "-"], ["-s", "-1", "-"], ["--no-such", "-"]):
            with self.subTest(args):
                self.assertEqual(2, run(*args).returncode)


if __name__ == "__main__":
    unittest.main()
