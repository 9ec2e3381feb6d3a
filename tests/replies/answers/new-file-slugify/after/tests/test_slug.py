import doctest
import unittest

import textkit
import textkit.slug
from textkit import slugify


class SlugifyTest(unittest.TestCase):
    def check(self, want, text, **options):
        self.assertEqual(want, slugify(text, **options))

    def test_plain(self):
        self.check("hello-world", "Hello, World!")

    def test_german(self):
        self.check("aepfel-oel-uebung-strasse", "Äpfel Öl Übung Straße")
        self.check("strasse", "STRAẞE")

    def test_decomposed_umlaut(self):
        self.check("ueber", "u\u0308ber")

    def test_other_accents(self):
        self.check("creme-brulee-a-la-francaise", "Crème brûlée à la française")
        self.check("senor-cislo", "Señor Číslo")

    def test_one_dash_only(self):
        self.check("a-b-c", "a -- b __/__ c")

    def test_no_dash_at_the_ends(self):
        self.check("a", "  --a!? ")

    def test_japanese_is_dropped(self):
        self.check("", "日本語")
        self.check("tokyo-2020", "Tokyo 東京 2020")

    def test_emoji_is_dropped(self):
        self.check("", "🎉👩‍💻")
        self.check("party-time", "party 🎉 time")

    def test_empty(self):
        self.check("", "")

    def test_max_length(self):
        self.check("guten", "Guten Morgen Welt", max_length=8)
        self.check("guten-morgen", "Guten Morgen Welt", max_length=12)
        self.check("guten-morgen", "Guten Morgen Welt", max_length=13)
        self.check("guten-morgen-welt", "Guten Morgen Welt", max_length=17)

    def test_max_length_in_a_long_word(self):
        self.check("donau", "Donaudampfschiff", max_length=5)

    def test_max_length_zero(self):
        self.check("", "abc", max_length=0)

    def test_exported(self):
        self.assertIn("slugify", textkit.__all__)

    def test_docs(self):
        self.assertEqual(0, doctest.testmod(textkit.slug).failed)


if __name__ == "__main__":
    unittest.main()
