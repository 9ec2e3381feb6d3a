"""The options of wobble."""
from dataclasses import dataclass


@dataclass
class Option:
    name: str
    default: object
    help: str


OPTIONS = [
    Option("speed", 1.0, "How fast it wobbles, in Hz. Must be > 0."),
    Option("axis", "x", "One of ``x``, ``y`` or ``z``."),
    Option("log_file", None, r"A path, e.g. ``C:\logs\wobble.log`` or ``/tmp/w.log``."),
    Option("pattern", r"^\w+\s*=\s*(.*)$", "The regex for lines of the config file."),
    Option("greeting", "Grüß Gott 👋", "Said at the start."),
]


def defaults():
    """A dict of all defaults."""
    return {option.name: option.default for option in OPTIONS}


def check(name, value):
    """Raise ValueError when value is no good for the option name."""
    if name == "speed" and not value > 0:
        raise ValueError("speed must be > 0")
    if name == "axis" and value not in tuple("xyz"):
        raise ValueError(f"axis: {value!r}")
