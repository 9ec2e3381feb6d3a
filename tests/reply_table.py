"""Replies as chats give them, executed for real: `python -m tests.reply_table` prints what came of each.

A folder of `tests/replies/` is a case: `reply.txt` as it was written, `before/` with the workspace, and
`after/` with every file that is there then, or `problem.txt` with words of the problem that it gets.
Each reply that is right is also sent through every mangling. What may come of it: the right bytes and
commands; or nothing of a block was done and a problem names it (asked again); or, in a text for people,
the body to the byte as it came, for it may be meant so. Other bytes, a command that was not written, or a
missing result without a problem must never be.
"""

import contextlib
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from codingagent.agent.context import OperationRequest, bare_context, subject_of
from codingagent.agent.executor import Executor
from codingagent.editing import file_kinds
from codingagent.model import encoding
from codingagent.model.approval import Question
from codingagent.model.events import (
    CommandRan,
    Event,
    FileEdited,
    FileRequested,
    Finished,
    MessageShown,
    Refused,
)
from codingagent.model.observations import PLAIN, Extras, Outcome
from codingagent.model.results import CUT_OFF
from codingagent.policy import rules
from codingagent.process.bubblewrap import Unconfined
from codingagent.process.runner import Runner
from codingagent.protocols.tags import repair, reply
from codingagent.protocols.tags.reply import Problem, Reply, Step
from codingagent.workspace.workspace import Workspace
from tests.manglings import MANGLINGS

REPLIES = Path(__file__).with_name("replies")


class Came(Enum):
    """What came of a reply."""

    RIGHT = "right"
    AS_WRITTEN = "as written"
    ASKED = "asked again"
    WRONG = "wrong"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class Case:
    """A reply, the workspace that it finds, and the one that it should leave, or its problem."""

    name: str
    reply: str
    before: dict[str, bytes]
    after: dict[str, bytes]
    problem: str
    is_recorded: bool = False
    """A model's own answer, as it came; the others are written after such."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a reply did."""

    files: dict[str, bytes]
    events: tuple[Event, ...]
    notes: tuple[str, ...]
    is_request: bool

    @property
    def acts(self) -> list[tuple[str, ...]]:
        """What was asked for besides files: commands and reading, and that there was an end."""
        told: list[tuple[str, ...]] = []
        for event in self.events:
            if isinstance(event, CommandRan):
                told.append(("ran", event.command))
            elif isinstance(event, FileRequested):
                told.append(("read", event.asked))
            elif isinstance(event, Finished | MessageShown):
                told.append((event.class_name,))
        return told

    @property
    def problems(self) -> list[Refused]:
        return [event for event in self.events if isinstance(event, Refused)]


class _Echo(Runner):
    """Runs nothing and says so: the words of a command are what counts here."""

    def __init__(self) -> None:
        super().__init__(Unconfined(), {})

    def run(
        self,
        command: str,
        folder: int | str,
        timeout_s: float | None,
        show: Callable[[str], None],
        extras: Extras = PLAIN,
    ) -> Outcome:
        del command, folder, timeout_s, show, extras
        return Outcome(0, "", 0)


def cases() -> list[Case]:
    """Return all cases, in the order of their names."""
    found = []
    for folder in sorted(path.parent for path in REPLIES.glob("**/reply.txt")):
        if folder.parent.name == "formats":
            continue  # these hold no block of ours
        problem = folder / "problem.txt"
        found.append(
            Case(
                folder.name,
                (folder / "reply.txt").read_bytes().decode(),
                _files(folder / "before"),
                _files(folder / "after"),
                problem.read_text("utf-8").strip() if problem.exists() else "",
                folder.parent.name == "answers",
            )
        )
    return found


def _files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def execute(text: str, before: dict[str, bytes], root: Path) -> Done:
    """Executes a reply in an empty folder with these files, and gives what it did."""
    for name, data in before.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    decoded = encoding.decode_reply(text.encode(), "utf-8")
    assert decoded is not None
    found = reply.read(decoded[0])
    if found.has_outbox:
        return Done(_files(root), (), found.notes, True)
    with contextlib.closing(Workspace(root)) as workspace:
        return _done(found, workspace, root)


def _done(found: Reply, workspace: Workspace, root: Path) -> Done:
    agent = Executor(bare_context(workspace, _Echo(), rules.PRESETS["permissive"]))
    events: list[Event] = []
    for index, item in enumerate(found.items):
        if isinstance(item, Problem):
            events.append(Refused(item.kind, item.fact, item.detail, notes=item.notes, advice=item.advice))
            continue
        rest = [later.operation for later in found.items[index + 1 :] if isinstance(later, Step)]
        path = subject_of(item.operation)
        edits = [each for each in events if isinstance(each, FileEdited) and each.path == path]
        event = agent.perform(OperationRequest(index, item.operation, edits, later=partial(tuple, rest)))
        assert not isinstance(event, Question), "nothing is asked"
        events.append(replace(event, notes=item.notes + event.notes))
    return Done(_files(root), tuple(events), found.notes, False)


def read_text(text: str) -> str:
    """Return the text that the grammar has read in the end, as it stood after all repairs of tags."""
    return repair.read(text).text


def judge(clean: Done, before: dict[str, bytes], got: Done) -> Came:
    """Compares what a mangled reply did with what it was to do."""
    asked = got.is_request or bool(got.problems)
    names = {*clean.files, *before, *got.files}
    for name in names:
        now = got.files.get(name)
        if now != clean.files.get(name) and now != before.get(name):
            return Came.WRONG
    rest = iter(clean.acts)
    if any(act not in rest for act in got.acts):
        return Came.WRONG
    if got.files == clean.files and got.acts == clean.acts and not asked:
        return Came.RIGHT
    if not asked:
        return Came.SILENT
    return Came.ASKED if got.is_request or _names_what_is_missing(clean, got) else Came.SILENT


def _names_what_is_missing(clean: Done, got: Done) -> bool:
    """Tells whether a problem stands for each kind of block that was not executed; or for the whole reply."""
    tags = {problem.kind for problem in got.problems}
    # What stands behind an unclosed block is part of it: the one problem is about all of that.
    last = got.problems[-1].reason
    if "REPLY" in tags or "has no closing tag" in last or last.startswith(CUT_OFF):
        return True
    missing, come = (
        Counter(type(event).__name__ for event in done.events if not isinstance(event, Refused))
        for done in (clean, got)
    )
    missing.subtract(come)
    owed = {
        "FileCreated": "CREATE_FILE",
        "FileEdited": "EDIT_FILE",
        "FileDeleted": "DELETE_FILE",
        "FileMoved": "MOVE_FILE",
        "CommandRan": "RUN_COMMAND",
        "FileRequested": "READ_FILE",
        "MessageShown": "MESSAGE",
        "Finished": "DONE",
    }
    return all(owed[kind] in tags for kind, count in missing.items() if count > 0)


@dataclass(frozen=True, slots=True)
class Row:
    """One case through one mangling."""

    case: str
    mangling: str
    came: Came
    done: Done
    text: str


def run_all(names: Iterable[str] = (), only: str = "", one_in: int = 1) -> list[Row]:
    """Send every case through every mangling, or those named, or each case through one in so many."""
    rows: list[Row] = []
    wanted = list(names) or list(MANGLINGS)
    with tempfile.TemporaryDirectory() as folder:
        for place, case in enumerate(cases()):
            if case.problem or only not in case.name:
                continue
            clean = execute(case.reply, case.before, _new(folder, place))
            chosen = wanted[place % one_in :: one_in]
            if case.is_recorded and not names:
                # Each of them through some; together through all of them, many times.
                chosen = wanted[place % (one_in * _SAMPLE) :: one_in * _SAMPLE]
            for number, name in enumerate(chosen):
                text = MANGLINGS[name](case.reply)
                if name != "none" and text == case.reply:
                    continue
                root = _new(folder, place, number)
                done = execute(text, case.before, root)
                came = judge(clean, case.before, done)
                if came is Came.WRONG and _is_text_as_written(text, case, clean, done, folder):
                    came = Came.AS_WRITTEN
                rows.append(Row(case.name, name, came, done, text))
    return rows


def _is_text_as_written(text: str, case: Case, clean: Done, done: Done, folder: str) -> bool:
    """Tell whether all that differs is text for people that was taken letter by letter."""
    differs = {
        name
        for name in {*clean.files, *done.files}
        if done.files.get(name) not in (clean.files.get(name), case.before.get(name))
    }
    letters = execute(to_the_letter(text), case.before, _new(folder, "letters", hash(text)))
    return all(
        file_kinds.is_prose(name) and done.files.get(name) == letters.files.get(name) for name in differs
    )


def to_the_letter(text: str) -> str:
    """Give each block an end of its own, so that its body is taken letter by letter."""
    opened = re.sub(
        r"^([ \t]*)\[(CREATE_FILE|EDIT_FILE) ([^\n]*)\][ \t]*$",
        r'\1[\2 \3 until="T"]',
        text,
        flags=re.MULTILINE,
    )
    return re.sub(r"^([ \t]*)\[/(CREATE_FILE|EDIT_FILE)\][ \t]*$", r"\1[/\2 T]", opened, flags=re.MULTILINE)


# There are many recorded answers, and a test run has its limits.
_SAMPLE = 9


def _new(folder: str, *numbers: object) -> Path:
    root = Path(folder, "-".join(map(str, numbers)))
    root.mkdir()
    return root


def table(rows: Iterable[Row]) -> str:
    """Return the counts for each mangling, and of all."""
    counts: dict[str, Counter[Came]] = defaultdict(Counter)
    for row in rows:
        counts[row.mangling][row.came] += 1
        counts["all"][row.came] += 1
    lines = [f"{'mangling':40} {'cases':>6} " + " ".join(f"{came.value:>11}" for came in Came)]
    for name, count in counts.items():
        if name != "all":
            lines.append(_line(name, count))
    lines.append(_line("all", counts["all"]))
    right = counts["all"][Came.RIGHT] / max(counts["all"].total(), 1)
    lines.append(f"right: {right:.1%}")
    return "\n".join(lines)


def _line(name: str, count: Counter[Came]) -> str:
    return f"{name:40} {count.total():>6} " + " ".join(f"{count[came]:>11}" for came in Came)


def main() -> int:
    """Prints the table; gives 1 if anything is wrong or silent. With -v each that is not right is named."""
    rows = run_all()
    sys.stdout.write(table(rows) + "\n")
    for row in rows:
        if row.came in (Came.WRONG, Came.SILENT) or ("-v" in sys.argv and row.came is Came.ASKED):
            reasons = "; ".join(f"{p.kind}: {p.reason[:160]}" for p in row.done.problems)
            sys.stdout.write(f"{row.came.value}: {row.case} / {row.mangling}: {reasons}\n")
    return int(any(row.came in (Came.WRONG, Came.SILENT) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
