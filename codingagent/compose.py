"""Folders and settings -> a session at work: the only place that knows every class."""

import contextlib
import locale
import os
import platform
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from codingagent.agent import Agent, Means
from codingagent.conversation import Conversation, Ledger, Surroundings
from codingagent.core import settings as settings_
from codingagent.core.notices import Notice, Remark
from codingagent.core.outbox import Budget, Environment
from codingagent.core.session import Session, SessionStarted, fold
from codingagent.core.settings import Resolved, Settings, Source
from codingagent.errors import UsageError, WorkError
from codingagent.world import disk
from codingagent.world.journal import Sessions
from codingagent.world.lock import HomeLock
from codingagent.world.mailbox import Mailbox
from codingagent.world.runner import Runner, environment
from codingagent.world.sandbox import Unconfined
from codingagent.world.workspace import Workspace

if TYPE_CHECKING:
    from codingagent.world.watch import Watch

HERE_HOME = ".codingagent"

# What a model would otherwise spend a round trip on finding out.
_PROGRAMS = (
    *(
        "python3",
        "python",
        "pip",
        "uv",
        "pytest",
        "node",
        "npm",
        "pnpm",
        "yarn",
        "bun",
        "deno",
        "tsc",
    ),
    *(
        "go",
        "cargo",
        "java",
        "mvn",
        "gradle",
        "dotnet",
        "ruby",
        "php",
        "gcc",
        "g++",
        "clang",
        "cmake",
    ),
    *("make", "git", "rg", "jq", "sed", "patch", "curl", "docker"),
)


def find_home(named: Path | None, folder: Path, variables: Mapping[str, str]) -> Path:
    """Gives the home: the one named, else the nearest `.codingagent` upwards, else `folder` itself.

    Args:
        named: from the command line.
        folder: the current folder.
        variables: the environment; CODINGAGENT_HOME counts as named.
    """
    if named is not None:
        return named.absolute()
    if variable := variables.get(settings_.HOME_VARIABLE):
        return Path(variable).absolute()
    if not _is_home(folder):
        for above in (folder, *folder.parents):
            if _is_home(above / HERE_HOME):
                return above / HERE_HOME
    return folder


def _is_home(folder: Path) -> bool:
    return (folder / "sessions").is_dir() and (folder / "inbox").is_dir()


def resolve_settings(
    home: Path, options: Mapping[str, object], variables: Mapping[str, str]
) -> Resolved:
    """Gives the settings in force: defaults, codingagent.toml in home, environment, options.

    Raises:
        UsageError: for an unknown setting or a value that can't be used, with its place.
    """
    given = {name: value for name, value in options.items() if value is not None}
    return settings_.resolve(
        [
            Source(settings_.FILE_NAME, _from_home(home, _read_file(home / settings_.FILE_NAME))),
            settings_.from_environment(variables),
            Source("option", given),
        ]
    )


def _from_home(home: Path, values: dict[str, object]) -> dict[str, object]:
    """Gives the file's values; a relative folder in it counts from the home, where the file lies."""
    workspace = values.get("workspace")
    if not isinstance(workspace, str) or not workspace:
        return values
    return {**values, "workspace": str(home / workspace)}


def _read_file(path: Path) -> dict[str, object]:
    if not path.exists():
        return {}
    import tomllib

    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as fault:
        raise UsageError(f"{path} can't be read: {fault}") from fault


@dataclass(frozen=True, slots=True)
class Home:
    """The folders of one home, made if they were missing."""

    root: Path
    sessions: Sessions
    mailbox: Mailbox
    was_found: bool = False
    """It was not named, but found upwards by its name."""

    @classmethod
    def at(cls, root: Path, *, create: bool, was_found: bool = False) -> "Home":
        """Gives the home at `root`.

        Raises:
            UsageError: if it is not there and is not to be made, or can't be made.
        """
        home = cls(root, Sessions(root / "sessions"), Mailbox(root), was_found)
        folders = (home.sessions.folder, home.mailbox.outbox, home.mailbox.inbox)
        if create:
            for folder in folders:
                try:
                    folder.mkdir(parents=True, exist_ok=True)
                except OSError as fault:
                    raise UsageError(
                        f"home {root} can't be used: {folder.name}/ can't be made there"
                        f" ({fault.strerror or fault}); name another with --home"
                    ) from fault
        elif home.sessions.folder.is_dir():
            for folder in folders:
                folder.mkdir(exist_ok=True)
        else:
            raise UsageError(
                f"{root} is no home of codingagent yet: start a task there with `codingagent new`,"
                " or name its home with --home"
            )
        return home

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the home's lock: one home, one executor.

        Raises:
            WorkError: if another process holds it.
        """
        lock = HomeLock(self.sessions.folder / ".lock")
        try:
            yield
        finally:
            lock.close()


def workspace_of(home: Path, settings: Settings) -> Path:
    """Gives the workspace that the settings name, without making anything.

    The default is `workspace/` in the home; of a home named `.codingagent` it is the folder around it.

    Raises:
        UsageError: if it is the home itself, or one that is named can't be used.
    """
    if not settings.workspace:
        return home.parent if home.name == HERE_HOME else home / "workspace"
    path = Path(settings.workspace).absolute()
    if path.resolve() == home.resolve():
        raise UsageError(
            f"'{path}' can't be workspace and home at once: use `codingagent new --here` to work in it"
        )
    Workspace(path).close()
    check_apart(home, path)
    return path


def check_apart(home: Path, workspace: Path) -> None:
    """Refuses a workspace in which a reply could write replies, requests or the record itself.

    Raises:
        UsageError: if it is one of the home's own folders, or lies in one.
    """
    real = workspace.resolve()
    for name in ("inbox", "outbox", "sessions"):
        own = (home / name).resolve()
        if own == real or own in real.parents:
            raise UsageError(f"'{workspace}' belongs to codingagent itself; name another workspace")


def make_workspace(home: Path, path: Path) -> None:
    """Makes the default workspace if it is missing; one that was named is there.

    Raises:
        UsageError: if it can't be made.
    """
    if path == home / "workspace":
        try:
            path.mkdir(exist_ok=True)
        except OSError as fault:
            raise UsageError(
                f"workspace '{path}' can't be made: {fault.strerror or fault}"
            ) from fault


def start_session(home: Home, workspace: Path, task: str) -> Session:
    """Begins a session.

    Raises:
        UsageError: if the workspace can't be used.
        WorkError: if the journal can't be written.
    """
    make_workspace(home.root, workspace)
    opened = Workspace(workspace)
    opened.close()
    session_id = secrets.token_hex(4)
    while (home.sessions.folder / session_id).exists():
        session_id = secrets.token_hex(4)
    record = SessionStarted(session_id, task, str(opened.root), now())
    home.sessions.begin(session_id, record)
    session = fold(None, record)
    home.sessions.write_document(session)
    return session


def latest_session(sessions: list[Session]) -> Session:
    """Gives the session that changed last and is not complete.

    Raises:
        UsageError: if there is none.
    """
    open_ones = [session for session in sessions if not session.is_complete]
    if not open_ones:
        raise UsageError("no session is waiting; start one with `codingagent new`, or name one")
    return open_ones[0]


def all_sessions(home: Home, on_damage: Callable[[str], None]) -> list[Session]:
    """Gives all sessions, the one that changed last first.

    Args:
        home: where they are.
        on_damage: gets a line for each session that can't be read; the others are given all the same.
    """
    found: list[Session] = []
    for session_id in home.sessions.ids():
        try:
            found.append(home.sessions.load(session_id))
        except WorkError as fault:
            on_damage(str(fault))
    return sorted(found, key=lambda session: session.updated_at, reverse=True)


@contextlib.contextmanager
def conversation_in(
    home: Home, session: Session, settings: Settings, show: Callable[[Notice], None]
) -> Iterator[Conversation]:
    """Gives a session at work; all that it holds open is closed, and its commands ended, after.

    Raises:
        UsageError: if the session's workspace can't be used.
        WorkError: if its journal can't be written.
    """
    session_id = session.session_id
    if (aside := home.sessions.set_damaged_document_aside(session_id)) is not None:
        show(Remark(f"the session file was damaged: kept as {aside}, made anew from the journal"))
    root = Path(session.workspace)
    check_apart(home.root, root)
    if home.was_found and home.root.parent.resolve() not in (root, *root.parents):
        # Whoever can write in a folder can plant a home there, and a session in it.
        raise UsageError(
            f"session {session_id} works in '{root}', not where its home was found: if it is yours, name"
            f" the home with --home '{home.root}'"
        )
    sandbox = Unconfined()
    with contextlib.ExitStack() as stack:
        workspace = stack.enter_context(contextlib.closing(Workspace(root, _hidden(home, root))))
        runner = Runner(sandbox, environment(os.environ, settings.pass_env))
        stack.callback(runner.close)
        journal = stack.enter_context(contextlib.closing(home.sessions.open(session_id)))
        ledger = Ledger(journal, session)
        means = Means(workspace, runner, ledger, now, show, settings.command_timeout)
        surroundings = Surroundings(
            workspace,
            home.mailbox,
            home.sessions.mend_document,
            lambda: disk.sync((workspace.root, home.root)),
            now,
            show,
            Budget(settings.context_chars, settings.list_entries),
            _environment(settings, sandbox),
            locale.getpreferredencoding(do_setlocale=False),
        )
        if session.is_new:
            show(Remark(sandbox.remark))
        yield Conversation(ledger, Agent(means), surroundings)


def _hidden(home: Home, workspace: Path) -> tuple[Path, ...]:
    """Gives the folders that are ours and may lie inside the workspace."""
    folders = (home.sessions.folder, home.mailbox.outbox, home.mailbox.inbox)
    return folders if home.root.resolve() in workspace.resolve().parents else (home.root, *folders)


def _environment(settings: Settings, sandbox: Unconfined) -> Environment:
    return Environment(
        f"{platform.system()} ({platform.machine()})",
        "cmd.exe" if os.name == "nt" else "/bin/sh",
        tuple(name for name in _PROGRAMS if shutil.which(name)),
        settings.command_timeout,
        sandbox.description,
        sandbox.network,
    )


def now() -> str:
    """Gives the time in UTC, ISO 8601 with milliseconds and Z."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def watch_inbox(home: Home) -> "Watch":
    """Gives a watch on the inbox, to be entered. Imported late: the request is out by then."""
    from codingagent.world.watch import Watch

    return Watch(home.mailbox.inbox)
