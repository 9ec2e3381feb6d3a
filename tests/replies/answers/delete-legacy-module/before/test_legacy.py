import unittest

from legacy import old_format, older_format


class LegacyTest(unittest.TestCase):
    def test_old(self):
        self.assertEqual("a b\tc", old_format([["a  b ", "\tc"]]))

    def test_older(self):
        with self.assertWarns(DeprecationWarning):
            older_format([])
