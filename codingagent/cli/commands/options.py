"""Options that several commands take, declared once."""

import contextlib
import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


def _sessions(context: typer.Context, incomplete: str) -> list[str]:
    """Return the session ids that complete a word in a shell; none on any error."""
    with contextlib.suppress(Exception):  # shell completion is no place for errors
        named = context.find_root().params.get("home")
        return _ids(None if named is None else Path(named), incomplete)
    return []


def _ids(named: Path | None, incomplete: str) -> list[str]:
    from codingagent.model.journal_entries import is_run_id, is_session_id
    from codingagent.storage import homes

    home = homes.find_home(named, Path.cwd(), os.environ)
    # There may be thousands of runs: complete them only when asked for.
    is_run = incomplete.startswith("run")
    folder, fits = ("sessions/runs", is_run_id) if is_run else ("sessions", is_session_id)
    names = {Path(name).stem for name in os.listdir(home / folder)}
    return sorted(name for name in names if fits(name) and name.startswith(incomplete))


def _choice(name: str, metavar: str, meaning: str, *words: str) -> Any:
    """Return an option that takes one of these words, which a shell completes, or other text."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return typer.Option(name, metavar=metavar, help=meaning, autocompletion=complete)


def _value(name: str, metavar: str, meaning: str, **limits: Any) -> Any:
    return typer.Option(name, metavar=metavar, help=meaning, **limits)


def _argument(metavar: str, meaning: str) -> Any:
    return typer.Argument(metavar=metavar, help=meaning)


def _session(meaning: str, metavar: str = "[SESSION]") -> Any:
    return typer.Argument(metavar=metavar, help=meaning, autocompletion=_sessions)


_Text = str | None
_File = Path | None

_AWAITS = "[default: the one that awaits approval]"

SessionName = Annotated[
    _Text, _session("A session or run id. [default: the latest session, else the latest run]")
]
WaitingSessionName = Annotated[
    _Text, _session("A session id. [default: the latest whose request waits]")
]
OpenSessionName = Annotated[
    _Text, _session("A session or run id. [default: the latest session that is not complete]")
]
AwaitingName = Annotated[_Text, _session(f"A session or run id. {_AWAITS}", "[RUN_OR_SESSION]")]
AnsweredOperation = Annotated[
    _Text,
    _argument(
        "[OPERATION_ID]",
        f"The operation; for a run, - reads the answer as JSON from stdin. {_AWAITS}",
    ),
]
RefusedOperation = Annotated[_Text, _argument("[OPERATION_ID]", f"The operation. {_AWAITS}")]

# --- tasks and answers -----------------------------------------------------------------------------


class ProtocolName(StrEnum):
    """The format in which a session's requests ask to be answered."""

    TAGS = "tags"
    JSON = "json"


TaskWords = Annotated[list[str] | None, _argument("TASK...", "The task; - reads it from stdin.")]
TaskFile = Annotated[_File, _value("--file", "FILE", "Read the task from a file.")]
EditTask = Annotated[bool, typer.Option("--edit", help="Write the task in an editor.")]
WorkspaceFolder = Annotated[
    _File, _value("--workspace", "DIR", "Work in this folder. [default: workspace/ in the home]")
]
Here = Annotated[
    bool, typer.Option("--here", help="Work in the current folder; the home is .codingagent.")
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Exit when the first request is written.")]
Attach = Annotated[
    list[str] | None, _value("--attach", "GLOB", "Put these files into the request.")
]
CheckCommand = Annotated[
    _Text,
    _value("--check", "COMMAND", "Run this after changes; [DONE] counts only if it succeeds."),
]
Protocol = Annotated[
    ProtocolName,
    typer.Option(
        "--protocol",
        show_default=False,
        help="The format of answers: tag blocks or JSON. [default: tags]",
    ),
]
Once = Annotated[
    bool, typer.Option("--once", help="Take the answers that are in the inbox now, then exit.")
]
SetAside = Annotated[
    _File, _value("--accept", "FILE", "Execute this answer although it was set aside.")
]
Clipboard = Annotated[
    bool, typer.Option("--clipboard", help="Also take the answer from the clipboard.")
]
ReplyWith = Annotated[
    _Text,
    _value("--reply-with", "COMMAND", "Let a command answer: request on stdin, answer on stdout."),
]
ReplyTimeout = Annotated[
    float | None,
    _value(
        "--reply-timeout",
        "SECONDS",
        "Time limit of each such answer. [default: 600]",
        min=1,
        max=86_400,
    ),
]
MaxTurns = Annotated[
    int | None,
    _value("--max-turns", "N", "Stop after this many such answers. [default: 20]", min=1),
]

# --- rules and output ------------------------------------------------------------------------------

PolicyName = Annotated[
    _Text,
    _choice(
        "--policy",
        "NAME",
        "restrictive, standard, permissive, or a TOML file.",
        *("restrictive", "standard", "permissive"),
    ),
]
SandboxUse = Annotated[
    _Text,
    _choice(
        "--sandbox", "HOW", "auto, require (refuse without one) or off.", "auto", "require", "off"
    ),
]
Network = Annotated[
    bool | None,
    typer.Option("--network/--no-network", help="Let sandboxed commands use the network."),
]
AcceptFormats = Annotated[
    bool, typer.Option("--accept-formats", help="Apply diffs and other formats without asking.")
]
Yes = Annotated[
    bool, typer.Option("--yes", help="Approve what would be asked, never what is refused.")
]
Always = Annotated[
    bool, typer.Option("--always", help="Approve exactly this for the rest of the session.")
]
Reason = Annotated[str, _value("--reason", "TEXT", "Why not; the model is told.")]
Changes = Annotated[
    _Text,
    _choice(
        "--diff",
        "HOW",
        "How much of each change to show: short, full, never.",
        *("never", "short", "full"),
    ),
]
EventsStream = Annotated[
    bool,
    typer.Option(
        "--events-stream",
        help="Print each event as it happens, one per line; then the message without them.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line.")]

# --- endpoints -------------------------------------------------------------------------------------

# System timers count no further: 2^31 ms, 24 days.
_LONGEST_S = 2_000_000

# The highest number means "any" to the system.
_LAST_VSOCK = 2**32 - 2


def _seconds(value: float | None) -> float | None:
    if value is not None and not 0 < value <= _LONGEST_S:
        raise typer.BadParameter(f"{value:g} is not more than 0 and at most {_LONGEST_S} seconds")
    return value


Stdio = Annotated[bool, typer.Option("--stdio", help="Use standard input and output.")]
Socket = Annotated[_Text, _value("--socket", "PATH", "A Unix socket.")]
Tcp = Annotated[_Text, _value("--tcp", "HOST:PORT", "A port of this machine: 127.0.0.1:8000.")]
TokenFile = Annotated[
    _File, _value("--token-file", "FILE", "The file with the token of --tcp; `serve` creates it.")
]
NoToken = Annotated[
    bool, typer.Option("--no-token", help="With --tcp: let every user of this machine in.")
]
Vsock = Annotated[
    int | None,
    _value("--vsock", "PORT", "A port between a guest and its host.", min=0, max=_LAST_VSOCK),
]
Cid = Annotated[
    int | None,
    _value("--cid", "CID", "With --vsock: the guest. [default: the host]", min=0, max=_LAST_VSOCK),
]
Root = Annotated[
    _File,
    _value(
        "--root", "DIR", "The folder to serve; / is the whole machine. [default: the workspace]"
    ),
]
CommandLimit = Annotated[
    float | None,
    _value(
        "--timeout",
        "SECONDS",
        "Limit of a command that names none. [default: no limit]",
        callback=_seconds,
    ),
]
AnswerLimit = Annotated[
    float, _value("--timeout", "SECONDS", "How long to wait for the answer.", callback=_seconds)
]
CarryingCommand = Annotated[
    _Text,
    _value("--command", "LINE", 'A program that connects: "ssh HOST codingagent serve --stdio".'),
]
