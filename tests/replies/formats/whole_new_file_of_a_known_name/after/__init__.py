__version__ = "1"
