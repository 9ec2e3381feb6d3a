"""The rules by which secrets are found, as rules.txt lists them."""

import re
from functools import cache, partial

from codingagent.model.patterns import lazy_pattern, sections

_SECTIONS = sections(__file__)
_PARTS: dict[str, str] = {}


def _whole(text: str) -> str:
    """Return a text of expressions with the parts that it names."""
    return re.sub(r"(?<!P)<(\w+)>", lambda found: _whole(_PARTS.get(found[1], "")) or found[0], text)


def rows(section: str) -> list[str]:
    """Return the lines of a section without its comments; what is indented deeper goes on."""
    lines = _whole(_SECTIONS[section]).replace("\n        ", "").splitlines()
    return [line.strip() for line in lines if not line.startswith("    # ")]


def words(section: str) -> frozenset[str]:
    return frozenset(" ".join(rows(section)).split())


def pairs(section: str) -> list[tuple[str, str]]:
    """Return the first word of each line of a section, and the rest."""
    return [(name, rest) for name, rest in (row.split(None, 1) for row in rows(section))]


def one_of(section: str) -> str:
    return "|".join(rows(section))


def any_of(section: str, flags: int = 0) -> re.Pattern[str]:
    return lazy_pattern(one_of(section), flags)


def one_of_named(section: str) -> str:
    """Return the expression for any line of a section, in a group of the name before it."""
    return "|".join(f"(?P<{name}>{rest})" for name, rest in pairs(section))


def part(name: str) -> str:
    return _whole(f"<{name}>")


_PARTS.update((*pairs("parts"), *pairs("members"), *pairs("expressions")))
_PARTS |= {name: one_of(name) for name in ("signs", "elements", "sentences")}
_PARTS |= {"collections": one_of_named("collections"), "paths": one_of_named("collections after a path")}
compiled = cache(partial(re.compile, flags=re.ASCII))
"""Compile the expression of a rule when its lead is first seen: most never are."""
