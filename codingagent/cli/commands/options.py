"""Options that several commands take, declared once."""

import contextlib
import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

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


def _one_of(*words: str) -> Callable[[str], list[str]]:
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


SessionName = Annotated[
    str | None,
    typer.Argument(
        metavar="[SESSION]",
        help="A session id, or a run's. [default: the latest session, else the latest run]",
        autocompletion=_sessions,
    ),
]
WaitingSessionName = Annotated[
    str | None,
    typer.Argument(
        metavar="[SESSION]",
        help="A session id. [default: the latest whose request waits]",
        autocompletion=_sessions,
    ),
]
OpenSessionName = Annotated[
    str | None,
    typer.Argument(
        metavar="[SESSION]",
        help="A session id, or a run's. [default: the latest session that is not complete]",
        autocompletion=_sessions,
    ),
]
AwaitingName = Annotated[
    str | None,
    typer.Argument(
        help="The id of a session, or of a run. [default: the one that awaits approval]",
        metavar="[RUN_OR_SESSION]",
        autocompletion=_sessions,
    ),
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
WorkspaceFolder = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Work in this folder. [default: workspace/ in the home]"),
]
PolicyName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="restrictive, standard, permissive, or a TOML file.",
        autocompletion=_one_of("restrictive", "standard", "permissive"),
    ),
]
SandboxUse = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        help="auto, require (refuse without one) or off.",
        autocompletion=_one_of("auto", "require", "off"),
    ),
]
Network = Annotated[
    bool | None,
    typer.Option("--network/--no-network", help="Let sandboxed commands use the network."),
]
Clipboard = Annotated[
    bool, typer.Option("--clipboard", help="Also take the answer from the clipboard.")
]
AcceptFormats = Annotated[
    bool, typer.Option("--accept-formats", help="Apply diffs and other formats without asking.")
]
Yes = Annotated[
    bool, typer.Option("--yes", help="Approve what would be asked, never what is refused.")
]
Attach = Annotated[
    list[str] | None,
    typer.Option("--attach", metavar="GLOB", help="Put these files into the request."),
]
CheckCommand = Annotated[
    str | None,
    typer.Option(
        "--check", metavar="COMMAND", help="Run this after changes; [DONE] needs its success."
    ),
]
ReplyWith = Annotated[
    str | None,
    typer.Option(
        "--reply-with",
        metavar="COMMAND",
        help="Let this answer: request on stdin, answer on stdout.",
    ),
]
ReplyTimeout = Annotated[
    float | None,
    typer.Option(
        "--reply-timeout",
        metavar="SECONDS",
        min=1,
        max=86_400,
        help="Time for each such answer. [default: 600]",
    ),
]
MaxTurns = Annotated[
    int | None,
    typer.Option(
        "--max-turns",
        metavar="N",
        min=1,
        help="Stop after so many such answers. [default: 20]",
    ),
]
Changes = Annotated[
    str | None,
    typer.Option(
        "--diff",
        metavar="HOW",
        help="How much of each change to show: short, full, never.",
        autocompletion=_one_of("never", "short", "full"),
    ),
]


class ProtocolName(StrEnum):
    """The format in which a session's requests ask to be answered."""

    TAGS = "tags"
    JSON = "json"


TaskWords = Annotated[
    list[str] | None, typer.Argument(metavar="TASK...", help="The task; - reads it from stdin.")
]
TaskFile = Annotated[
    Path | None, typer.Option("--file", metavar="FILE", help="Read the task from a file.")
]
EditTask = Annotated[bool, typer.Option("--edit", help="Write the task in an editor.")]
Here = Annotated[
    bool, typer.Option("--here", help="Work in this folder; the home is .codingagent.")
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Exit when the first request is written.")]
Protocol = Annotated[
    ProtocolName,
    typer.Option(
        "--protocol",
        show_default=False,
        help="The format of answers: tag blocks or JSON. [default: tags]",
    ),
]
Once = Annotated[
    bool, typer.Option("--once", help="Take the answers that are there now, then exit.")
]
SetAside = Annotated[
    Path | None,
    typer.Option("--accept", metavar="FILE", help="Execute this answer although it was set aside."),
]
AnsweredOperation = Annotated[
    str | None,
    typer.Argument(
        metavar="[OPERATION_ID]",
        help="The operation; of a run, - reads the answer as JSON from stdin."
        " [default: the one that awaits approval]",
    ),
]
RefusedOperation = Annotated[
    str | None,
    typer.Argument(
        metavar="[OPERATION_ID]", help="The operation. [default: the one that awaits approval]"
    ),
]
