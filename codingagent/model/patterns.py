"""Regular expressions that are compiled when first used, and lists of words and rules.

A start imports about 150 of them and uses 20; compiling all would be an eighth of its time.
"""

import re
from typing import AnyStr, cast


class LazyPattern:
    def __init__(self, expression: object, flags: int) -> None:
        self._source = expression, flags

    def __getattr__(self, name: str) -> object:
        made = re.compile(*self._source)  # type: ignore[call-overload]  # text or bytes
        # From now on each is found without coming here.
        vars(self).update({each: getattr(made, each) for each in dir(made) if each[0] != "_"})
        return getattr(made, name)


def words(*lines: str) -> frozenset[str]:
    """Return the words of several lines: a list of names reads better without quotes."""
    return frozenset(" ".join(lines).split())


def table(rows: str) -> dict[str, str]:
    """Return the first word of each line, and the rest of it."""
    return dict(row.split(None, 1) for row in rows.splitlines())


def word_lists(module: str) -> dict[str, frozenset[str]]:
    """Return the lists of words in the text file beside a module."""
    return {name: words(body) for name, body in sections(module).items()}


def lazy_pattern(expression: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what `re.compile` returns, for its attributes and methods."""
    return cast("re.Pattern[AnyStr]", LazyPattern(expression, flags))


def sections(module: str) -> dict[str, str]:
    """Return the sections of the text file beside a module: a line at the margin, and those below.

    A text of our own and not TOML: tomllib would take an eighth of the time of each start.
    """
    return dict(
        re.findall(r"^(\w.*)\n((?: .*\n)+)", text_at(f"{module.removesuffix('py')}txt"), re.MULTILINE)
    )


def text_at(path: str) -> str:
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        return file.read()


def alternatives(lines: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern for what any of the lines matches."""
    return lazy_pattern("|".join(line.strip() for line in lines.splitlines()), flags)
