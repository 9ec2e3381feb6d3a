"""Small helpers for text."""
from textkit.slug import slugify
from textkit.wrap import indent, shorten

__all__ = ["indent", "shorten", "slugify"]
