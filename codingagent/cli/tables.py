"""The output of commands that look back, and of `config`: on a terminal, as plain lines, JSON or Markdown."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import to_builtins
from msgspec.structs import asdict, replace

from codingagent.checkpoints.history import HistoryStep
from codingagent.cli import layout
from codingagent.cli.command_table import runnable
from codingagent.cli.layout import Line, Look, Span, look_of
from codingagent.cli.plain_output import diff_style, write_json_line
from codingagent.cli.record_words import Hung, laid_out, lines_of
from codingagent.cli.stdio import be_utf8, is_living
from codingagent.model import journal_entries as entries
from codingagent.model import patterns, plain_text, session_fold, settings
from codingagent.model.session_state import Phase, Session
from codingagent.storage.journal import document
from codingagent.workspace.workspace import LEAVE_FILE

if TYPE_CHECKING:
    from codingagent.checkpoints.store import Checkpoints
    from codingagent.policy.rules import Policy
    from codingagent.storage.mailbox import Mailbox

_TIME_CELLS = 21
_STATES = {Phase.AWAITING_ANSWER: "name", Phase.COMPLETE: "good"}


def show_sessions(sessions: list[Session], *, runs: int, json: bool) -> None:
    """Print one line for each session; if there is none, mention the number of runs."""
    if json:
        for session in sessions:
            write_json_line(sys.stdout, document(session))
        return
    if not sessions:
        begin = "none yet; start one with `codingagent new`, or `run`"
        _print("no sessions yet; `codingagent list --runs` lists the runs" if runs else begin)
        return
    look, now = look_of(sys.stdout), layout.local_now()
    rows = [_session(each, look, now) for each in sessions]
    # Scripts rely on what a pipe gets.
    columns = ("changed", "task") if look.is_terminal else ("turn", "changed (UTC)", "task")
    show_lines(layout.table(("session", "state", *columns), rows, look, cuts=True))


def _session(session: Session, look: Look, now: datetime) -> tuple[Span, ...]:
    is_seen = look.is_terminal
    changed = layout.ago(session.updated_at, now) if is_seen else session.updated_at[:16].replace("T", " ")
    return (
        (session.session_id, "bold"),
        ("closed", "dim") if session.is_closed else (session.phase.value, _STATES.get(session.phase, "warn")),
        *(() if is_seen else ((str(session.sequence), ""),)),
        (changed, ""),
        (plain_text.one_line(session.name or session.task, 2 * look.width if is_seen else 60), ""),
    )


def timed(records: Iterable[entries.Record], mailbox: "Mailbox") -> Iterator[Line]:
    """Yield the lines of a log: the time of each record, and what happened."""
    look = look_of(sys.stdout)
    room = replace(look, width=max(look.width - _TIME_CELLS, 1)) if look.is_terminal else look
    for record, session in session_fold.states(records):
        before = [(f"{record.at[:19].replace('T', ' ')}  ", "")]
        for line in laid_out(lines_of(record, session, mailbox, room), room):
            yield [*before, *line]
            before = [(" " * _TIME_CELLS, "")]


def show_egress(session_id: str, records: Iterable[entries.Record], *, json: bool) -> None:
    told = set[str]()
    for record in records:
        if not isinstance(record, entries.RequestWritten | entries.CandidateEnded) or record.egress is None:
            continue
        egress, to = record.egress, ""
        about = {"at": record.at, "session": session_id, "sequence": record.sequence}
        if isinstance(record, entries.CandidateEnded):
            about, to = {**about, "candidate": record.number}, f" to the chat of candidate {record.number}"
            if egress.digest in told:  # each look at a candidate tells of it
                continue
            told.add(egress.digest)
        if json:
            write_json_line(sys.stdout, {**about, **to_builtins(egress)})
            continue
        files = ", ".join(f"{f.path} {f.first}-{f.last}" if f.last else f.path for f in egress.files)
        kept = f"; never sent ({LEAVE_FILE}): {plain_text.some(egress.kept, 20)}" if egress.kept else ""
        hidden = ", ".join(f"{kind} {count}" for kind, count in egress.hidden.items())
        _print(
            f"{record.at[:19].replace('T', ' ')}  {session_id} request {record.sequence}{to}:"
            f" {egress.size_bytes} bytes, {plain_text.estimated(egress.tokens)}, SHA-256 {egress.digest};"
            f" files: {files or 'none'}; secrets ({egress.secrets}): {hidden or 'none'}{kept}"
        )


Told = Iterable[tuple[entries.Record, Session]]
"""Records, each with the state after it."""

# Records that say nothing to who looks back, or that another one tells of.
UNTOLD = (
    *(entries.InboxFound, entries.RequestWritten, entries.OperationStarted),
    *(entries.CheckpointTaken, entries.UndoBegan, entries.SessionRenamed),
)
_HEADINGS = (
    *(entries.SessionStarted, entries.RunStarted),
    *(entries.AnswerTaken, entries.AnswerSetAside, entries.PersonSaid),
    *(entries.UndoEnded, entries.SessionReopened, entries.SessionClosed),
)


# Of the record of a session, these tell a colleague nothing.
_OF_THE_PERSON = (
    *(*UNTOLD, entries.SessionStarted, entries.AnswerSetAside, entries.GrantsRevoked),
    *(entries.RefreshAsked, entries.SessionReopened, entries.SessionClosed),
)
_BACKTICKS = patterns.lazy_pattern("`*")


def show_as_markdown(session: Session, told: Told) -> None:
    """Print what a session did as Markdown, for a pull request or a colleague: all of it in one code block.

    So no link, image, tag or name of a person comes from what anyone said or ran.
    """
    theirs = (each for each in told if not isinstance(each[0], _OF_THE_PERSON))
    lines = laid_out(_history(theirs, None, layout.PIPE, layout.local_now()), layout.PIPE)
    task = f"{session.name}\n" * bool(session.name) + plain_text.on_screen(session.task).strip()
    text = f"{task}\n{layout.plain_lines(lines)}"
    mark = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(text))))
    be_utf8(sys.stdout)
    sys.stdout.write(f"{mark}text\n{text.strip()}\n{mark}\n")


def show_session(session: Session, told: Told, mailbox: "Mailbox", early: int) -> None:
    """Print a session's turns, results and changed files, and how to continue; `early` ones are left out."""
    look, now = look_of(sys.stdout), layout.local_now()
    what, turn = ("run", "") if session.is_run else ("session", f", turn {session.sequence}")
    name = f" ({session.name})" * bool(session.name)
    called = [(f"{what} ", ""), (session.session_id, "bold"), (f"{name}: ", "")]
    head: list[Hung] = [([*called, (session.phase.value, _STATES.get(session.phase, "warn")), (turn, "")], 2)]
    for number, grant in enumerate(sorted(session.granted), start=1):
        head.append(([(f"always approved ({number}): ", "warn"), (grant, "")], 2))
    requests = mailbox.waiting_paths(session.session_id, session.sequence)
    if early:
        said = f"the first {early:,} operations that did well are only counted: `codingagent log` tells them"
        head.append(([(runnable(said), "dim")], 2))
    parts = _history(told, mailbox, look, now), _way_on(session, requests, look, now)
    show_lines(laid_out(chain(head, *parts), look))


def _history(told: Told, mailbox: "Mailbox | None", look: Look, now: datetime) -> Iterator[Hung]:
    for record, session in told:
        lines = [*lines_of(record, session, mailbox, look)]
        if isinstance(record, _HEADINGS):
            when = layout.clock(record.at, now) if look.is_terminal else record.at[:16]
            (head, indent), *lines = lines
            yield [], 0
            yield [*head, (f"  {when.replace('T', ' ')}", "dim")], indent
        if isinstance(record, entries.TurnEnded) and record.changed:
            yield lines.pop(0)
            yield [("  files changed: ", "dim"), (", ".join(record.changed), "")], 4
        yield from lines


def _way_on(session: Session, requests: Sequence[Path], look: Look, now: datetime) -> Iterator[Hung]:
    resume = runnable(f"codingagent resume {session.session_id}")
    yield [], 0
    match session.phase:
        case Phase.AWAITING_ANSWER if session.is_of_tools:
            yield [("it waits for calls of its client", "name")], 2
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


DiffForm = Literal["lines", "stat", "name-only"]


def show_diff(
    checkpoints: "Checkpoints",
    steps: Sequence[HistoryStep],
    turn: int | None,
    hide: Callable[[str], str],
    how: DiffForm = "lines",
    *,
    json: bool,
) -> None:
    """Print what a turn changed, or all turns together, without the secrets in it."""
    from codingagent.checkpoints.undo import changed_in  # with git's part, which a list of sessions needs not

    chosen, before, after, touched = changed_in(checkpoints, steps, turn)
    if how != "lines":
        changes = checkpoints.changes(before, after) if touched else ()
        counts = checkpoints.counts(before, after) if touched and how == "stat" else {}
        found = [
            (hide(each.path), each.kind, counts.get(each.path)) for each in changes if each.path in touched
        ]
        _show_names(found, how, json=json)
        return
    text = hide(checkpoints.diff(before, after, sorted(touched)) if touched else "")
    left_out = tuple(dict.fromkeys(line for step in chosen for line in step.left_out))
    if json:
        turns = [step.sequence for step in chosen if step.sequence]
        write_json_line(sys.stdout, {"turns": turns, "diff": text, "left_out": left_out})
        return
    if is_living(sys.stdout):
        coloured: Iterable[Line] = (
            [(plain_text.on_screen(line), diff_style(line))] for line in text.removesuffix("\n").split("\n")
        )
        show_lines(coloured, may_page=True)
    else:
        be_utf8(sys.stdout)
        sys.stdout.write("\n".join(map(plain_text.on_screen, text.split("\n"))))
    if not text:
        _print("nothing was changed")
    if left_out:
        first, more = ", ".join(left_out[:3]), len(left_out) - 3
        _print(f"not covered: {first}{f' and {more:,} more (--json has all)' if more > 0 else ''}")


def _show_names(
    found: Sequence[tuple[str, str, tuple[int, int] | None]], how: DiffForm, *, json: bool
) -> None:
    """Print the changed files, each with its kind and its added and removed lines, if those are counted."""
    if json:
        for path, kind, count in found:
            more = {} if count is None else {"added": count[0], "removed": count[1]}
            write_json_line(sys.stdout, {"path": path, "kind": kind, **more})
        return
    if how == "name-only":
        be_utf8(sys.stdout)
        sys.stdout.writelines(f"{plain_text.on_screen(path)}\n" for path, _, _ in found)
        return
    look = look_of(sys.stdout)
    rows = [
        (
            (plain_text.on_screen(path), ""),
            (layout.counted(*count, look) if count else "no text", "dim"),
            ("" if kind == "modified" else kind, ""),
        )
        for path, kind, count in found
    ]
    added, removed = (sum(count[side] for _, _, count in found if count) for side in (0, 1))
    total = f"{len(found)} {plain_text.plural(len(found), 'file')} changed"
    rows.append(((total, "bold"), (layout.counted(added, removed, look), "bold"), ("", "")))
    show_lines(layout.table(("file", "lines", ""), rows, look))


def show_settings(home: Path, workspace: Path, resolved: settings.Resolved, *, json: bool) -> None:
    """Print each effective setting, its source and its meaning."""
    values = asdict(resolved.settings)
    if json:
        for name, value in {"home": str(home), **values}.items():
            origin = resolved.origins.get(name, "")
            write_json_line(sys.stdout, {"name": name, "value": value, "origin": origin})
        return
    told, look = settings.meanings(), look_of(sys.stdout)
    rows = [
        ((name, "bold"), (_value(value), "name"), (resolved.origins[name], ""), (told[name], "dim"))
        for name, value in values.items()
    ]
    # A path is never wrapped, so that it can be copied whole.
    show_lines([[("home ", ""), (str(home), "")], [("workspace ", ""), (str(workspace), "")]])
    show_lines(layout.table(("setting", "value", "from", "meaning"), rows, look))
    _print("`codingagent config policy` shows what is asked about and blocked")


def show_policy(policy: "Policy", told: str, granted: Mapping[str, Sequence[str]], *, json: bool) -> None:
    """Print what the policy asks about and blocks, and the "always" approvals of each session."""
    if json:
        write_json_line(sys.stdout, {"name": "policy", "value": to_builtins(policy)})
        for session_id, grants in granted.items():
            write_json_line(sys.stdout, {"name": "granted", "session": session_id, "value": grants})
        return
    look = look_of(sys.stdout)
    lines = told.split("\n")
    for session_id, grants in granted.items():
        lines += [f"always approved in session {session_id}: {grant}" for grant in grants]
    show_lines((line for each in lines for line in layout.hang([(each, "")], look, 2)), may_page=True)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"  # as the settings file has it
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def show_lines(lines: Iterable[Line], *, may_page: bool = False) -> None:
    """Print lines; where they `may_page`, on a terminal in the person's pager if they are many."""
    if is_living(sys.stdout):
        from codingagent.cli.shared_session import AT_WORK
        from codingagent.cli.terminal import Console

        # The terminal that waits has the keyboard.
        console = Console()
        with console.paged() if may_page and AT_WORK.get() is None else contextlib.nullcontext():
            console.lines(lines)
        return
    sys.stdout.write(layout.plain_lines(lines))


def _print(text: str) -> None:
    sys.stdout.write(f"{runnable(plain_text.on_screen(text))}\n")
