"""Match commands against patterns such as `rm -r`, `git push` and `mkfs*` (explained in `rules`)."""

import re
from collections.abc import Iterator
from functools import cache

from codingagent.policy.shell_line import ShellCommand

# Tools where any argument may be a target: `make clean deploy`.
_TARGETS = frozenset({"make", "gmake", "just", "task", "mvn", "mvnw", "rake", "ant", "gulp"})


def fitting(patterns: tuple[str, ...], command: ShellCommand) -> Iterator[str]:
    """Yield the patterns that match a command, in their order."""
    by_name, with_globs = _numbers(patterns)
    for number in sorted((*by_name.get(command.name or "", ()), *with_globs)):
        if fits(patterns[number], command):
            yield patterns[number]


def fits(pattern: str, command: ShellCommand) -> bool:
    """Return whether a pattern matches a command, by the rules in the docstring of `rules`."""
    name, wanted = _parts(pattern)
    called = command.name
    if called is None or not name.fullmatch(called):
        return False
    words = command.arguments
    texts = [word.text for word in words]
    end = texts.index("--") if "--" in texts else len(texts)
    options = [word.sure for word in words[:end] if word.sure.startswith("-")]
    at = 0
    for want in wanted:
        if want == "--":
            fits = want in texts
        elif "*" in want:
            fits = any(map(_glob(want).fullmatch, texts))
        elif want.startswith("-"):
            fits = any(_option_fits(want, option) for option in options)
        else:
            at = _after_subcommand(texts, 0 if called in _TARGETS else at, want, called)
            fits = at > 0
        if not fits:
            return False
    return True


@cache
def _numbers(patterns: tuple[str, ...]) -> tuple[dict[str, list[int]], list[int]]:
    """Return where the patterns are for each name, and those whose name is a glob: there are hundreds."""
    by_name: dict[str, list[int]] = {}
    with_globs: list[int] = []
    for number, pattern in enumerate(patterns):
        name = (pattern.split() or [""])[0].casefold()
        (with_globs if "*" in name else by_name.setdefault(name, [])).append(number)
    return by_name, with_globs


@cache
def _parts(pattern: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    name, *wanted = pattern.split() or [""]
    return _glob(name.casefold()), tuple(wanted)


@cache
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)


def _option_fits(want: str, option: str) -> bool:
    if re.fullmatch(r"-\w", want):
        return re.fullmatch(r"-\w+", option) is not None and want[1] in option
    given = option.partition("=")[0]
    # Programs accept an abbreviated long option if it is unambiguous.
    return given == want or (len(given) > 3 and given.startswith("--") and want.startswith(given))


def _after_subcommand(texts: list[str], at: int, want: str, name: str) -> int:
    """Return the position after a subcommand; 0 if it is missing.

    It is unknown which options take a value: after one without `=`, both readings are tried.
    """
    maybe_value = False
    for place, text in enumerate(texts[at:], at + 1):
        if text.startswith("-") and len(text) > 1:
            maybe_value = "=" not in text and not text.startswith("--no-")
        elif text == want:
            return place
        elif maybe_value or name in _TARGETS:
            maybe_value = False
        else:
            return 0
    return 0
