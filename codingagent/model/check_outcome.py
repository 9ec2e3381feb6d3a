"""What the output of a check says: which tests failed, and whether they failed before any change, too."""

import re
from collections.abc import Sequence

from msgspec import Struct

from codingagent.model import events, plain_text
from codingagent.model.events import CommandRan, Event
from codingagent.model.journal_entries import CheckEnded
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import plural

# Names of failed tests as pytest, unittest, go, cargo, TAP, and jest print them.
_NAMES = tuple(
    lazy_pattern(f"^{expression}$", re.MULTILINE)
    for expression in (
        r"(?:FAILED|ERROR) (\S.*?)(?: - .*)?",
        r"(?:FAIL|ERROR): (\S.*\))",
        r"--- FAIL: (\S+) \(.*\)",
        r"test (\S.*?) \.\.\. FAILED",
        r" *not ok \d+ - (.+)",
        r" *● (.+ › .+)",
    )
)
_UNITTEST_RAN = lazy_pattern(r"^Ran \d+ tests? in ", re.MULTILINE)
_PYTEST_END = lazy_pattern(
    r"^=*\s?((?:\d+ [a-z]+(?:, )?)+|no tests ran) in [\d.]+s\b.*$", re.MULTILINE
)
_UNITTEST_END = lazy_pattern(r"^FAILED \((.+)\)$", re.MULTILINE)
_OTHER_END = lazy_pattern(
    r"^(?:test result: FAILED\..* (\d+) failed;|Tests: +(\d+) failed|# fail (\d+)$| +(\d+) failing$).*",
    re.MULTILINE,
)
_COUNT = lazy_pattern(r"(\d+) (?:failed|errors?)\b|(?:failures|errors|successes)=(\d+)")
_NO_TEST = lazy_pattern(
    r"no tests ran|^Ran 0 tests|^NO TESTS RAN|no test specified|no test files\]$", re.MULTILINE
)
# The run was stopped early, or fails for more than its tests.
_MORE = lazy_pattern(r"^!+ .+ !+$|^FAIL |^ERROR: (?!.*\)$)", re.MULTILINE)
# One run of pytest or unittest to its end, and nothing else beside it.
_ALONE = lazy_pattern(
    r"(?:[^;&|<>`$()\n]*[ /\\])?(?:pytest|py\.test|unittest)(?: [^;&|<>`$()\n]*)?"
)
_STOPS_EARLY = lazy_pattern(r" (?:-[a-z]*f[a-z]*|--failfast)(?= |$)")
_MISSING = lazy_pattern(r"No module named '?[\w.]+'?|Cannot find (?:module|package) '[^'\n]+'")
_FAULT = lazy_pattern(
    r"^.*(?:\w(?:Error|Exception)\b|\b(?i:error|fatal|not found|failed|panic)\b).*$", re.MULTILINE
)
_VARYING = lazy_pattern(r"0x[0-9a-f]+|\d+(?:\.\d+)?(?=m?s\b)|\bin \d+\.\d+")
# A task that is about tests which fail: no failure of before is left to itself.
_ABOUT_TESTS = lazy_pattern(
    r"(?i)\b(?:tests?|specs?|checks?|suite|CI|build)\b.*\b(?:fail|pass|green|red\b|broken|fix|repair)"
    r"|\b(?:fail|pass|green|broken|fix|repair).*\b(?:tests?|specs?|checks?|suite|CI|build)\b"
)
_NAMED = 3


class Failures(Struct, frozen=True):
    """Tests that failed. `count` is told by the run itself; `is_whole`: each is named, nothing else fails."""

    names: tuple[str, ...] = ()
    count: int = 0
    is_whole: bool = False


class Compared(Struct, frozen=True):
    """Failures that were there before any change, and new ones; `is_same`: nothing fails that did not."""

    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    is_same: bool = False
    is_whole: bool = False
    """All is known by name, in both runs."""


def failures_in(event: CommandRan) -> Failures:
    text = event.output
    is_unittest = bool(_UNITTEST_RAN.search(text))
    expressions = _NAMES[1:2] if is_unittest else (_NAMES[0], *_NAMES[2:])
    names = dict.fromkeys(name for each in expressions for name in each.findall(text))
    last = text.rstrip().rpartition("\n")[2]
    ends = _UNITTEST_END if is_unittest else _PYTEST_END
    told = ends.findall(text) or [
        " ".join(f"{n} failed" for n in each if n) for each in _OTHER_END.findall(text)
    ]
    count = sum(int(one or other) for one, other in _COUNT.findall(" ".join(told)))
    is_alone = _ALONE.fullmatch(event.command.strip()) and not (
        is_unittest and _STOPS_EARLY.search(event.command)
    )
    is_whole = (
        bool(is_alone and ends.fullmatch(last) and not _MORE.search(text))
        and len(told) == 1
        and (event.exit_code, event.ended_by) == (1, "itself")
        and 0 < count == len(names)
    )
    return Failures(tuple(names), count or len(names), is_whole)


def compared(before: CheckEnded | None, event: Event, command: str) -> Compared:
    """Compare the failure of a check with its outcome before any change, if that is known."""
    first = None if before is None or before.command != command else before.event
    if not isinstance(first, CommandRan) or not isinstance(event, CommandRan):
        return Compared()
    if events.succeeded(first) or events.succeeded(event):
        return Compared()
    was, now = failures_in(first), failures_in(event)
    old = tuple(name for name in now.names if name in was.names)
    new = tuple(name for name in now.names if name not in was.names)
    is_whole = was.is_whole and now.is_whole
    is_same = (first.exit_code, first.ended_by) == (event.exit_code, event.ended_by) and (
        _VARYING.sub("", first.output) == _VARYING.sub("", event.output)
    )
    return Compared(old, new, is_same or (is_whole and not new), is_whole)


def is_about(task: str, names: Sequence[str]) -> bool:
    """Return whether a task is about failing tests, or names one of these or its file."""
    said = {word.removesuffix(".py") for word in re.findall(r"[\w.]+", task.replace("/", " "))}
    parts = {part for name in names for part in re.findall(r"\w+", name.partition("[")[0])}
    about = {part for part in parts if part.lower().startswith("test") and len(part) > len("tests")}
    return bool(_ABOUT_TESTS.search(task)) or not said.isdisjoint(about)


def told_before(event: Event, sees: str) -> str:
    """Word for the person what the check said before any change; `sees` says which program it ran."""
    match event:
        case CommandRan() if events.succeeded(event):
            is_none = _NO_TEST.search(event.output)
            return (
                "your check ran no test"
                if is_none
                else "your check passes already, before any change"
            )
        case CommandRan():
            return _told_failed(event, sees)
        case events.Refused() | events.Denied():
            return f"your check can't be run: {event.reason}"
        case _:
            return "your check was ended before it was through; it runs after the first change"


def _told_failed(event: CommandRan, sees: str) -> str:
    found = failures_in(event)
    missing = _MISSING.search(event.output)
    cause = f"{missing[0]}: {sees}".removesuffix(": ") if missing else ""
    if found.count:
        what = f"{found.count} {plural(found.count, 'test fails', 'tests fail')} before any change"
        return f"your check: {what}: {cause or some(found.names)}".removesuffix(": ")
    if cause:
        return f"your check fails before any change: {cause}"
    if _NO_TEST.search(event.output):
        fault = _FAULT.search(event.output)
        return "your check ran no test" + (f": {fault[0].strip()}" if fault else "")
    if event.ended_by == "time_limit":
        return f"your check did not end within {event.limit}, before any change"
    return f"your check fails before any change: {first_fault(event)}"


def first_fault(event: CommandRan) -> str:
    """Return the first line of an output that tells of a failure, else its last line, else the exit code."""
    if (found := _FAULT.search(event.output)) is not None:
        return plain_text.one_line(found[0].strip())
    last = event.output.rstrip().rpartition("\n")[2].strip()
    return plain_text.one_line(last) or f"exit code {event.exit_code}"


def some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
