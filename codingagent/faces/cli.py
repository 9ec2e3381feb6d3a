"""The command line: words and options in, an exit status out. The only user of typer."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, TextIO

import typer

from codingagent import __version__
from codingagent.errors import CodingAgentError, InterruptError, UsageError

# Each command imports what it uses when it runs: --version must not wait for a tree-walker.
if TYPE_CHECKING:
    from codingagent.compose import Home
    from codingagent.conversation import Conversation
    from codingagent.core.notices import Notice
    from codingagent.core.session import Session
    from codingagent.core.settings import Settings
    from codingagent.faces.drop import Inbox

app = typer.Typer(
    name="codingagent",
    help="A coding agent that works through any web chat: you carry its requests there, and the"
    " answers back.",
    no_args_is_help=True,
    rich_markup_mode=None,  # rich costs a tenth of a second at every --help
    pretty_exceptions_enable=False,
)


class Screen(Protocol):
    """What shows notices."""

    def show(self, notice: "Notice") -> None: ...
    def close(self) -> None: ...


def main() -> None:
    """Runs the command line and leaves with its exit status (0, 1, 2, 3 or 130)."""
    # Closed by whoever started us: then there is nobody to talk to.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
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
        _silence(sys.stdout)
        return 0
    except OSError as fault:
        # What no one below could name better: a folder without permission, a deleted current folder.
        _silence(sys.stdout)
        where = f"{fault.filename}: " if fault.filename else ""
        return _fail(f"{where}{fault.strerror or fault}", 1)
    return status if isinstance(status, int) else 0


def _silence(stream: TextIO) -> None:
    """Sends what is still to be said nowhere: its reader has gone, or its disk is full."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _say_fault(message: str) -> None:
    _fail(message, 1)


def _fail(message: str, status: int) -> int:
    line = " ".join(message.split())
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
    json: _Json = False,
) -> None:
    """Start a task: write the first request, then wait for the answer."""
    from codingagent import compose

    named: Path | None = context.obj
    if here:
        if workspace is not None or named is not None:
            raise UsageError("--here says both --workspace and --home; leave those out")
        workspace, named = Path.cwd(), Path.cwd() / compose.HERE_HOME
    task = _task(words or [], file, edit)
    root = compose.find_home(named, Path.cwd(), os.environ)
    options = {"workspace": None if workspace is None else str(workspace)}
    settings = compose.resolve_settings(root, options, os.environ).settings
    # Before anything is made: a mistyped --workspace must not leave a home behind.
    folder = compose.workspace_of(root, settings)
    home = compose.Home.at(root, create=True)
    with _screen(json) as screen, home.locked():
        session = compose.start_session(home, folder, task)
        with _at_work(home, session, settings, screen) as conversation:
            conversation.begin()
            conversation.recover()
            if no_wait:
                conversation.announce(watched=False)
            else:
                _follow(conversation, home, screen)


@app.command(epilog="Example: codingagent resume", name="resume")
def _resume(
    context: typer.Context,
    session: Annotated[
        str | None, typer.Argument(help="A session id. [default: the latest that is not complete]")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Take the replies that lie in the inbox now, then exit.")
    ] = False,
    accept: Annotated[
        Path | None, typer.Option(help="Execute this file as the reply, though it was set aside.")
    ] = None,
    json: _Json = False,
) -> None:
    """Go on with a task: take the answer from the inbox, or wait for it."""
    from codingagent import compose

    home, settings = _home(context)
    with _screen(json) as screen, home.locked():
        if session is None:
            found = compose.all_sessions(home, _say_fault)
            for each in found:
                # A kill may have left a session file behind its journal.
                home.sessions.mend_document(each)
            state = compose.latest_session(found)
        else:
            state = home.sessions.load(session)
        with _at_work(home, state, settings, screen) as conversation:
            if conversation.session.is_complete:
                home.sessions.mend_document(conversation.session)
                if once and accept is None and not home.mailbox.look():
                    return
                conversation.reopen()
            conversation.recover()
            if accept is not None:
                conversation.take(_brought(home, accept), accept=True)
            if once:
                from codingagent.faces import drop

                if drop.take_present(conversation, _inbox(conversation, home)):
                    _remark(screen, "a file in the inbox is still being written: it was left there")
            else:
                _follow(conversation, home, screen)


@app.command(epilog="Example: codingagent list --json", name="list")
def _list(context: typer.Context, json: _Json = False) -> None:
    """List all sessions, the latest first."""
    from codingagent import compose
    from codingagent.faces import tables

    home, _ = _home(context)
    sessions = compose.all_sessions(home, _say_fault)
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
    from codingagent import compose
    from codingagent.faces import tables

    home, _ = _home(context)
    if session is None:
        found = compose.all_sessions(home, _say_fault)
        if not found:
            raise UsageError("there is no session yet; start one with `codingagent new`")
        session = found[0].session_id
    state = home.sessions.load(session)
    tables.show_session(state, home.sessions.records(session), json=json)


@app.command(epilog="Example: codingagent config", name="config")
def _config(context: typer.Context, json: _Json = False) -> None:
    """Show the settings in force and where each came from."""
    from codingagent import compose
    from codingagent.faces import tables

    root = compose.find_home(context.obj, Path.cwd(), os.environ)
    resolved = compose.resolve_settings(root, {}, os.environ)
    tables.show_settings(root, resolved, json=json)


@app.command(epilog="Example: codingagent demo", name="demo")
def _demo(json: _Json = False) -> None:
    """See a small real task solved, with recorded answers."""
    from codingagent.faces import demo

    with _screen(json) as screen:
        demo.play(screen.show)


# --- what the commands share --------------------------------------------------------------------


def _home(context: typer.Context) -> "tuple[Home, Settings]":
    from codingagent import compose
    from codingagent.core.settings import HOME_VARIABLE

    named: Path | None = context.obj
    root = compose.find_home(named, Path.cwd(), os.environ)
    was_found = named is None and HOME_VARIABLE not in os.environ
    was_found = was_found and root.name == compose.HERE_HOME
    home = compose.Home.at(root, create=False, was_found=was_found)
    return home, compose.resolve_settings(root, {}, os.environ).settings


def _task(words: list[str], file: Path | None, edit: bool) -> str:
    """Gives the task from the one place that was named.

    Raises:
        UsageError: if none or more than one was named, or it has no words, or can't be read.
    """
    ways = [bool(words), file is not None, edit]
    if sum(ways) > 1:
        raise UsageError("the task is given twice; give it as words, with --file, or with --edit")
    if file is not None:
        task = _read_task(file)
    elif edit:
        task = _edit_task()
    elif words == ["-"]:
        if sys.stdin is None:
            raise UsageError("there is no stdin to read the task from; name it behind new")
        # Bytes that are no UTF-8 become question marks, not faults.
        task = sys.stdin.buffer.read().decode("utf-8-sig", "replace")
    else:
        task = " ".join(words)
    if not task.strip():
        raise UsageError(
            'the task has no words; write it behind new, in quotes: codingagent new "…"'
        )
    # Words of a command line that are no UTF-8 come with half characters in them.
    return task.strip().replace("\r\n", "\n").encode("utf-8", "replace").decode()


def _read_task(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except OSError as fault:
        raise UsageError(f"{file} can't be read: {fault.strerror or fault}") from fault
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not UTF-8 text; save it as UTF-8") from None


def _edit_task() -> str:
    import tempfile

    from codingagent.world.runner import open_editor

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "task.txt"
        path.touch()
        open_editor(path)
        return _read_task(path)


def _brought(home: "Home", path: Path) -> str:
    if not path.is_file():
        raise UsageError(f"{path} is no file; name one of inbox/rejected/")
    return home.mailbox.bring_back(path)


def _inbox(conversation: "Conversation", home: "Home") -> "Inbox":
    """Gives the inbox as a session sees it: what lay there before it began is left alone."""
    from codingagent.faces.drop import Inbox

    return Inbox(home.mailbox.look, conversation.session.lying)


def _follow(conversation: "Conversation", home: "Home", screen: Screen) -> None:
    from codingagent import compose
    from codingagent.faces import drop

    with compose.watch_inbox(home) as watch:
        if watch.fault:
            _remark(
                screen, f"the inbox can't be watched ({watch.fault}); it is looked at once a second"
            )
        drop.follow(conversation, _inbox(conversation, home), watch)


@contextlib.contextmanager
def _at_work(
    home: "Home", session: "Session", settings: "Settings", screen: Screen
) -> "Iterator[Conversation]":
    """Gives a session at work; an interrupt says how to go on."""
    from codingagent import compose

    try:
        with compose.conversation_in(home, session, settings, screen.show) as conversation:
            yield conversation
    except KeyboardInterrupt:
        raise InterruptError(
            f"stopped; nothing is lost: `codingagent resume {session.session_id}` goes on"
        ) from None


def _remark(screen: Screen, text: str) -> None:
    from codingagent.core.notices import Remark

    screen.show(Remark(text))


@contextlib.contextmanager
def _screen(json: bool) -> Iterator[Screen]:
    """Gives the face for this output: JSON, a living terminal, or plain lines."""
    screen: Screen
    if json:
        from codingagent.faces.lines import JsonLines

        screen = JsonLines(sys.stdout)
    elif sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        from codingagent.faces.console import Console

        screen = Console()
    else:
        from codingagent.faces.lines import Lines

        screen = Lines(sys.stdout)
    try:
        yield _Steady(screen)
    finally:
        with contextlib.suppress(OSError):
            screen.close()


class _Steady:
    """A screen that may vanish (`| head`, a full disk): the work goes on without it."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._is_gone = False

    def show(self, notice: "Notice") -> None:
        if self._is_gone:
            return
        try:
            self._screen.show(notice)
        except OSError:
            self._is_gone = True
            _silence(sys.stdout)

    def close(self) -> None:
        self._screen.close()
