"""What the output of a check says: which tests failed, and whether they failed before any change, too."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from codingagent.model import events, plain_text
from codingagent.model.events import CommandRan, Event
from codingagent.model.patterns import alternatives, sections
from codingagent.model.plain_text import plural, some
from codingagent.model.session_state import Session

_SECTIONS = sections(__file__)
# Of a runner, by kind: expressions, as lines.
_RUNNERS: dict[str, dict[str, str]] = {}
for _runner, _kind, _pattern in re.findall(r" +(\S+) +(\S+) +(.*)\n", _SECTIONS.pop("runners")):
    for _each in ("test", "block") if _kind == "both" else (_kind,):
        _rows = _RUNNERS.setdefault(_runner, {})
        _rows[_each] = f"{_rows.get(_each, '')}{_pattern}\n"
_NAME, _UNLOADED = (
    alternatives("".join(rows.get(kind, "") for rows in _RUNNERS.values()), re.MULTILINE)
    for kind in ("test", "load")
)
# Where a failure begins in the output of a runner, and where it ends at the latest.
_BLOCKS = [
    (alternatives(rows["block"], re.MULTILINE), alternatives(rows.get("ends", r"\Z"), re.MULTILINE))
    for rows in _RUNNERS.values()
    if "block" in rows
]
_SAYS = {name: alternatives(lines, re.MULTILINE) for name, lines in _SECTIONS.items()}
# By exit status, what a shell prints of a program that it does not find.
_LOST_BY = {127: _SAYS["lost"], 1: _SAYS["lost by cmd"], 9009: _SAYS["lost by cmd"]}
NAMED = 3
_BRIEF_CHARACTERS = 6_000


class Failures(Struct, frozen=True):
    """Tests that failed. `count` is told by the run itself; `is_whole`: each is named, nothing else fails."""

    names: tuple[str, ...] = ()
    count: int = 0
    is_whole: bool = False
    times: Mapping[str, int] = {}
    """How often each name was printed: tests in several files may have the same."""
    unloaded: tuple[str, ...] = ()
    """Those of the names that are files of tests: none of their tests ran."""


class Compared(Struct, frozen=True):
    """Failures that were there before any change, and new ones; `is_same`: nothing fails that did not."""

    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    is_same: bool = False
    counts_not: bool = False
    """All is known by name, in both runs, and the task is not about these tests."""


def failures_in(event: CommandRan) -> Failures:
    text, command = event.output, event.command.strip()
    times = Counter(_named(found) for found in _NAME.finditer(text))
    # Go says of a test that a part of it failed.
    wholes = {name.rpartition("/")[0] for name in times}
    names = tuple(name for name in times if name not in wholes)
    ends = _SAYS["end"].findall(text)
    count = sum(int(one or other) for end in ends for one, other in _SAYS["count"].findall(end))
    is_whole = (
        (event.exit_code, event.ended_by) == (1, "itself")
        and 0 < count == len(names)
        and ends == [text.rstrip().rpartition("\n")[2]]
        and not (_SAYS["more than tests"].search(text) or _SAYS["stops early"].search(command))
        and _SAYS["alone"].fullmatch(command) is not None
    )
    unloaded = tuple(dict.fromkeys(map(_named, _UNLOADED.finditer(text))))
    return Failures(names, count or len(names), is_whole, times, unloaded)


def _named(found: re.Match[str]) -> str:
    """Return the name that a row of a runner caught, on one line."""
    return " > ".join(" ".join(part.split()).removeprefix("› ") for part in found.groups() if part)


def _failures(text: str) -> list[tuple[int, int, str]]:
    """Return where each failure begins and ends, and the name in its head, in order."""
    found = [
        (head.start(), end.start() if (end := ends.search(text, head.end())) else len(text), head)
        for block, ends in _BLOCKS
        for head in block.finditer(text)
    ]
    found.sort(key=lambda each: each[0])
    nexts = [*(begin for begin, _, _ in found), len(text)][1:]
    parts = zip(found, nexts, strict=False)
    return [(begin, min(end, after), _named(head)) for (begin, end, head), after in parts]


def compared(session: Session) -> Compared:
    """Compare the last failure of the check with its outcome before any change, if that is known."""
    before, event = session.check_before, session.last_checked
    first = before.event if before and before.command == session.checked_by else None
    if not isinstance(first, CommandRan) or not isinstance(event, CommandRan):
        return Compared()
    if events.succeeded(first) or events.succeeded(event):
        return Compared()
    was, now = failures_in(first), failures_in(event)
    old = tuple(name for name in now.names if now.times[name] <= was.times.get(name, 0))
    new = tuple(name for name in now.names if now.times[name] > was.times.get(name, 0))
    is_whole = was.is_whole and now.is_whole
    is_same = (first.exit_code, first.ended_by) == (event.exit_code, event.ended_by) and (
        _SAYS["varying"].sub("", first.output) == _SAYS["varying"].sub("", event.output)
    )
    said = (session.task, *(each.text for each in session.said))
    counts_not = is_whole and not (new or any(is_about(text, old) for text in said))
    return Compared(old, new, is_same or (is_whole and not new), counts_not)


def is_about(task: str, names: Sequence[str]) -> bool:
    """Return whether a task is about failing tests, or names one of these or its file."""
    said = {word.removesuffix(".py") for word in re.findall(r"[\w.]+", task.replace("/", " "))}
    parts = {part for name in names for part in re.findall(r"\w+", name.partition("[")[0])}
    about = {part for part in parts if part.lower().startswith("test") and len(part) > len("tests")}
    return bool(_SAYS["about tests"].search(task)) or not said.isdisjoint(about)


def is_news(event: Event) -> bool:
    """Return whether the model is to know what the check said before any change: that it fails."""
    return isinstance(event, CommandRan) and not (events.succeeded(event) or lost_program(event))


def failure_before(session: Session) -> CommandRan | None:
    """Return the failure of the check before any change, for the first request that asks for edits."""
    before = session.check_before if session.is_first_wish else None
    event = before.event if before and before.command == session.check else None
    return event if isinstance(event, CommandRan) and is_news(event) else None


def told_before(event: Event, sees: str) -> str:
    """Word for the person what the check said before any change; `sees` says which program it ran."""
    if isinstance(event, events.Refused | events.Denied):
        why = event.fact if isinstance(event, events.Refused) else event.reason
        return f"your check can't be run: {why}"
    if not isinstance(event, CommandRan):
        return "your check was ended before it was through; it runs after the first change"
    has_no_test = _SAYS["no test"].search(event.output)
    if events.succeeded(event) and not has_no_test:
        counted = passed_in(event)
        return f"your check passes, before any change{': ' * bool(counted)}{counted}"
    if lost_program(event):
        return f"your check can't start: {sees}"
    missing, fault = _SAYS["missing"].search(event.output), _stated(event.output)
    found, parts = failures_in(event), _failures(event.output)
    unloaded = [part for part in parts if any(name in part[2] for name in found.unloaded)]
    cause = _stated(event.output[slice(*unloaded[0][:2])].partition("\n")[2]) if unloaded else ""
    if missing:
        cause = f"{cause or missing[0]}: {sees}".removesuffix(": ")
    if count := found.count:
        lost = len(found.unloaded)
        whats = [f"{count - lost} {plural(count - lost, 'test fails', 'tests fail')}"] * (count > lost)
        if lost:
            whats.append(f"{lost} {plural(lost, 'test file', 'test files')} did not load")
        names = some(found.names, NAMED) if count > 1 or lost or not cause else ""
        what = f"{' and '.join(whats)} before any change"
        return f"your check: {what}: {'; '.join(filter(None, (names, cause)))}".removesuffix(": ")
    if has_no_test:
        return f"your check ran no test: {fault}".removesuffix(": ")
    if event.ended_by == "time_limit":
        return f"your check did not end within {event.limit}, before any change"
    line = cause or plain_text.one_line(fault or event.output.rstrip().rpartition("\n")[2].strip())
    return f"your check fails before any change: {line or f'exit code {event.exit_code}'}"


def _stated(text: str) -> str:
    """Return the line that states what is wrong; empty: none does."""
    found = _SAYS["stated"].search(text) or _SAYS["fault"].search(text)
    return " ".join(found[found.lastindex or 0].split()) if found else ""


def passed_in(event: CommandRan) -> str:
    """Return what runs of tests that succeeded say at their ends, summed up; empty: none says something."""
    found = _SAYS["passed in"].findall(event.output) if events.succeeded(event) else ()
    said = ["".join(each).strip() for each in found]
    if not all(map(_SAYS["counts"].fullmatch, said)):
        return said[-1]
    sums = Counter[str]()  # cargo and workspaces of npm have an end for each of their runs
    for count, what in re.findall(r"(\d+) ([a-z]+)", "\n".join(said)):
        sums[what] += int(count)
    return ", ".join(f"{count} {what}" for what, count in sums.items() if count)


def first_failure(output: str) -> str:
    """Return the first failure of a run of tests; without one all of the output."""
    found = _failures(output)
    return output[slice(*found[0][:2])].rstrip() if found else output


def lost_program(event: CommandRan) -> str:
    """Return the program that a shell did not find; empty if that is not why the check failed."""
    pattern = _LOST_BY.get(event.exit_code)
    found = pattern.search(event.output) if pattern else None
    return found[1] if found else ""


def left_of(event: CommandRan, check: CommandRan, before: Sequence[str] = ()) -> str:
    """Return the output of a command without the failures that `brief` shows of a check, too."""
    ends = [(each.exit_code, each.ended_by) for each in (event, check)]
    if event.command.strip() == check.command.strip() and ends[0] == ends[1]:
        return ""
    output, shown = event.output, _SAYS["varying"].sub("", brief(check, before))
    if events.succeeded(event) or events.succeeded(check):
        return output
    for begin, end, _ in reversed(_failures(output) or [(0, len(output), "")]):
        if _SAYS["varying"].sub("", output[begin:end]).strip() in shown:
            output = output[:begin] + output[end:]
    return output


def brief(event: CommandRan, before: Sequence[str] = ()) -> str:
    """Return what a model needs: failures whole, new ones first, equal ones counted, the end."""
    if events.succeeded(event):
        last = "\n".join(event.output.strip().split("\n")[-NAMED:])
        return passed_in(event) or plain_text.clip_middle(last, _BRIEF_CHARACTERS // 10)
    text = _SAYS["warnings"].sub("", event.output)
    text = "\n".join(line for line in text.split("\n") if not _SAYS["passed"].fullmatch(line))
    if not (parts := _failures(text)):
        return plain_text.clip_middle(text, _BRIEF_CHARACTERS)
    heads = {text[begin:end]: name for begin, end, name in parts}
    ends = [end for _, end, _ in parts]
    begins = [*(begin for begin, _, _ in parts[1:]), len(text)]
    first = text[: parts[0][0]]
    rest = "".join(text[end:begin] for end, begin in zip(ends, begins, strict=True))
    rest = _SAYS["said again"].sub(r"\1", rest)
    # What a head has of a name: the test without its file, or the file.
    old = tuple(f" {name.partition('::')[2].replace('::', '.') or name}" for name in before)
    failures = _folded(sorted(heads, key=lambda part: f" {heads[part]}".endswith(old)), heads)
    around = [plain_text.clip_middle(each, _BRIEF_CHARACTERS // 4) for each in (first, rest)]
    room, shown = _BRIEF_CHARACTERS - sum(map(len, around)), list[str]()
    while failures and (not shown or len(failures[0]) <= room):
        shown.append(plain_text.clip_middle(failures.pop(0), max(room, 0)))
        room -= len(shown[-1])
    left = len(failures)
    more = f"… {left} more {plural(left, 'failure')} left out\n" if left else ""
    return "".join((around[0], *shown, more, around[1]))


def _folded(failures: Sequence[str], heads: Mapping[str, str]) -> list[str]:
    """Return the failures of which none ends as another one; each says which others do."""
    found: dict[str, list[str]] = {}
    for failure in failures:
        # The last lines say what is wrong; those before, by which test.
        end = _SAYS["digits"].sub("0", "\n".join(failure.rstrip().split("\n")[-3:]))
        found.setdefault(end, []).append(failure)
    folded = []
    for first, *others in found.values():
        names = some([heads[each] for each in others], NAMED)
        told = f"{first.rstrip()}\n… {len(others)} more fail in the same way: {names}\n\n"
        folded.append(told if others else first)
    return folded
