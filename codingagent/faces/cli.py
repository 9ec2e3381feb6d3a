"""The command line: words and options in, an exit status out. The only user of typer."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from codingagent import __version__
from codingagent.errors import CodingAgentError, InterruptError, UsageError
from codingagent.faces.screens import Screen, person_at, remark, screen_for, silence
from codingagent.faces.tasks import read_task

# Each command imports what it uses when it runs: --version must not wait for a tree-walker.
if TYPE_CHECKING:
    from codingagent.compose import Person
    from codingagent.conversation import Conversation
    from codingagent.core.approval import Answer
    from codingagent.core.session import Session
    from codingagent.core.settings import Settings
    from codingagent.faces.drop import Inbox
    from codingagent.homes import Home

app = typer.Typer(
    name="codingagent",
    help="A coding agent that works through any web chat: you carry its requests there, and the"
    " answers back.",
    no_args_is_help=True,
    rich_markup_mode=None,  # rich costs a tenth of a second at every --help
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Runs the command line and leaves with its exit status (0, 1, 2, 3 or 130)."""
    # Closed by whoever started us: then there is nobody to talk to.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    # Not a file of ours: that would get its handle, and be taken for what the person gave us.
    sys.stdin = sys.stdin or io.TextIOWrapper(io.BytesIO())
    for stream in (sys.stdout, sys.stderr):
        # A terminal that can't show a character shows another; that is no reason to fail.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs one command line and gives its exit status."""
    try:
        status = app(arguments or ["--help"], standalone_mode=False, prog_name="codingagent")
        sys.stdout.flush()
    except CodingAgentError as fault:
        return _fail(str(fault), fault.exit_status)
    except typer.TyperException as fault:
        message = fault.format_message() if hasattr(fault, "format_message") else str(fault)
        return _fail(f"{message.rstrip('.')}; `codingagent --help` lists commands and options", 2)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("stopped", 130)
    except BrokenPipeError:
        silence(sys.stdout)
        return 0
    except RuntimeError as fault:
        # pathlib's word, before Python 3.13, for a link to itself and for a person without a home.
        if not str(fault).startswith(("Symlink loop", "Could not determine home")):
            raise
        return _fail(f"{fault}; name another folder, or set HOME", 2)
    except OSError as fault:
        # What no one below could name better: a folder without permission, a deleted current folder.
        silence(sys.stdout)
        where = f"{fault.filename}: " if fault.filename else ""
        return _fail(f"{where}{fault.strerror or fault}", 1)
    return status if isinstance(status, int) else 0


def _say_fault(message: str) -> None:
    _fail(message, 1)


def _fail(message: str, status: int) -> int:
    from codingagent.core.plain import without_controls

    line = without_controls(" ".join(message.split()))
    with contextlib.suppress(OSError):
        sys.stderr.write(f"codingagent: {line}\n")
    return status


def _show_version(value: bool) -> None:
    if value:
        sys.stdout.write(f"codingagent {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    home: Annotated[
        Path | None,
        typer.Option(
            help="The folder with outbox/, inbox/ and sessions/."
            " [default: the nearest .codingagent upwards, else the current folder]"
        ),
    ] = None,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    context.obj = home


_Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
_Workspace = Annotated[
    Path | None, typer.Option(help="The folder to work in. [default: workspace/ in the home]")
]


_Policy = Annotated[
    str | None,
    typer.Option(
        help="What needs approval or is refused: restrictive, standard, permissive, or a TOML file."
        " [default: standard]"
    ),
]
_Sandbox = Annotated[
    str | None,
    typer.Option(help="auto, require (no work without one) or off. [default: auto]"),
]
_Network = Annotated[
    bool | None,
    typer.Option("--network/--no-network", help="Let sandboxed commands use the network."),
]
_Clipboard = Annotated[
    bool,
    typer.Option("--clipboard", help="Watch the clipboard too: copy the chat's answer, no more."),
]
_AcceptFormats = Annotated[
    bool,
    typer.Option(
        "--accept-formats",
        help="Apply diffs and the like without asking, where the answer has no command of ours.",
    ),
]
_Yes = Annotated[
    bool, typer.Option("--yes", help="Approve whatever would be asked; never what is blocked.")
]


class _Protocol(StrEnum):
    """What a session's requests may ask to be answered in."""

    TAGS = "tags"
    JSON = "json"


@app.command(
    epilog='Example: codingagent new "Add a --verbose option to cli.py, with a test"', name="new"
)
def _new(  # noqa: PLR0913, PLR0917  # one for each word of the command line
    context: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="TASK...", help="The task; - reads it from stdin.")
    ] = None,
    file: Annotated[Path | None, typer.Option(help="Read the task from a file.")] = None,
    edit: Annotated[bool, typer.Option("--edit", help="Write the task in an editor.")] = False,
    workspace: _Workspace = None,
    here: Annotated[
        bool,
        typer.Option("--here", help="Work in the current folder; the home is .codingagent in it."),
    ] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Exit when the first request is written.")
    ] = False,
    clipboard: _Clipboard = False,
    protocol: Annotated[
        _Protocol,
        typer.Option(help="What the model is asked to answer in: tags, or JSON operations."),
    ] = _Protocol.TAGS,
    policy: _Policy = None,
    sandbox: _Sandbox = None,
    network: _Network = None,
    accept_formats: _AcceptFormats = False,
    yes: _Yes = False,
    json: _Json = False,
) -> None:
    """Start a task: write the first request, then wait for the answer."""
    from codingagent import compose, confinement, homes

    named: Path | None = context.obj
    was_found = _was_found(context)
    if here:
        if workspace is not None or named is not None:
            raise UsageError("--here says both --workspace and --home; leave those out")
        workspace, named = Path.cwd(), Path.cwd() / homes.HERE_HOME
    task = read_task(words or [], file, edit)
    root = homes.find_home(named, Path.cwd(), os.environ)
    options = {
        "workspace": None if workspace is None else str(workspace),
        **_confinement(policy, sandbox, network),
    }
    homes.check_home(root, was_found=was_found)
    # Before anything is made: a mistyped --workspace must not leave a home behind.
    resolved, folder = homes.settings_for(root, options, os.environ)
    settings = resolved.settings
    confinement.policy_of(settings, folder)
    home = homes.Home.at(root, create=True, was_found=was_found)
    with screen_for(json) as screen, home.locked():
        session = compose.start_session(home, folder, task, settings, protocol.value)
        person = person_at(screen, approves_all=yes, accepts_formats=accept_formats)
        _say_if_not_obeyed(screen, root, folder)
        with _at_work(home, session, settings, person) as conversation:
            conversation.begin()
            conversation.recover()
            if no_wait:
                conversation.announce(watched=False)
            else:
                _follow(conversation, home, screen, clipboard=clipboard)


@app.command(epilog="Example: codingagent resume", name="resume")
def _resume(  # noqa: PLR0913, PLR0917  # one for each word of the command line
    context: typer.Context,
    session: Annotated[
        str | None,
        typer.Argument(
            help="The id of a session, or of a run. [default: the latest session that is not complete]"
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Take the replies that lie in the inbox now, then exit.")
    ] = False,
    accept: Annotated[
        Path | None, typer.Option(help="Execute this file as the reply, though it was set aside.")
    ] = None,
    clipboard: _Clipboard = False,
    policy: _Policy = None,
    sandbox: _Sandbox = None,
    network: _Network = None,
    accept_formats: _AcceptFormats = False,
    yes: _Yes = False,
    json: _Json = False,
) -> int:
    """Go on with a task: take the answer from the inbox, or wait for it. Or finish a run."""
    from codingagent import homes
    from codingagent.core.session import is_run_id

    home = _home(context)
    if session is not None and is_run_id(session):
        from codingagent.faces import run

        if accept is not None:
            raise UsageError(f"--accept is for sessions; {session} is a run, and takes no replies")
        state = home.load(session)
        settings = _settings(home, state, _confinement(policy, sandbox, network))
        return run.finish(home, state, settings, approves_all=yes)
    with screen_for(json) as screen, home.locked():
        if session is None:
            found = homes.all_sessions(home, _say_fault)
            for each in found:
                # A kill may have left a session file behind its journal.
                home.sessions.mend_document(each)
            state = homes.latest_session(found)
        else:
            state = home.sessions.load(session)
        settings = _settings(home, state, _confinement(policy, sandbox, network))
        _say_if_not_obeyed(screen, home.root, Path(state.workspace))
        person = person_at(screen, approves_all=yes, accepts_formats=accept_formats)
        with _at_work(home, state, settings, person) as conversation:
            if conversation.session.is_complete:
                home.sessions.mend_document(conversation.session)
                if once and accept is None and not home.mailbox.look():
                    return 0
                conversation.reopen()
            conversation.recover()
            if accept is not None:
                conversation.take(_brought(home, accept), accept=True)
            if once:
                from codingagent.faces import drop

                if drop.take_present(conversation, _inbox(conversation, home)):
                    remark(screen, "a file in the inbox is still being written: it was left there")
            else:
                _follow(conversation, home, screen, clipboard=clipboard)
    return 0


@app.command(
    epilog="Example: codingagent run operations.json --workspace project > events.json", name="run"
)
def _run(  # noqa: PLR0913, PLR0917  # one for each word of the command line
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="An operations message; - reads it from stdin.")
    ],
    workspace: _Workspace = None,
    policy: _Policy = None,
    sandbox: _Sandbox = None,
    network: _Network = None,
    yes: _Yes = False,
    events_stream: Annotated[
        bool,
        typer.Option(
            "--events-stream",
            help="Print each event as it happens, one a line; last the message without them.",
        ),
    ] = False,
) -> int:
    """Execute a JSON operations message, and print the events message.

    Exit status: 0 done (a failed operation is an event), 1 a fault of the system halted it, 2 it is
    no operations message, 3 an operation awaits approval: see `approve`.
    """
    from codingagent import homes
    from codingagent.faces import run

    was_found = _was_found(context)
    root = homes.find_home(context.obj, Path.cwd(), os.environ)
    homes.check_home(root, was_found=was_found)
    options = {
        "workspace": None if workspace is None else str(workspace),
        **_confinement(policy, sandbox, network),
    }
    resolved, folder = homes.settings_for(root, options, os.environ)
    data = run.read_message(file)
    home = homes.Home.at(root, create=True, was_found=was_found)
    homes.make_workspace(home.root, folder)
    return run.execute(
        home, folder, resolved.settings, data, approves_all=yes, streams=events_stream
    )


@app.command(epilog="Example: codingagent approve a1b2c3d4 op-3", name="approve")
def _approve(  # noqa: PLR0913, PLR0917  # one for each word of the command line
    context: typer.Context,
    session: Annotated[
        str, typer.Argument(help="The id of a session, or of a run.", metavar="RUN_OR_SESSION")
    ],
    operation_id: Annotated[
        str | None,
        typer.Argument(
            help="The operation; of a run, - reads the answer as JSON from stdin."
            " [default: the one that awaits approval]"
        ),
    ] = None,
    always: Annotated[
        bool, typer.Option("--always", help="Don't ask for the like again in this session.")
    ] = False,
    policy: _Policy = None,
    sandbox: _Sandbox = None,
    network: _Network = None,
    yes: _Yes = False,
    json: _Json = False,
) -> int:
    """Let an operation that awaits approval be done, and go on."""
    from codingagent.core.approval import Answer

    answer = Answer("always" if always else "yes")
    options = _confinement(policy, sandbox, network)
    return _answer(context, session, operation_id, answer, options=options, yes=yes, json=json)


@app.command(
    epilog="Example: codingagent deny a1b2c3d4 --reason 'keep build/, the release needs it'",
    name="deny",
)
def _deny(  # noqa: PLR0913, PLR0917  # one for each word of the command line
    context: typer.Context,
    session: Annotated[
        str, typer.Argument(help="The id of a session, or of a run.", metavar="RUN_OR_SESSION")
    ],
    operation_id: Annotated[
        str | None, typer.Argument(help="The operation. [default: the one that awaits approval]")
    ] = None,
    reason: Annotated[str, typer.Option(help="Why not; the model is told.")] = "",
    policy: _Policy = None,
    sandbox: _Sandbox = None,
    network: _Network = None,
    yes: _Yes = False,
    json: _Json = False,
) -> int:
    """Refuse an operation that awaits approval, and go on without it."""
    from codingagent.core.approval import Answer

    answer = Answer("no", reason=reason)
    options = _confinement(policy, sandbox, network)
    return _answer(context, session, operation_id, answer, options=options, yes=yes, json=json)


@app.command(epilog="Example: codingagent list --json", name="list")
def _list(
    context: typer.Context,
    runs: Annotated[bool, typer.Option("--runs", help="List the runs instead.")] = False,
    json: _Json = False,
) -> None:
    """List all sessions, the latest first."""
    from codingagent import homes
    from codingagent.faces import tables

    home = _home(context)
    sessions = homes.all_sessions(home, _say_fault, runs=runs)
    tables.show_sessions(sessions, json=json)


@app.command(epilog="Example: codingagent show a1b2c3d4", name="show")
def _show(
    context: typer.Context,
    session: Annotated[
        str | None, typer.Argument(help="A session id. [default: the latest]")
    ] = None,
    json: _Json = False,
) -> None:
    """Show one session: its turns, their results, the files touched."""
    from codingagent.faces import tables

    home = _home(context)
    state = _latest(home) if session is None else home.load(session)
    tables.show_session(state, home.records(state.session_id), json=json)


@app.command(epilog="Example: codingagent log a1b2c3d4", name="log")
def _log(
    context: typer.Context,
    session: Annotated[
        str | None, typer.Argument(help="A session id. [default: the latest]")
    ] = None,
    json: _Json = False,
) -> None:
    """Show the record of a session: all that was asked, tried, refused and done, with its time."""
    from codingagent.faces import tables

    home = _home(context)
    session_id = session or _latest(home).session_id
    tables.show_log(home.records(session_id), json=json)


@app.command(epilog="Example: codingagent diff --turn 2", name="diff")
def _diff(
    context: typer.Context,
    session: Annotated[
        str | None, typer.Argument(help="A session id. [default: the latest]")
    ] = None,
    turn: Annotated[
        int | None,
        typer.Option(min=1, help="What this turn changed. [default: what all turns changed]"),
    ] = None,
    json: _Json = False,
) -> None:
    """Show what a session changed, by file operations and by commands."""
    from codingagent import compose
    from codingagent.faces import tables

    home = _home(context)
    state = _latest(home) if session is None else home.load(session)
    with compose.history_of(home, state) as (checkpoints, steps):

        def changed(old: str, new: str) -> list[str]:
            return [change.path for change in checkpoints.changes(old, new)]

        tables.show_diff(checkpoints.diff, changed, steps, turn, json=json)


@app.command(epilog="Example: codingagent undo --turns 2", name="undo")
def _undo(
    context: typer.Context,
    session: Annotated[
        str | None, typer.Argument(help="A session id. [default: the latest]")
    ] = None,
    turns: Annotated[
        int, typer.Option(min=1, help="How many of the last turns that changed something.")
    ] = 1,
    redo: Annotated[bool, typer.Option("--redo", help="Take the last undo back.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Take back also what was changed again since.")
    ] = False,
    json: _Json = False,
) -> None:
    """Take turns back: the files that they changed are as they were before. The model is told."""
    from codingagent import compose

    home = _home(context)
    with screen_for(json) as screen, home.locked():
        state = _latest(home) if session is None else home.load(session)
        settings = _settings(home, state, {}, executes=False)
        if state.is_run:
            from codingagent.faces import run

            run.undo(home, state, None if redo else turns, screen.show, force=force)
            return
        person = person_at(screen, approves_all=False)
        with _at_work(home, state, settings, person) as conversation:
            if conversation.session.undoing is not None:
                raise UsageError("an undo was interrupted, and only git can finish it: install git")
            if state.undoing is None:
                back = None if redo else turns
                compose.take_back(home, conversation.ledger, back, screen.show, force=force)
                conversation.recover()
            else:
                remark(
                    screen, "an undo that was interrupted is finished; nothing more was taken back"
                )
                conversation.recover()
            if not conversation.session.is_complete:
                remark(screen, "the request was written anew: send the chat this one")
                conversation.announce(watched=False)


@app.command(epilog="Example: codingagent doctor", name="doctor")
def _doctor(context: typer.Context, json: _Json = False) -> None:
    """Say what this machine offers; the sandbox is proved from inside, promise by promise."""
    from codingagent import homes
    from codingagent.faces import doctor

    named: Path | None = context.obj
    home = homes.find_home(named, Path.cwd(), os.environ)
    doctor.examine(home, homes.default_workspace(home), json=json)


@app.command(epilog="Example: codingagent config", name="config")
def _config(context: typer.Context, json: _Json = False) -> None:
    """Show the settings in force and where each came from."""
    from codingagent import homes
    from codingagent.confinement import policy_of
    from codingagent.core.policy import describe
    from codingagent.faces import tables

    root = homes.find_home(context.obj, Path.cwd(), os.environ)
    homes.check_home(root, was_found=_was_found(context))
    resolved, workspace = homes.settings_for(root, {}, os.environ)
    policy = policy_of(resolved.settings, workspace)
    tables.show_settings(root, resolved, describe(policy), json=json)


@app.command(epilog="Example: codingagent copy --short", name="copy")
def _copy(
    context: typer.Context,
    session: Annotated[
        str | None, typer.Argument(help="A session id. [default: the latest]")
    ] = None,
    short: Annotated[
        bool, typer.Option("--short", help="The short request, for the chat that saw the others.")
    ] = False,
    split: Annotated[
        int | None,
        typer.Option(metavar="CHARS", help="In parts of so many characters, one after the other."),
    ] = None,
) -> None:
    """Put the request that waits on the clipboard; piped, print it."""
    from codingagent.faces import clip

    home = _home(context)
    state = _latest(home) if session is None else home.sessions.load(session)
    clip.copy(home, state, short=short, limit=split)


@app.command(epilog="Example: xclip -o | codingagent paste", name="paste")
def _paste(
    context: typer.Context,
    session: Annotated[
        str | None, typer.Argument(help="A session id. [default: the latest]")
    ] = None,
    editor: Annotated[
        bool, typer.Option("--editor", help="Paste it into an editor first.")
    ] = False,
) -> None:
    """Save the chat's answer in the inbox: from a pipe, else from the clipboard."""
    from codingagent.faces import clip

    home = _home(context)
    state = _latest(home) if session is None else home.sessions.load(session)
    clip.paste(home, state, edits=editor)


class _Schema(StrEnum):
    """What there is a schema of."""

    OPERATIONS = "operations"
    EVENTS = "events"
    SETTINGS = "settings"


@app.command(
    epilog="Example: codingagent schema operations > operations.schema.json", name="schema"
)
def _schema(
    of: Annotated[_Schema, typer.Argument(help="operations, events or settings.", metavar="WHAT")],
) -> None:
    """Print the JSON Schema (draft 2020-12) of JSON operations, of events, or of the settings."""
    import json

    if of is _Schema.SETTINGS:
        from codingagent.core import settings

        found = settings.schema()
    else:
        from codingagent.core.messages import schema

        found = schema.operations_schema() if of is _Schema.OPERATIONS else schema.events_schema()
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


# Beyond it a system's timers do not count: 2^31 ms, 24 days.
_LONGEST_S = 2_000_000

# The highest number says "any" to the system.
_LAST_VSOCK = 2**32 - 2


def _seconds(value: float | None) -> float | None:
    if value is not None and not 0 < value <= _LONGEST_S:
        raise typer.BadParameter(f"{value:g} is not more than 0 and at most {_LONGEST_S} seconds")
    return value


_Stdio = Annotated[bool, typer.Option("--stdio", help="Speak on standard input and output.")]
_Socket = Annotated[str | None, typer.Option("--socket", metavar="PATH", help="A Unix socket.")]
_Tcp = Annotated[
    str | None,
    typer.Option("--tcp", metavar="HOST:PORT", help="A port of this machine: 127.0.0.1:8000."),
]
_Vsock = Annotated[
    int | None,
    typer.Option(
        "--vsock",
        metavar="PORT",
        min=0,
        max=_LAST_VSOCK,
        help="A port between a guest and its host.",
    ),
]


@app.command(epilog="Example: codingagent serve --socket /tmp/agent.sock", name="serve")
def _serve(  # noqa: PLR0913, PLR0917  # one for each word of the command line
    context: typer.Context,
    stdio: _Stdio = False,
    socket: _Socket = None,
    tcp: _Tcp = None,
    vsock: _Vsock = None,
    root: Annotated[
        Path | None,
        typer.Option(help="The folder to serve; / is the whole machine. [default: the workspace]"),
    ] = None,
    policy: _Policy = None,
    sandbox: _Sandbox = None,
    network: _Network = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            callback=_seconds, help="Seconds for a command that names none. [default: no limit]"
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("-v", help="Log the messages too.")] = False,
) -> None:
    """Serve a workspace, or a whole guest, over JSON-RPC 2.0: exec, read_file and the like."""
    from dataclasses import replace

    from codingagent import homes
    from codingagent.core.settings import DEFAULT
    from codingagent.faces import remote

    named = remote.Named(stdio, socket, tcp, vsock)
    named.chosen()  # before anything is made for an endpoint that is none
    home = homes.find_home(context.obj, Path.cwd(), os.environ)
    homes.check_home(home, was_found=_was_found(context))
    options = _confinement(policy, sandbox, network)
    resolved, folder = homes.settings_for(home, options, os.environ, root)
    settings = resolved.settings
    is_machine = root is not None and root.resolve() == Path(root.resolve().anchor)
    if is_machine and resolved.origins["policy"] == DEFAULT:
        # The machine around it is the wall; what a preset asks for, nobody could answer.
        settings = replace(settings, policy="permissive")
    if root is None:
        homes.make_workspace(home, folder)
    served = remote.Served(home, folder, settings, timeout)
    remote.serve(named, served, verbose=verbose)


@app.command(
    epilog='Example: codingagent call exec \'{"cmd": "ls"}\' --socket /tmp/agent.sock', name="call"
)
def _call(  # noqa: PLR0913, PLR0917  # one for each word of the command line
    context: typer.Context,
    method: Annotated[
        str,
        typer.Argument(help="ping, exec, exec_code, read_file, write_file, list_dir, or another."),
    ],
    params: Annotated[
        str | None, typer.Argument(metavar="PARAMS_JSON", help="A JSON object or array.")
    ] = None,
    stdio: Annotated[
        bool, typer.Option("--stdio", help="A server of its own, for this call.")
    ] = False,
    socket: _Socket = None,
    tcp: _Tcp = None,
    vsock: _Vsock = None,
    cid: Annotated[
        int | None,
        typer.Option(
            min=0, max=_LAST_VSOCK, help="Of --vsock: the guest's number. [default: the host]"
        ),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(help='A program that carries it: "ssh HOST codingagent serve --stdio".'),
    ] = None,
    timeout: Annotated[
        float, typer.Option(callback=_seconds, help="Seconds to wait for the answer.")
    ] = 30.0,
) -> int:
    """Call a method of a server, and print its result; exit status 1 with its error."""
    from codingagent.faces import remote

    named = remote.Named(stdio, socket, tcp, vsock, command, cid)
    return remote.call(named, context.obj, method, params, timeout)


@app.command(epilog="Example: codingagent demo", name="demo")
def _demo(json: _Json = False) -> None:
    """See a small real task solved, with recorded answers."""
    from codingagent.faces import demo

    with screen_for(json) as screen:
        demo.play(screen.show)


# --- what the commands share --------------------------------------------------------------------


def _home(context: typer.Context) -> "Home":
    from codingagent import homes

    root = homes.find_home(context.obj, Path.cwd(), os.environ)
    return homes.Home.at(root, create=False, was_found=_was_found(context))


def _was_found(context: typer.Context) -> bool:
    """Tells whether nobody named the home, neither by an option nor in the environment."""
    from codingagent.core.settings import HOME_VARIABLE

    return context.obj is None and HOME_VARIABLE not in os.environ


def _latest(home: "Home") -> "Session":
    """Gives the session that changed last, complete or not.

    Raises:
        UsageError: if there is none.
    """
    from codingagent import homes

    found = homes.all_sessions(home, _say_fault)
    if not found:
        raise UsageError("there is no session yet; start one with `codingagent new`")
    return found[0]


def _confinement(
    policy: str | None, sandbox: str | None, network: bool | None
) -> dict[str, object]:
    return {"policy": policy, "sandbox": sandbox, "network": network}


def _settings(
    home: "Home", session: "Session", options: dict[str, object], *, executes: bool = True
) -> "Settings":
    """Gives the settings that a session goes on with."""
    from codingagent import homes

    workspace = Path(session.workspace)
    resolved, _ = homes.settings_for(home.root, options, os.environ, workspace)
    return homes.kept_settings(home.root, session, resolved, executes=executes)


def _say_if_not_obeyed(screen: Screen, root: Path, workspace: Path) -> None:
    from codingagent import homes
    from codingagent.core.settings import FILE_NAME

    if (root / FILE_NAME).exists() and not homes.obeys_file(root, workspace):
        remark(
            screen,
            f"{root / FILE_NAME} is not obeyed: it lies in the workspace, where an answer could have"
            " written it; use options or CODINGAGENT_… variables",
        )


def _answer(  # noqa: PLR0913
    context: typer.Context,
    session: str,
    operation_id: str | None,
    answer: "Answer",
    *,
    options: dict[str, object],
    yes: bool,
    json: bool,
) -> int:
    """Answers what awaits approval, and goes on to the next request, or with the run."""
    from codingagent.core.session import is_run_id

    home = _home(context)
    if is_run_id(session):
        from codingagent.faces import run

        state = home.load(session)
        given = run.read_message("-") if operation_id == "-" else operation_id
        settings = _settings(home, state, options)
        return run.answer(home, state, settings, given, answer, approves_all=yes)
    with screen_for(json) as screen, home.locked():
        state = home.sessions.load(session)
        settings = _settings(home, state, options)
        person = person_at(screen, approves_all=yes)
        with _at_work(home, state, settings, person) as conversation:
            conversation.answer(operation_id, answer)
            conversation.recover()
            if not conversation.session.is_complete:
                conversation.announce(watched=False)
    return 0


def _brought(home: "Home", path: Path) -> str:
    if not path.is_file():
        raise UsageError(f"{path} is no file; name one of inbox/rejected/")
    return home.mailbox.bring_back(path)


def _inbox(conversation: "Conversation", home: "Home") -> "Inbox":
    """Gives the inbox as a session sees it: what lay there before it began is left alone."""
    from codingagent.faces.drop import Inbox

    return Inbox(home.mailbox.look, conversation.session.lying)


def _follow(conversation: "Conversation", home: "Home", screen: Screen, *, clipboard: bool) -> None:
    from codingagent import compose
    from codingagent.faces import drop

    with compose.watch_inbox(home) as watch:
        if watch.fault:
            remark(
                screen, f"the inbox can't be watched ({watch.fault}); it is looked at once a second"
            )
        inbox = _inbox(conversation, home)
        if not clipboard:
            drop.follow(conversation, inbox, watch)
            return
        from codingagent.faces.clip import Glance

        glance = Glance(home, lambda complaint: remark(screen, complaint))
        drop.follow(conversation, inbox, watch, glance)


@contextlib.contextmanager
def _at_work(
    home: "Home", session: "Session", settings: "Settings", person: "Person"
) -> "Iterator[Conversation]":
    """Gives a session at work; an interrupt says how to go on."""
    from codingagent import compose

    try:
        with compose.conversation_in(home, session, settings, person) as conversation:
            yield conversation
    except KeyboardInterrupt:
        raise InterruptError(
            f"stopped; nothing is lost: `codingagent resume {session.session_id}` goes on"
        ) from None
