import unittest

from zenkaku import to_half, to_number


class 変換テスト(unittest.TestCase):
    def test_半角(self):
        self.assertEqual("ABC 1~", to_half("ＡＢＣ　１～"))

    def test_漢数字(self):
        self.assertEqual(123, to_number("百二十三"))

    def test_エラー(self):
        with self.assertRaisesRegex(ValueError, "数字ではありません"):
            to_number("猫🐱")
