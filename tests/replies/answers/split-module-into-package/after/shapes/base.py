"""The base class of all shapes, and their parser."""
from __future__ import annotations

from abc import ABC, abstractmethod


class Shape(ABC):
    """A shape in the plane."""

    registry: dict[str, type[Shape]] = {}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        Shape.registry[cls.__name__.lower()] = cls

    @abstractmethod
    def area(self) -> float: ...

    def __lt__(self, other: Shape) -> bool:
        return self.area() < other.area()

    def __repr__(self):
        args = ", ".join(f"{k}={v!r}" for k, v in vars(self).items())
        return f"{type(self).__name__}({args})"


def parse(text: str) -> Shape:
    """parse("circle 2") -> Circle(r=2.0)"""
    name, *numbers = text.split()
    return Shape.registry[name](*map(float, numbers))
