"""The rules of the presets, as presets.txt lists them: what is blocked, asked about, executed by its name."""

import re
from functools import cache

from codingagent.model.patterns import sections

_SECTIONS = sections(__file__)


def _patterns(name: str) -> tuple[str, ...]:
    """Return the patterns between the commas; the words before a bracket begin each in it."""
    found: list[str] = []
    text = " ".join(_SECTIONS[name].split())
    for start, inside in re.findall(r"([^,()]+)(?:\(([^)]*)\))?", text):
        found += (f"{start} {end}".strip() for end in inside.split(","))
    return tuple(" ".join(each.split()) for each in found if each.strip())


def _names(name: str) -> tuple[str, ...]:
    return tuple(_SECTIONS[name].split())


def reasons(*kinds: str) -> dict[str, str]:
    """Return the commands that sections of some kinds ask about, and why."""
    sections = [name for name in _SECTIONS if name.startswith(kinds)]
    return {each: name.partition(": ")[2] for name in sections for each in _patterns(name)}


@cache
def usages(name: str) -> dict[str, tuple[str, ...]]:
    """Return the words that a section has for each program."""
    lines = [line.partition(": ") for line in _SECTIONS[name].splitlines()]
    return {each: tuple(rest.split()) for names, _, rest in lines for each in names.split()}


BLOCKED_COMMANDS = _patterns("blocked")
REASONS = reasons("asked")
"""The reason for asking, appended to the command's name."""

ASKED_COMMANDS = tuple(REASONS)
ASKED_VARIABLES = frozenset(_names("variables asked"))
CHOOSING_VARIABLES = frozenset(_names("variables that choose"))

EXECUTED_NAMES = {
    f"!**/{name[1:]}" if name.startswith("!") else f"**/{name}": kind.partition(": ")[2]
    for kind in _SECTIONS
    if kind.startswith("executed")
    for name in _names(kind)
}
"""Who executes the files of a pattern, by the pattern; an earlier one counts first."""

TAKEN_IN = tuple(
    pattern
    for pattern in EXECUTED_NAMES
    # Weights of neural networks are often called *.pth too, are large, and nobody executes them.
    if not pattern.startswith("!") and pattern not in ("**/.git", "**/.codingagent", "**/*.pth")
)
"""Those that checkpoints cover even where git ignores them."""

CMD_BLOCKED = _names("cmd blocked")
CMD_PLAIN = _patterns("cmd plain")
