import unittest
from decimal import Decimal

from invoice import Invoice, Line, as_text
from invoice.model import cents


class InvoiceTest(unittest.TestCase):
    def setUp(self):
        self.invoice = Invoice("2024-001", "Müller & Söhne GmbH")
        self.invoice.add("Schrauben M4", 100, 0.05)
        self.invoice.add("Fachbuch", 1, 29.90, 0.07)

    def test_net(self):
        self.assertEqual(Decimal("34.90"), self.invoice.net())

    def test_groups(self):
        self.assertEqual([Decimal("0.07"), Decimal("0.19")], sorted(self.invoice.tax_groups()))

    def test_total(self):
        self.assertEqual(Decimal("37.94"), self.invoice.total())

    def test_quantity_is_positive(self):
        with self.assertRaises(ValueError):
            self.invoice.add("nichts", 0, 1)

    def test_text(self):
        self.assertIn("Müller & Söhne", as_text(self.invoice))

    def test_empty(self):
        self.assertEqual(Decimal("0.00"), Invoice("1", "x").total())


class RoundingTest(unittest.TestCase):
    def test_half_goes_up(self):
        self.assertEqual(Decimal("0.13"), cents(Decimal("0.125")))
        self.assertEqual(Decimal("-0.13"), cents(Decimal("-0.125")))

    def test_net_of_0_125(self):
        invoice = Invoice("1", "x").add("Unterlegscheibe", 1, 0.125, 0)
        self.assertEqual(Decimal("0.13"), invoice.net())
        self.assertIn("0.13 €", as_text(invoice))

    def test_tax_of_0_125(self):
        invoice = Invoice("1", "x").add("halb", 1, 0.50, 0.25)
        self.assertEqual({Decimal("0.25"): Decimal("0.13")}, invoice.tax_groups())
        self.assertEqual(Decimal("0.63"), invoice.total())

    def test_lines_are_not_rounded(self):
        self.assertEqual(Decimal("0.125"), Line("x", 1, 0.125).net)

    def test_rounded_once_per_group(self):
        invoice = Invoice("1", "x")
        for _ in range(3):
            invoice.add("Unterlegscheibe", 1, 0.125)
        self.assertEqual(Decimal("0.38"), invoice.net())  # line by line: 0.39
        self.assertEqual(Decimal("0.07"), invoice.tax())
        self.assertEqual(Decimal("0.45"), invoice.total())

    def test_each_group_is_rounded(self):
        invoice = Invoice("1", "x")
        invoice.add("a", 1, 0.125, 0.19)
        invoice.add("b", 1, 0.125, 0.07)
        self.assertEqual(Decimal("0.26"), invoice.net())

    def test_floats_are_taken_by_their_digits(self):
        invoice = Invoice("1", "x").add("a", 3, 0.1, 0)
        self.assertEqual(Decimal("0.30"), invoice.net())


if __name__ == "__main__":
    unittest.main()
