"""Options that several commands take, declared once."""

import contextlib
import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer


def _sessions(context: typer.Context, incomplete: str) -> list[str]:
    """Return the session ids that complete a word in a shell; none on any error."""
    with contextlib.suppress(Exception):  # shell completion is no place for errors
        from codingagent.model.journal_entries import is_run_id, is_session_id
        from codingagent.storage import homes

        named = context.find_root().params.get("home")
        home = homes.find_home(named and Path(named), Path.cwd(), os.environ)
        # There may be thousands of runs: complete them only when asked for.
        is_run = incomplete.startswith("run")
        folder, fits = ("sessions/runs", is_run_id) if is_run else ("sessions", is_session_id)
        names = {Path(name).stem for name in os.listdir(home / folder)}
        return sorted(name for name in names if fits(name) and name.startswith(incomplete))
    return []


def _prompts(incomplete: str) -> list[str]:
    with contextlib.suppress(Exception):
        from codingagent.storage import own_prompts

        return [name for name in own_prompts.prompts(Path.cwd()) if name.startswith(incomplete)]
    return []


def _choice(name: str, metavar: str, meaning: str, words: str) -> Any:
    """Return an option that takes one of these words, which a shell completes, or other text."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words.split() if word.startswith(incomplete)]

    return typer.Option(name, metavar=metavar, help=meaning, autocompletion=complete)


def value(name: str, metavar: str, meaning: str, **limits: Any) -> Any:
    return typer.Option(name, metavar=metavar, help=meaning, **limits)


def flag(name: str, meaning: str) -> Any:
    return typer.Option(name, help=meaning)


def argument(metavar: str, meaning: str) -> Any:
    return typer.Argument(metavar=metavar, help=meaning)


def _session(meaning: str, metavar: str = "[SESSION]") -> Any:
    return typer.Argument(metavar=metavar, help=meaning, autocompletion=_sessions)


_Text = str | None
_File = Path | None

_AWAITS = "[default: the one that waits for approval]"

SessionName = Annotated[
    _Text, _session("A session or run id. [default: the latest session, else the latest run]")
]
UndoneFiles = Annotated[
    list[str] | None,
    _session(
        "Only these files, or folders, of the last turn that changed them. SESSION is the latest session,"
        " else the latest run, unless named.",
        "[SESSION] [FILE]...",
    ),
]
WaitingSessionName = Annotated[
    _Text, _session("A session id. [default: the latest that waits for an answer]")
]
OpenSessionName = Annotated[
    _Text, _session("A session or run id. [default: the latest session that is not done]")
]
AwaitingName = Annotated[_Text, _session(f"A session or run id. {_AWAITS}", "[RUN_OR_SESSION]")]
AnsweredOperation = Annotated[
    _Text,
    argument(
        "[OPERATION_ID]",
        f"The operation; for a run, - reads the answer as JSON from stdin. {_AWAITS}",
    ),
]
RefusedOperation = Annotated[_Text, argument("[OPERATION_ID]", f"The operation. {_AWAITS}")]

# --- tasks and answers -----------------------------------------------------------------------------


TaskWords = Annotated[list[str] | None, argument("TASK...", "The task; - reads it from stdin.")]
QuestionWords = Annotated[
    list[str] | None, argument("QUESTION...", "The question; - reads it from stdin.")
]
TaskFile = Annotated[_File, value("--file", "FILE", "Read the task from a file.")]
EditTask = Annotated[bool, flag("--edit", "Write the task in an editor.")]
OwnPrompt = Annotated[
    _Text,
    typer.Option(
        "--prompt",
        metavar="NAME",
        help="Begin with the words of prompts/NAME.md.",
        autocompletion=_prompts,
    ),
]
WorkspaceFolder = Annotated[
    _File, value("--workspace", "DIR", "Work in this folder. [default: workspace/ in home]")
]
Here = Annotated[bool, flag("--here", "Work in this folder; keep .codingagent/ in it.")]
Worktree = Annotated[
    _Text, value("--worktree", "BRANCH", "Like --here, in a git worktree of BRANCH.")
]
NoWait = Annotated[bool, flag("--no-wait", "Exit when the first request is written.")]
Attach = Annotated[list[str] | None, value("--attach", "GLOB", "Put these files into the request.")]
ContextTokens = Annotated[
    _Text,
    _choice("--context", "TOKENS", "Token budget for chosen files; 0: none.", "0 8k 12k 16k 32k"),
]
LeaveOut = Annotated[
    list[str] | None, value("--leave-out", "GLOB", "Never choose these files, such as 'docs/**'.")
]
NoConventions = Annotated[bool, flag("--no-conventions", "Show no AGENTS.md, or a file like it.")]
CheckCommand = Annotated[
    _Text,
    value(
        "--check",
        "COMMAND",
        "Run it first, and after each turn that changed a file; [DONE] counts only if it passes.",
    ),
]
Protocol = Annotated[
    Literal["tags", "json"],
    typer.Option(
        "--protocol",
        show_default=False,
        help="The format of answers: tag blocks or JSON. [default: tags]",
    ),
]
Once = Annotated[bool, flag("--once", "Apply the answers already in the inbox, then exit.")]
SetAside = Annotated[_File, value("--accept", "FILE", "Apply this rejected answer anyway.")]
Clipboard = Annotated[
    bool, flag("--clipboard", "Put requests on the clipboard, take the answer from there.")
]
ReplyWith = Annotated[
    _Text,
    value("--reply-with", "COMMAND", "Let a command answer: request on stdin, answer on stdout."),
]
ReplyTimeout = Annotated[
    float | None,
    value(
        "--reply-timeout",
        "SECONDS",
        "Time limit for each answer. [default: 600]",
        min=1,
        max=86_400,
    ),
]
MaxTurns = Annotated[
    int | None, value("--max-turns", "N", "Stop after this many answers. [default: 20]", min=1)
]

# --- rules and output ------------------------------------------------------------------------------

PolicyName = Annotated[
    _Text,
    _choice(
        "--policy",
        "NAME",
        "What is asked about or blocked: standard (usual), restrictive, permissive, or a TOML file.",
        "restrictive standard permissive",
    ),
]
SandboxUse = Annotated[
    _Text,
    _choice(
        "--sandbox",
        "HOW",
        "Confine commands: auto (usual; where it works), require (or refuse to work) or off.",
        "auto require off",
    ),
]
Secrets = Annotated[
    _Text,
    _choice(
        "--secrets",
        "HOW",
        "Secrets: redact (usual; send placeholders), mask (also from commands) or off (send all).",
        "mask redact off",
    ),
]
Network = Annotated[
    bool | None,
    typer.Option("--network/--no-network", help="Let sandboxed commands use the network."),
]
AcceptFormats = Annotated[
    bool, flag("--accept-formats", "Apply diffs and other formats without asking.")
]
Yes = Annotated[bool, flag("--yes", "Approve what needs approval, not what is blocked.")]
Always = Annotated[bool, flag("--always", "Approve exactly this for the rest of the session.")]
Reason = Annotated[str, value("--reason", "TEXT", "The reason, which the model is told.")]
Changes = Annotated[
    _Text,
    _choice(
        "--diff", "HOW", "How much of changes to show: short, full or never.", "never short full"
    ),
]
EventsStream = Annotated[
    bool,
    flag(
        "--events-stream",
        "Print each event as it happens, one per line; then the message without them.",
    ),
]
Json = Annotated[bool, flag("--json", "Print JSON, one object per line.")]

# --- endpoints -------------------------------------------------------------------------------------

# System timers count no further: 2^31 ms, 24 days.
_LONGEST_S = 2_000_000

# The highest number means "any" to the system.
_LAST_VSOCK = 2**32 - 2


def _seconds(value: float | None) -> float | None:
    if value is not None and not 0 < value <= _LONGEST_S:
        raise typer.BadParameter(f"{value:g} is not more than 0 and at most {_LONGEST_S} seconds")
    return value


Stdio = Annotated[bool, flag("--stdio", "Use standard input and output.")]
Socket = Annotated[_Text, value("--socket", "PATH", "A Unix socket.")]
Tcp = Annotated[_Text, value("--tcp", "HOST:PORT", "A port of this machine: 127.0.0.1:8000.")]
TokenFile = Annotated[
    _File, value("--token-file", "FILE", "The file with the token of --tcp; `serve` creates it.")
]
NoToken = Annotated[bool, flag("--no-token", "With --tcp: let every user of this machine connect.")]
Vsock = Annotated[
    int | None,
    value("--vsock", "PORT", "A port between a guest and its host.", min=0, max=_LAST_VSOCK),
]
Cid = Annotated[
    int | None,
    value("--cid", "CID", "With --vsock: the guest. [default: the host]", min=0, max=_LAST_VSOCK),
]
Root = Annotated[
    _File,
    value("--root", "DIR", "The folder to serve; / is the whole machine. [default: the workspace]"),
]
CommandLimit = Annotated[
    float | None,
    value(
        "--timeout",
        "SECONDS",
        "Time limit for commands that set none. [default: no limit]",
        callback=_seconds,
    ),
]
AnswerLimit = Annotated[
    float, value("--timeout", "SECONDS", "How long to wait for the answer.", callback=_seconds)
]
CarryingCommand = Annotated[
    _Text,
    value("--command", "LINE", 'A program that connects: "ssh HOST codingagent serve --stdio".'),
]
