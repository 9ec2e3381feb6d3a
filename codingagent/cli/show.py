"""The command `show`: print a session turn by turn, what it waits for, and how to continue."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path

from msgspec import to_builtins

from codingagent.cli import layout
from codingagent.cli.hints import runnable
from codingagent.cli.layout import Look, look_of
from codingagent.cli.plain_output import write_json_line
from codingagent.cli.record_words import Hung, laid_out, lines_of
from codingagent.cli.stdio import be_utf8
from codingagent.cli.tables import STATES, show_lines
from codingagent.model import events
from codingagent.model import journal_entries as entries
from codingagent.model.journal_entries import Record
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import on_screen
from codingagent.model.session_fold import states
from codingagent.model.session_state import Phase, Session
from codingagent.storage.journal import document
from codingagent.storage.mailbox import Mailbox

Counts = Mapping[str, tuple[int, int]]
"""The number of added and removed lines, by path."""

# Records that say nothing to who looks back, or that another one tells of.
_LEFT_OUT = (
    *(entries.InboxFound, entries.RequestWritten, entries.OperationStarted),
    *(entries.CheckpointTaken, entries.UndoBegan, entries.SessionRenamed),
)
_HEADINGS = (
    *(entries.SessionStarted, entries.RunStarted),
    *(entries.AnswerTaken, entries.AnswerSetAside, entries.PersonSaid),
    *(entries.UndoEnded, entries.SessionReopened, entries.SessionClosed),
)


def show_as_json(session: Session, records: Iterable[Record]) -> None:
    """Print the state of a session, and its records as `log` prints them."""
    said = [to_builtins(each) for each in session.said]
    more = {"said": said, "granted": sorted(session.granted)}
    told = [to_builtins(record) for record in records]
    write_json_line(sys.stdout, {**document(session), **more, "records": told})


# Of the record of a session, these tell a colleague nothing.
_OF_THE_PERSON = (
    *(*_LEFT_OUT, entries.SessionStarted, entries.AnswerSetAside, entries.GrantsRevoked),
    *(entries.RefreshAsked, entries.SessionReopened, entries.SessionClosed),
)
_WIDE = Look(1_000_000, has_marks=True)
_BACKTICKS = lazy_pattern("`+")


def show_as_markdown(
    session: Session, records: Iterable[Record], turns: Mapping[int, Counts]
) -> None:
    """Print what a session did as Markdown: for a pull request, or a colleague. Counts are by turn.

    What anyone said or ran is code in it: no link, image, tag or name of a person comes from there.
    """
    be_utf8(sys.stdout)
    text = "\n".join(_markdown(session, records, turns))
    sys.stdout.write(re.sub(r"\n{3,}", "\n\n", f"{text.strip()}\n"))


def _markdown(
    session: Session, records: Iterable[Record], turns: Mapping[int, Counts]
) -> Iterator[str]:
    task = on_screen(session.task).strip()
    yield f"# {_code(session.name or task.partition(chr(10))[0] or session.session_id)}"
    yield from _fenced(task) if session.name or "\n" in task else ()
    for record, state in states(records):
        match record:
            case entries.AnswerTaken():
                yield from ("", f"## Turn {record.sequence}", "")
            case entries.OperationEnded(event=events.MessageShown(text=text)):
                yield from _fenced(text)
            case entries.TurnEnded():
                last = state.results[-1] if state.results and state.is_complete else None
                if isinstance(last, events.Finished):
                    yield from ("", "**Done.**", *_fenced(last.summary))
                for path, (added, removed) in turns.get(record.sequence, {}).items():
                    yield f"Changed {_code(path)} +{added} −{removed}  "
            case _ if not isinstance(record, _OF_THE_PERSON):
                for line, _ in lines_of(record, state, None, _WIDE):
                    if said := "".join(text for text, _ in line).strip():
                        yield f"- {_code(said)}"
            case _:
                pass


def _fenced(text: str) -> Iterator[str]:
    shown = on_screen(text)
    fence = max("```", _mark_for(shown), key=len)
    yield from ("", f"{fence}text", shown, fence, "")


def _code(text: str) -> str:
    shown = on_screen(text).replace("\n", " ").strip()
    mark = _mark_for(shown)
    return f"{mark} {shown} {mark}" if "`" in shown else f"{mark}{shown}{mark}"


def _mark_for(text: str) -> str:
    return "`" * (1 + max(map(len, _BACKTICKS.findall(text)), default=0))


def show_session(
    session: Session, records: Iterable[Record], counts: Mapping[int, Counts], mailbox: Mailbox
) -> None:
    """Print a session's turns, results and changed files, and how to continue."""
    look, now = look_of(sys.stdout), layout.local_now()
    requests = mailbox.waiting_paths(session.session_id, session.sequence)
    parts = (
        _head(session),
        _history(records, counts, mailbox, look, now),
        _way_on(session, requests, look, now),
    )
    show_lines(laid_out(chain(*parts), look))


def _head(session: Session) -> Iterator[Hung]:
    what = "run" if session.is_run else "session"
    turn = "" if session.is_run else f", turn {session.sequence}"
    phase = (session.phase.value, STATES[session.phase])
    name = f" ({session.name})" * bool(session.name)
    called = [(f"{what} ", ""), (session.session_id, "bold"), (f"{name}: ", "")]
    yield [*called, phase, (turn, "")], 2
    for number, grant in enumerate(sorted(session.granted), start=1):
        yield [(f"always approved ({number}): ", "warn"), (grant, "")], 2


def _history(
    records: Iterable[Record],
    counts: Mapping[int, Counts],
    mailbox: Mailbox,
    look: Look,
    now: datetime,
) -> Iterator[Hung]:
    began_at = ""
    for record, session in states(records):
        if isinstance(record, _LEFT_OUT):
            continue
        lines = [*lines_of(record, session, mailbox, look)]
        if isinstance(record, _HEADINGS):
            when = layout.clock(record.at, now) if look.is_terminal else record.at[:16]
            (head, indent), *lines = lines
            yield [], 0
            yield [*head, (f"  {when.replace('T', ' ')}", "dim")], indent
        if isinstance(record, entries.AnswerTaken | entries.RunStarted):
            began_at = record.at
        elif isinstance(record, entries.TurnEnded):
            seconds = datetime.fromisoformat(record.at) - datetime.fromisoformat(began_at)
            (head, indent), *lines = lines
            took = layout.duration(max(seconds.total_seconds(), 0))
            yield [*head, (f", {took}", "dim")], indent
            changed = counts.get(record.sequence, {})
            told = {path: f" {layout.counted(*count, look)}" for path, count in changed.items()}
            named = dict.fromkeys((*record.changed, *changed))
            if said := ", ".join(path + told.get(path, "") for path in named):
                yield [("  files changed: ", "dim"), (said, "")], 4
        yield from lines


def _way_on(
    session: Session, requests: Sequence[Path], look: Look, now: datetime
) -> Iterator[Hung]:
    resume = runnable(f"codingagent resume {session.session_id}")
    yield [], 0
    match session.phase:
        case Phase.AWAITING_ANSWER:
            since = f", since {layout.ago(session.updated_at, now)}" if look.is_terminal else ""
            yield [(f"request {session.sequence} waits for its answer{since}:", "name")], 2
            for path in requests:
                yield [(f"  {path}", "bold")], 0
            yield [("Then: ", "dim"), (resume, "")], 0
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
