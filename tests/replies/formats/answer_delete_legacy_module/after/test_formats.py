import unittest

from formats import compact


class FormatsTest(unittest.TestCase):
    def test_compact(self):
        self.assertEqual("a b\tc", compact([["a  b ", "\tc"]]))
