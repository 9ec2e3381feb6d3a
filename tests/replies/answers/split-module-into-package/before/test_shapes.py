import unittest

import shapes
from shapes import Circle, Rectangle, Square, parse


class ShapesTest(unittest.TestCase):
    def test_parse(self):
        self.assertEqual("Circle(r=2.0)", repr(parse("circle 2")))

    def test_order(self):
        self.assertEqual([Square(1), Circle(1)][0].area(), min(Square(1), Circle(1)).area())

    def test_square_is_a_rectangle(self):
        self.assertIsInstance(parse("square 3"), Rectangle)
        self.assertIn("square", shapes.Shape.registry)
