import unittest

from textkit import slugify


class SlugifyTest(unittest.TestCase):
    def test_umlauts(self):
        self.assertEqual(slugify("Äöü ß ÄÖÜ"), "aeoeue-ss-aeoeue")

    def test_decomposed_umlauts(self):
        self.assertEqual(slugify("Mu\u0308nchen"), "muenchen")

    def test_accents(self):
        self.assertEqual(slugify("Café Señor Çà"), "cafe-senor-ca")

    def test_one_dash(self):
        self.assertEqual(slugify("a  &  b...c"), "a-b-c")

    def test_ends(self):
        self.assertEqual(slugify("¡Hola!"), "hola")

    def test_japanese(self):
        self.assertEqual(slugify("こんにちは"), "")
        self.assertEqual(slugify("Nihon 日本 go"), "nihon-go")

    def test_emoji(self):
        self.assertEqual(slugify("🚀 Start 🚀"), "start")

    def test_max_length(self):
        self.assertEqual(slugify("guten morgen", max_length=20), "guten-morgen")
        self.assertEqual(slugify("guten morgen", max_length=8), "guten-mo")

    def test_max_length_leaves_no_dash(self):
        self.assertEqual(slugify("guten morgen", max_length=6), "guten")

    def test_empty(self):
        self.assertEqual(slugify(""), "")


if __name__ == "__main__":
    unittest.main()
