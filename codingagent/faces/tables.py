"""What `list`, `show`, `log`, `diff` and `config` print: for a terminal, as plain lines, or as JSON."""

import os
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from codingagent.core import chronicle, plain
from codingagent.core import session as session_
from codingagent.core.session import Record, Session, Step, Turn
from codingagent.core.settings import Resolved, meanings
from codingagent.errors import UsageError
from codingagent.faces.lines import write_json_line


def show_sessions(sessions: list[Session], *, json: bool) -> None:
    """Prints one line a session."""
    if json:
        for session in sessions:
            write_json_line(sys.stdout, session_.document(session))
        return
    rows = [
        (
            session.session_id,
            session.phase.value,
            str(session.sequence),
            session.updated_at[:16].replace("T", " "),
            plain.one_line(session.task, 60),
        )
        for session in sessions
    ]
    if not rows:
        _print("none yet; start one with `codingagent new`, or `run`")
        return
    show_table(("session", "state", "turn", "changed (UTC)", "task"), rows)


def show_session(session: Session, records: Iterable[Record], *, json: bool) -> None:
    """Prints a session's turns, their results and the files that they changed."""
    turns = session_.turns(records)
    if json:
        write_json_line(
            sys.stdout, {**session_.document(session), "turns": [_turn(t) for t in turns]}
        )
        return
    what = "run" if session.is_run else "session"
    turn_ = "" if session.is_run else f", turn {session.sequence}"
    _print(f"{what} {session.session_id}: {session.phase.value}{turn_}")
    _print(f"workspace {session.workspace}")
    _print(f"policy {session.policy or 'as set'}, sandbox {session.sandbox or 'as set'}")
    if not session.is_run:
        _print(f"task {plain.without_controls(session.task)}")
    for turn in turns:
        _print(f"\nturn {turn.sequence}  {turn.at[:16].replace('T', ' ')}  {turn.reply_name}")
        for result in turn.told:
            mark = "ok    " if result.success else "FAILED"
            _print(f"  {mark} {result.command_type}: {plain.without_controls(result.summary)}")
        if changed := session_.changed_paths(turn.results):
            _print(f"  files changed: {', '.join(changed)}")


def show_log(records: Iterable[Record], *, json: bool) -> None:
    """Prints a session's records, one a line: the time, and what happened."""
    for record in records:
        if json:
            write_json_line(sys.stdout, asdict(record))
        else:
            _print(f"{record.at[:19].replace('T', ' ')}  {chronicle.line_of(record)}")


def show_diff(
    diff: Callable[[str, str, Collection[str]], str],
    changed: Callable[[str, str], Iterable[str]],
    steps: Sequence[Step],
    turn: int | None,
    *,
    json: bool,
) -> None:
    """Prints what a turn changed, or all of them together.

    Args:
        diff: gives the difference between two checkpoints, for some paths.
        changed: gives the paths that differ between two.
        steps: all of the session's.
        turn: its number; None for all.
        json: one object.

    Raises:
        UsageError: if there is no such turn, or it changed nothing that is kept.
    """
    chosen = [step for step in steps if turn is None or step.sequence == turn]
    if not chosen:
        which = "no turn" if turn is None else f"no turn {turn}"
        raise UsageError(f"{which} of this session changed files; see `codingagent show`")
    last = steps.index(chosen[-1])
    later = [step.before for step in steps[last + 1 :]]
    after = chosen[-1].after or next(iter(later), "")
    if not after:
        raise UsageError(
            "the last turn has no checkpoint after it: `codingagent resume` ends one that is under way,"
            " `codingagent diff --turn N` shows an earlier one"
        )
    # Between the parts the person may have changed other files: those are not the session's doing.
    touched = {path for step in chosen for path in changed(step.before, step.after or after)}
    text = plain.without_controls(diff(chosen[0].before, after, sorted(touched))) if touched else ""
    left_out = tuple(dict.fromkeys(line for step in chosen for line in step.left_out))
    if json:
        turns = [step.sequence for step in chosen if step.sequence]
        write_json_line(sys.stdout, {"turns": turns, "diff": text, "left_out": left_out})
        return
    if _is_terminal():
        from codingagent.faces.console import Console

        Console().diff(text)
    else:
        sys.stdout.write(text)
    if not text:
        _print("nothing was changed")
    if left_out:
        _print(f"not covered: {', '.join(left_out)}")


def show_settings(home: Path, resolved: Resolved, policy: str, *, json: bool) -> None:
    """Prints each setting in force, where it came from, and what it means; and what the policy does."""
    values = asdict(resolved.settings)
    if json:
        for name, value in {"home": str(home), **values}.items():
            origin = resolved.origins.get(name, "")
            write_json_line(sys.stdout, {"name": name, "value": value, "origin": origin})
        return
    _print(f"home {home}")
    told = meanings()
    rows = [
        (name, _value(value), resolved.origins[name], told[name]) for name, value in values.items()
    ]
    show_table(("setting", "value", "from", "meaning"), rows)
    _print(f"policy {policy}")


def _value(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _turn(turn: Turn) -> dict[str, object]:
    return {
        "sequence": turn.sequence,
        "reply": turn.reply_name,
        "at": turn.at,
        "results": [asdict(result) for result in turn.told],
        "changed": list(session_.changed_paths(turn.results)),
        "notes": list(turn.notes),
    }


def show_table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Prints a table: drawn on a terminal, in plain columns elsewhere."""
    if _is_terminal():
        from codingagent.faces.console import Console

        Console().table(headings, rows)
        return
    widths = [max(len(row[i]) for row in [headings, *rows]) for i in range(len(headings))]
    for row in [headings, *rows]:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        _print("  ".join(cells).rstrip())


def _is_terminal() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
