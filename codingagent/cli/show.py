"""The command `show`: print a session turn by turn, what it waits for, and how to continue."""

import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

from msgspec import Struct, to_builtins

from codingagent.cli import layout
from codingagent.cli.layout import Line, Look, Span, look_of
from codingagent.cli.plain_output import fault_of, write_json_line
from codingagent.cli.tables import STATES, show_lines
from codingagent.model import plain_text, results
from codingagent.model.events import CommandRan, Event, MessageShown
from codingagent.model.journal_entries import AnswerSetAside, CheckEnded, PersonSaid, UndoEnded
from codingagent.model.session_state import Phase, Session
from codingagent.model.timeline import Asking, Entry, TurnTold
from codingagent.storage.session_file import document

# The screen shows the beginning of a task; all of it is in the request and in --json.
_TASK_LINES = 10

Counts = Mapping[str, tuple[int, int]]
"""The number of added and removed lines, by path."""


class Story(Struct, frozen=True):
    """Everything to show of a session.

    `counts` are by turn, as far as known. `requests` are the files that wait to be sent.
    """

    session: Session
    entries: tuple[Entry, ...]
    counts: Mapping[int, Counts]
    requests: tuple[Path, ...] = ()


def show_session(story: Story, *, json: bool) -> None:
    """Print a session's turns, results and changed files, and how to continue."""
    if json:
        turns = [_document(each) for each in story.entries if isinstance(each, TurnTold)]
        said = [to_builtins(each) for each in story.session.said]
        granted = sorted(story.session.granted)
        more = {"turns": turns, "said": said, "granted": granted}
        write_json_line(sys.stdout, {**document(story.session), **more})
        return
    look = look_of(sys.stdout)
    for line in story_lines(story, look, layout.local_now()):
        show_lines([line])


def story_lines(story: Story, look: Look, now: datetime) -> Iterator[Line]:
    """Yield the lines that describe a session to people."""
    yield from _head(story.session, look, now)
    for entry in story.entries:
        yield []
        yield from _entry(entry, story.counts, look, now)
    yield from _way_on(story, look, now)


def _head(session: Session, look: Look, now: datetime) -> Iterator[Line]:
    what = "run" if session.is_run else "session"
    turn = "" if session.is_run else f", turn {session.sequence}"
    phase = (session.phase.value, STATES[session.phase])
    yield from layout.hang(
        [(f"{what} ", ""), (session.session_id, "bold"), (": ", ""), phase, (turn, "")], look, 2
    )
    yield [(f"workspace {session.workspace}", "dim")]
    terms = f"policy {session.policy or 'as set'}, sandbox {session.sandbox or 'as set'}"
    since = layout.ago(session.created_at, now) if look.is_terminal else session.created_at
    yield from layout.hang([(f"{terms}, started {since}", "dim")], look, 2)
    for number, grant in enumerate(sorted(session.granted), start=1):
        yield from layout.hang([(f"always approved ({number}): ", "warn"), (grant, "")], look, 2)
    if session.is_run:
        return
    lines = plain_text.without_controls(session.task).strip("\n").split("\n")
    shown = lines[:_TASK_LINES] if look.is_terminal else lines
    for index, line in enumerate(shown):
        yield from layout.hang([(line if index else f"task {line}", "")], look, 2)
    if left := len(lines) - len(shown):
        yield [(f"{look.dots} {left} more {'line' if left == 1 else 'lines'}", "dim")]


def _entry(entry: Entry, counts: Mapping[int, Counts], look: Look, now: datetime) -> Iterator[Line]:
    when = layout.clock(entry.at, now) if look.is_terminal else entry.at[:16].replace("T", " ")
    if isinstance(entry, TurnTold):
        yield from _turn(entry, counts.get(entry.sequence, {}), when, look)
        return
    notes: tuple[str, ...] = ()
    if isinstance(entry, AnswerSetAside):
        heading, notes = "set aside", (f"{entry.name}: {entry.reason}",)
    elif isinstance(entry, UndoEnded):
        heading, notes = "undo", entry.notes
    elif isinstance(entry, PersonSaid):
        heading = "you said" if entry.text else "you attached"
        notes = (*entry.text.split("\n"), *entry.attached) if entry.text else entry.attached
    else:
        heading = "reopened"
    yield [(heading, "bold"), (f"  {when}", "dim")]
    for note in notes:
        yield from layout.hang([("  ", ""), (plain_text.without_controls(note), "")], look, 4)


def _turn(turn: TurnTold, counts: Counts, when: str, look: Look) -> Iterator[Line]:
    took = ""
    if turn.ended_at:
        seconds = layout.moment_of(turn.ended_at) - layout.moment_of(turn.at)
        took = f", {layout.duration(max(seconds.total_seconds(), 0))}"
    yield from layout.hang(
        [(f"turn {turn.sequence}", "bold"), (f"  {when}{took}  {turn.reply_name}", "dim")], look, 2
    )
    for item in turn.items:
        if isinstance(item, Asking):
            yield from _asking(item, look)
        elif isinstance(item, CheckEnded):
            yield from _result(results.check_result(item.event), item.event, look)
        else:
            yield from _result(results.result_of(item.event), item.event, look)
    for note in turn.notes:
        yield from layout.hang(
            [("  ", ""), ("note: ", "warn"), (plain_text.without_controls(note), "")], look, 4
        )
    changed = dict.fromkeys((*turn.changed, *counts))
    if changed:
        said = ", ".join(
            plain_text.without_controls(path) + _count(path, counts, look) for path in changed
        )
        yield from layout.hang([("  files changed: ", "dim"), (said, "")], look, 4)


def _count(path: str, counts: Counts, look: Look) -> str:
    if path not in counts:
        return ""
    added, removed = counts[path]
    return f" +{added} {look.minus}{removed}"


def _result(result: results.Result, event: Event, look: Look) -> Iterator[Line]:
    summary = plain_text.without_controls(fault_of(result))
    spans: list[Span] = [
        ("  ", ""),
        look.mark(result.success),
        (f" {result.command_type}: {summary}", ""),
    ]
    if isinstance(event, CommandRan):
        spans.append((f", {layout.duration(event.duration_s)}", "dim"))
    yield from layout.hang(spans, look, 4)
    if isinstance(event, MessageShown):
        for line in plain_text.on_screen(event.text).split("\n"):
            yield from layout.hang([("    ", ""), (line, "")], look, 4)


def _asking(asking: Asking, look: Look) -> Iterator[Line]:
    question, answered = asking.asked.question, asking.answered
    said = "waits for an answer" if answered is None else answered.answer.said
    subject = plain_text.one_line(question.subject)
    mark = "?" if look.has_marks else "asked "
    spans = [
        ("  ", ""),
        (mark, "warn"),
        (f" {question.tag}: {subject} ({'; '.join(question.reasons)}): ", ""),
    ]
    yield from layout.hang([*spans, (plain_text.without_controls(said), "bold")], look, 4)


def _way_on(story: Story, look: Look, now: datetime) -> Iterator[Line]:
    session = story.session
    resume = f"codingagent resume {session.session_id}"
    yield []
    match session.phase:
        case Phase.AWAITING_ANSWER:
            since = f", since {layout.ago(session.updated_at, now)}" if look.is_terminal else ""
            yield from layout.hang(
                [(f"request {session.sequence} waits for its answer{since}:", "name")], look, 2
            )
            for path in story.requests:
                yield [(f"  {path}", "bold")]
            yield [("then: ", "dim"), (resume, "")]
        case Phase.AWAITING_APPROVAL:
            yield [("it waits for your approval:", "warn")]
            yield [(f"  codingagent approve {session.session_id}", "")]
            yield [(f"  codingagent deny {session.session_id}", "")]
        case Phase.EXECUTING | Phase.REQUEST_DUE:
            yield from layout.hang(
                [("running, or interrupted; if it was interrupted:", "warn")], look, 2
            )
            yield [(f"  {resume}", "")]
        case Phase.COMPLETE if session.is_run:
            yield [("done", "good")]
        case Phase.COMPLETE:
            yield [("done", "good"), ("; to continue anyway:", "dim")]
            yield [(f"  {resume}", "")]


def _document(turn: TurnTold) -> dict[str, object]:
    return {
        "sequence": turn.sequence,
        "reply": turn.reply_name,
        "at": turn.at,
        "endedAt": turn.ended_at,
        "results": [_told(results.result_of(event), event) for event in turn.results],
        "check": None
        if turn.checked is None
        else _told(results.check_result(turn.checked), turn.checked),
        "changed": list(turn.changed),
        "notes": list(turn.notes),
    }


def _told(result: results.Result, event: Event) -> dict[str, object]:
    document: dict[str, object] = to_builtins(result)
    if isinstance(event, CommandRan):
        document |= {"exit_code": results.exit_code_of(event), "duration_s": event.duration_s}
    return document
