"""Shapes."""
from .base import Shape, parse
from .circle import Circle
from .rectangle import Rectangle
from .square import Square

__all__ = ["Shape", "Circle", "Rectangle", "Square", "parse"]
