"""The command `show`: print a session turn by turn, what it waits for, and how to continue."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path

from msgspec import to_builtins

from codingagent.cli import layout
from codingagent.cli.hints import runnable
from codingagent.cli.layout import Line, Look, look_of
from codingagent.cli.plain_output import fault_of, write_json_line
from codingagent.cli.tables import STATES, show_lines
from codingagent.model import plain_text, results
from codingagent.model.events import CommandRan, Event, MessageShown
from codingagent.model.journal_entries import (
    AnswerSetAside,
    CheckEnded,
    PersonSaid,
    SessionClosed,
    UndoEnded,
)
from codingagent.model.session_state import Phase, Session
from codingagent.model.timeline import Asking, Entry, TurnTold
from codingagent.storage.session_file import document

# The screen shows the beginning of a task; all of it is in the request and in --json.
_TASK_LINES = 10

Counts = Mapping[str, tuple[int, int]]
"""The number of added and removed lines, by path."""

_Hung = tuple[Line, int]
"""A line, and the indent of those into which it is wrapped."""


def show_session(
    session: Session,
    entries: Sequence[Entry],
    counts: Mapping[int, Counts],
    requests: Sequence[Path],
    *,
    json: bool,
) -> None:
    """Print a session's turns, results and changed files, and how to continue.

    `counts` are by turn, as far as known. `requests` are the files that wait to be sent.
    """
    if json:
        turns = [_document(each) for each in entries if isinstance(each, TurnTold)]
        said = [to_builtins(each) for each in session.said]
        more = {"turns": turns, "said": said, "granted": sorted(session.granted)}
        write_json_line(sys.stdout, {**document(session), **more})
        return
    look, now = look_of(sys.stdout), layout.local_now()
    parts = [_head(session, look, now)]
    parts += [_entry(each, counts, look, now) for each in entries]
    parts += [_way_on(session, requests, look, now)]
    show_lines(_wrapped(chain(*parts), look))


def _wrapped(lines: Iterable[_Hung], look: Look) -> Iterator[Line]:
    for line, indent in lines:
        clean = [(plain_text.on_screen(text), style) for text, style in line]
        # Without an indent it is a path or a command: never wrapped, so that it can be copied whole.
        yield from layout.hang(clean, look, indent) if indent else [clean]


def _head(session: Session, look: Look, now: datetime) -> Iterator[_Hung]:
    what = "run" if session.is_run else "session"
    turn = "" if session.is_run else f", turn {session.sequence}"
    phase = (session.phase.value, STATES[session.phase])
    yield [(f"{what} ", ""), (session.session_id, "bold"), (": ", ""), phase, (turn, "")], 2
    yield [(f"workspace {session.workspace}", "dim")], 0
    terms = f"policy {session.policy or 'as set'}, sandbox {session.sandbox or 'as set'}"
    since = layout.ago(session.created_at, now) if look.is_terminal else session.created_at
    yield [(f"{terms}, started {since}", "dim")], 2
    for number, grant in enumerate(sorted(session.granted), start=1):
        yield [(f"always approved ({number}): ", "warn"), (grant, "")], 2
    if session.is_run:
        return
    lines = session.task.strip("\n").split("\n")
    shown = lines[:_TASK_LINES] if look.is_terminal else lines
    for index, line in enumerate(shown):
        yield [(line if index else f"task {line}", "")], 2
    if left := len(lines) - len(shown):
        yield [(f"{look.dots} {left} more {plain_text.plural(left, 'line')}", "dim")], 0


def _entry(
    entry: Entry, counts: Mapping[int, Counts], look: Look, now: datetime
) -> Iterator[_Hung]:
    yield [], 0
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
        heading = "closed" if isinstance(entry, SessionClosed) else "reopened"
    yield [(heading, "bold"), (f"  {when}", "dim")], 0
    for note in notes:
        yield [("  ", ""), (note, "")], 4


def _turn(turn: TurnTold, counts: Counts, when: str, look: Look) -> Iterator[_Hung]:
    took = ""
    if turn.ended_at:
        seconds = datetime.fromisoformat(turn.ended_at) - datetime.fromisoformat(turn.at)
        took = f", {layout.duration(max(seconds.total_seconds(), 0))}"
    yield [(f"turn {turn.sequence}", "bold"), (f"  {when}{took}  {turn.reply_name}", "dim")], 2
    for item in turn.items:
        if isinstance(item, Asking):
            yield from _asking(item, look)
        elif isinstance(item, CheckEnded):
            yield from _result(results.check_result(item.event), item.event, look)
        else:
            yield from _result(results.result_of(item.event), item.event, look)
    for note in turn.notes:
        yield [("  ", ""), ("note: ", "warn"), (note, "")], 4
    changed = dict.fromkeys((*turn.changed, *counts))
    if changed:
        told = {path: f" {layout.counted(*count, look)}" for path, count in counts.items()}
        said = ", ".join(path + told.get(path, "") for path in changed)
        yield [("  files changed: ", "dim"), (said, "")], 4


def _result(result: results.Result, event: Event, look: Look) -> Iterator[_Hung]:
    said = (f" {result.kind}: {fault_of(result)}", "")
    took = f", {layout.duration(event.duration_s)}" if isinstance(event, CommandRan) else ""
    yield [("  ", ""), look.mark(result.success), said, (took, "dim")], 4
    if isinstance(event, MessageShown):
        for line in event.text.split("\n"):
            yield [("    ", ""), (line, "")], 4


def _asking(asking: Asking, look: Look) -> Iterator[_Hung]:
    question, answered = asking.asked.question, asking.answered
    said = "waits for an answer" if answered is None else answered.answer.said
    subject = plain_text.one_line(question.subject)
    mark = ("?" if look.has_marks else "asked ", "warn")
    what = (f" {question.kind}: {subject} ({'; '.join(question.reasons)}): ", "")
    yield [("  ", ""), mark, what, (said, "bold")], 4


def _way_on(
    session: Session, requests: Sequence[Path], look: Look, now: datetime
) -> Iterator[_Hung]:
    resume = runnable(f"codingagent resume {session.session_id}")
    yield [], 0
    match session.phase:
        case Phase.AWAITING_ANSWER:
            since = f", since {layout.ago(session.updated_at, now)}" if look.is_terminal else ""
            yield [(f"request {session.sequence} waits for its answer{since}:", "name")], 2
            for path in requests:
                yield [(f"  {path}", "bold")], 0
            yield [("then: ", "dim"), (resume, "")], 0
        case Phase.AWAITING_APPROVAL:
            yield [("it waits for your approval:", "warn")], 0
            yield [(runnable(f"  codingagent approve {session.session_id}"), "")], 0
            yield [(runnable(f"  codingagent deny {session.session_id}"), "")], 0
        case Phase.EXECUTING | Phase.REQUEST_DUE:
            yield [("running, or interrupted; if it was interrupted:", "warn")], 2
            yield [(f"  {resume}", "")], 0
        case Phase.COMPLETE if session.is_run:
            yield [("done", "good")], 0
        case Phase.COMPLETE:
            ended = ("closed", "dim") if session.is_closed else ("done", "good")
            yield [ended, ("; to continue anyway:", "dim")], 0
            yield [(f"  {resume}", "")], 0


def _document(turn: TurnTold) -> dict[str, object]:
    return {
        "sequence": turn.sequence,
        "reply": turn.reply_name,
        "at": turn.at,
        "endedAt": turn.ended_at,
        "results": [_told(results.result_of(event), event) for event in turn.results],
        "check": turn.checked and _told(results.check_result(turn.checked), turn.checked),
        "changed": list(turn.changed),
        "notes": list(turn.notes),
    }


def _told(result: results.Result, event: Event) -> dict[str, object]:
    document: dict[str, object] = to_builtins(result)
    if isinstance(event, CommandRan):
        document |= {"exit_code": results.exit_code_of(event), "duration_s": event.duration_s}
    return document
