"""The rules by which secrets are found, as rules.txt lists them."""

import re
from functools import cache

from codingagent.model.patterns import lazy_pattern

# A text of our own and not TOML: tomllib would take an eighth of the time of each start.
with open(f"{__file__.removesuffix('rules.py')}rules.txt", encoding="utf-8") as _file:  # noqa: PTH123
    _SECTIONS: dict[str, str] = dict(
        re.findall(r"^([a-z].*)\n((?: .*\n)+)", _file.read(), re.MULTILINE)
    )


def rows(section: str) -> list[str]:
    """Return the lines of a section without its comments; what is indented deeper goes on."""
    lines = _SECTIONS[section].replace("\n        ", "").splitlines()
    return [line.strip() for line in lines if not line.startswith("    # ")]


def words(section: str) -> frozenset[str]:
    """Return the words of a section."""
    return frozenset(" ".join(rows(section)).split())


def one_of(section: str) -> str:
    """Return the expression for any line of a section."""
    return "|".join(rows(section))


def any_of(section: str, flags: int = 0) -> re.Pattern[str]:
    return lazy_pattern(one_of(section), flags)


_PARTS = dict(row.split(None, 1) for row in rows("parts"))
_NAMED = re.compile(f"<({'|'.join(_PARTS)})>")


@cache
def compiled(expression: str) -> re.Pattern[str]:
    """Return an expression with its parts, compiled when its lead is first seen: most never are."""
    return re.compile(_NAMED.sub(lambda name: _PARTS[name[1]], expression), re.ASCII)
