"""Invoices with several tax rates."""
from .model import Invoice, Line
from .render import as_text

__all__ = ["Invoice", "Line", "as_text"]
__version__ = "0.4.1"
