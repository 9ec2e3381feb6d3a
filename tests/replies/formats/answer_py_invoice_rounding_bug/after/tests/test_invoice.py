import unittest
from decimal import Decimal

from invoice import Invoice, as_text


class InvoiceTest(unittest.TestCase):
    def setUp(self):
        self.invoice = Invoice("2024-001", "Müller & Söhne GmbH")
        self.invoice.add("Schrauben M4", 100, "0.05")
        self.invoice.add("Fachbuch", 1, "29.90", "0.07")

    def test_net(self):
        self.assertEqual(Decimal("34.90"), self.invoice.net())

    def test_groups(self):
        self.assertEqual(
            {Decimal("0.19"): Decimal("0.95"), Decimal("0.07"): Decimal("2.09")},
            self.invoice.tax_groups(),
        )

    def test_quantity_is_positive(self):
        with self.assertRaises(ValueError):
            self.invoice.add("nichts", 0, 1)

    def test_text(self):
        self.assertIn("Müller & Söhne", as_text(self.invoice))


class RoundingTest(unittest.TestCase):
    def test_0_125_net_is_rounded_up(self):
        invoice = Invoice("1", "A").add("x", 1, 0.125)
        self.assertEqual(Decimal("0.13"), invoice.net())

    def test_0_125_tax_is_rounded_up(self):
        invoice = Invoice("1", "A").add("x", 1, "1.25", "0.10")
        self.assertEqual(Decimal("0.13"), invoice.tax())
        self.assertEqual(Decimal("1.38"), invoice.total())

    def test_rounding_happens_once_per_group(self):
        invoice = Invoice("1", "A")
        invoice.add("x", 1, 0.125).add("y", 1, 0.125)
        # per line this would be 0.13 + 0.13
        self.assertEqual(Decimal("0.25"), invoice.net())


if __name__ == "__main__":
    unittest.main()
