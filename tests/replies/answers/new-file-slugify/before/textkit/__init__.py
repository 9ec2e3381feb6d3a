"""Small helpers for text."""
from textkit.wrap import indent, shorten

__all__ = ["indent", "shorten"]
