import unittest

from invoice import Invoice, as_text


class InvoiceTest(unittest.TestCase):
    def setUp(self):
        self.invoice = Invoice("2024-001", "Müller & Söhne GmbH")
        self.invoice.add("Schrauben M4", 100, 0.05)
        self.invoice.add("Fachbuch", 1, 29.90, 0.07)

    def test_net(self):
        self.assertAlmostEqual(34.90, self.invoice.net())

    def test_groups(self):
        self.assertEqual([0.07, 0.19], sorted(self.invoice.tax_groups()))

    def test_quantity_is_positive(self):
        with self.assertRaises(ValueError):
            self.invoice.add("nichts", 0, 1)

    def test_text(self):
        self.assertIn("Müller & Söhne", as_text(self.invoice))


if __name__ == "__main__":
    unittest.main()
