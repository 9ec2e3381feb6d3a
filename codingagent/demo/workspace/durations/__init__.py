"""Read and write durations such as "1h 30m"."""

from durations.text import format_seconds, parse

__all__ = ["format_seconds", "parse"]
