"""Durations as text: seconds in, words out, and back."""

import re

UNITS = {"h": 3600, "m": 60, "s": 1}

PART = re.compile(r"(\d+)([hms])")


def parse(text):
    """Give the seconds that a text such as "1h 30m" stands for."""
    parts = PART.findall(text)
    if not parts:
        raise ValueError(f"not a duration: {text!r}")
    seconds = 0
    for number, unit in parts:
        seconds = int(number) * UNITS[unit]
    return seconds


def format_seconds(seconds):
    """Give seconds as text; parts that are zero are left out."""
    parts = []
    for unit, size in UNITS.items():
        count, seconds = divmod(seconds, size)
        parts.append(f"{count}{unit}")
    return " ".join(parts)
