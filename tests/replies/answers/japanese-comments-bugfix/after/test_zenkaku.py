import unittest

from zenkaku import to_half, to_number


class 変換テスト(unittest.TestCase):
    def test_半角(self):
        self.assertEqual("ABC 1~", to_half("ＡＢＣ　１～"))

    def test_全角数字(self):
        self.assertEqual(123, to_number("１２３"))
        self.assertEqual(0, to_number("０"))

    def test_全角と半角の混在(self):
        self.assertEqual(1234567890, to_number("１2３4５6７8９0"))

    def test_前後の空白(self):
        self.assertEqual(42, to_number("　４２ "))

    def test_半角数字(self):
        self.assertEqual(123, to_number("123"))

    def test_漢数字(self):
        self.assertEqual(123, to_number("百二十三"))

    def test_エラー(self):
        with self.assertRaisesRegex(ValueError, "数字ではありません"):
            to_number("猫🐱")
