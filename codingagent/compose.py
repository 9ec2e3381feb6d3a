"""Folders and settings -> a session at work: the only place that knows every class."""

import contextlib
import functools
import locale
import os
import platform
import secrets
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from codingagent.agent import Agent, Means
from codingagent.confinement import choose_sandbox, policy_of, read_toml
from codingagent.conversation import Conversation, Correspondence
from codingagent.core import policy as policies
from codingagent.core import settings as settings_
from codingagent.core.approval import Answer
from codingagent.core.changes import Checkpoint
from codingagent.core.notices import ApprovalAwaited, Notice, Remark
from codingagent.core.outbox import Budget, Environment
from codingagent.core.policy import PRESETS, Policy
from codingagent.core.session import Session, SessionStarted, Step, fold, steps
from codingagent.core.settings import Resolved, Settings, Source
from codingagent.errors import UsageError, WorkError
from codingagent.execution import Ledger, Surroundings
from codingagent.undo import Undo
from codingagent.world import disk, registry
from codingagent.world.checkpoints import Checkpoints, Site
from codingagent.world.gitstore import Git
from codingagent.world.journal import Sessions
from codingagent.world.lock import HomeLock
from codingagent.world.mailbox import Mailbox
from codingagent.world.runner import Runner, environment, find_program, run_tool
from codingagent.world.sandbox import Bubblewrap, Unconfined
from codingagent.world.workspace import Workspace, temporary_name

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


def obeys_file(home: Path, workspace: Path) -> bool:
    """Tells whether codingagent.toml in the home counts: not if the home lies in the workspace.

    There an answer's commands, or whoever wrote the repository, could have put it.
    """
    real = workspace.resolve()
    return real not in (home.resolve(), *home.resolve().parents)


def resolve_settings(
    home: Path,
    options: Mapping[str, object],
    variables: Mapping[str, str],
    *,
    with_file: bool = True,
) -> Resolved:
    """Gives the settings in force: defaults, codingagent.toml in home, environment, options.

    Raises:
        UsageError: for an unknown setting or a value that can't be used, with its place.
    """
    given = {name: value for name, value in options.items() if value is not None}
    from_file = _from_home(home, read_toml(home / settings_.FILE_NAME)) if with_file else {}
    return settings_.resolve(
        [
            Source(settings_.FILE_NAME, from_file),
            settings_.from_environment(variables),
            Source(settings_.OPTION, given),
        ]
    )


def settings_for(
    home: Path,
    options: Mapping[str, object],
    variables: Mapping[str, str],
    workspace: Path | None = None,
) -> tuple[Resolved, Path]:
    """Gives the settings in force for a workspace, and the workspace; that one unless it is given.

    Raises:
        UsageError: as `resolve_settings` and `workspace_of`.
    """
    resolved = resolve_settings(home, options, variables)
    folder = workspace or workspace_of(home, resolved.settings)
    if not obeys_file(home, folder):
        resolved = resolve_settings(home, options, variables, with_file=False)
        folder = workspace or workspace_of(home, resolved.settings)
    return resolved, folder


# What each choice lets through, the strictest first.
_STRICTNESS = {
    "policy": ("restrictive", "standard", "permissive"),
    "sandbox": ("require", "auto", "off"),
    "network": (False, True),
}


def kept_settings(
    home: Path, session: Session, resolved: Resolved, *, executes: bool = True
) -> Settings:
    """Gives the settings that a session goes on with: its own policy and sandbox, unless an option says else.

    Args:
        home: where its record lies.
        session: what is gone on with.
        resolved: the settings as they would be for a new one.
        executes: whether anything of a reply will be executed under them.

    Raises:
        UsageError: if the session's are looser than the settings and its home lies in its workspace:
            there the record of them proves nothing.
    """
    settings = resolved.settings
    if not session.policy:
        return settings
    chosen: dict[str, object] = {}
    for name, ranks in _STRICTNESS.items():
        kept, now_ = getattr(session, name), getattr(settings, name)
        if resolved.origins[name] == settings_.OPTION or kept == now_:
            continue
        is_known = kept in ranks and now_ in ranks
        is_looser = not is_known or ranks.index(kept) > ranks.index(now_)
        if executes and is_looser and not obeys_file(home, Path(session.workspace)):
            option = "--network" if name == "network" else f"--{name} {kept}"
            raise UsageError(
                f"session {session.session_id} was started with {option}, but its record lies in the"
                f" workspace and proves nothing; say {option} again"
            )
        chosen[name] = kept
    return replace(settings, **chosen)  # type: ignore[arg-type]  # each has its own field's type


def _from_home(home: Path, values: dict[str, object]) -> dict[str, object]:
    """Gives the file's values; a relative folder in it counts from the home, where the file lies."""
    workspace = values.get("workspace")
    if not isinstance(workspace, str) or not workspace:
        return values
    return {**values, "workspace": str(home / workspace)}


@dataclass(frozen=True, slots=True)
class Home:
    """The folders of one home, made if they were missing."""

    root: Path
    sessions: Sessions
    mailbox: Mailbox
    was_found: bool = False
    """Nobody named it: it is the current folder, or was found from there upwards."""

    @classmethod
    def at(
        cls, root: Path, *, create: bool, was_found: bool = False, is_passing: bool = False
    ) -> "Home":
        """Gives the home at `root`.

        Args:
            root: its folder.
            create: make what is missing.
            was_found: nobody named it; then it must have been made here, or hold nothing yet.
            is_passing: it will be thrown away, and need not be remembered.

        Raises:
            UsageError: if it is not there and is not to be made, or can't be made, or is not to be
                believed.
        """
        check_home(root, was_found=was_found)
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
        if not is_passing:
            registry.remember(root)
        if root.name == HERE_HOME:
            with (
                contextlib.suppress(OSError),
                (root / ".gitignore").open("x", encoding="utf-8") as file,
            ):
                file.write("*\n")
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


def check_home(root: Path, *, was_found: bool) -> None:
    """Refuses a home that others may have laid out.

    Raises:
        UsageError: if it was not named and not made here, or one of its folders is a link.
    """
    names = ("sessions", "outbox", "inbox", "inbox/processed", "inbox/rejected", "sessions/.lock")
    for name in names:
        if (root / name).is_symlink():
            raise UsageError(f"{root / name} is a link; a home has its own folders: remove it")
    if was_found and root.is_symlink():
        raise UsageError(f"{root} is a link; if it is yours, name where it leads with --home")
    holds = [n for n in ("sessions", settings_.FILE_NAME) if os.path.lexists(root / n)]
    if was_found and holds and not registry.is_known(root):
        raise UsageError(
            f"{root} holds {' and '.join(holds)} that codingagent did not make here (a copy, or somebody"
            f" else's); look at it, and if it is yours name it once: --home {shlex.quote(str(root))}"
        )


def default_workspace(home: Path) -> Path:
    """Gives `workspace/` in the home; of a home named `.codingagent` it is the folder around it."""
    return home.parent if home.name == HERE_HOME else home / "workspace"


def workspace_of(home: Path, settings: Settings) -> Path:
    """Gives the workspace that the settings name, without making anything.

    Raises:
        UsageError: if it is the home itself, or one that is named can't be used.
    """
    if not settings.workspace:
        return default_workspace(home)
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
    inner = home.resolve()
    if real in inner.parents and inner.parent != real:
        raise UsageError(
            f"home '{home}' lies deep in the workspace, where commands could move it away; put it"
            " directly into the workspace, or outside"
        )
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
        if path.is_symlink():
            raise UsageError(
                f"'{path}' is a link to '{path.resolve()}'; to work there, name it: --workspace"
            )
        try:
            path.mkdir(exist_ok=True)
        except OSError as fault:
            raise UsageError(
                f"workspace '{path}' can't be made: {fault.strerror or fault}"
            ) from fault


def start_session(home: Home, workspace: Path, task: str, settings: Settings) -> Session:
    """Begins a session, which keeps its policy and its sandbox.

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
    policy = settings.policy
    record = SessionStarted(
        session_id,
        task,
        str(opened.root),
        now(),
        policy if policy in PRESETS else str(Path(policy).absolute()),
        settings.sandbox,
        settings.network,
    )
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


@dataclass(frozen=True, slots=True)
class Person:
    """Whoever watches: what they are shown, and whether they can be asked.

    `ask` gives None if nobody is there; `approves_all` says that they said yes to everything before.
    """

    show: Callable[[Notice], None]
    ask: Callable[[ApprovalAwaited], Answer | None] = lambda _: None
    approves_all: bool = False


@contextlib.contextmanager
def conversation_in(
    home: Home, session: Session, settings: Settings, person: Person
) -> Iterator[Conversation]:
    """Gives a session at work; all that it holds open is closed, and its commands ended, after.

    Raises:
        UsageError: if the session's workspace or the policy can't be used.
        WorkError: if its journal can't be written, or a sandbox is required and does not work.
    """
    show = person.show
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
    policy = policy_of(settings, root)
    hidden = _hidden(home, root)
    temporary = home.sessions.folder / session_id / "tmp"
    sandbox = choose_sandbox(settings, policy, root, hidden, temporary)
    with contextlib.ExitStack() as stack:
        workspace = stack.enter_context(contextlib.closing(Workspace(root, hidden)))
        runner = Runner(sandbox, environment(os.environ, settings.pass_env))
        stack.callback(runner.close)
        journal = stack.enter_context(contextlib.closing(home.sessions.open(session_id)))
        ledger = Ledger(journal, session)
        means = Means(workspace, runner, ledger, now, show, settings.command_timeout, policy)
        checkpoints = stack.enter_context(_checkpoints(home, session_id, root, hidden))
        if session.undoing is not None and checkpoints is not None:
            _undo(home, ledger, checkpoints, show).finish()
        surroundings = Surroundings(
            workspace,
            lambda: disk.sync((workspace.root, home.root)),
            now,
            show,
            lambda before: _keep(checkpoints, show, before=before),
            lambda old, new, changed: _uncovered(checkpoints, old, new, changed),
            person.ask,
            person.approves_all,
            home.sessions.mend_document,
        )
        mail = Correspondence(
            home.mailbox,
            Budget(settings.context_chars, settings.list_entries),
            _environment(settings, sandbox, policy),
            locale.getpreferredencoding(do_setlocale=False),
        )
        if session.is_new or session.tier not in ("", sandbox.tier):
            show(Remark(sandbox.remark))
        yield Conversation(ledger, Agent(means), surroundings, mail)
        if ledger.session.is_complete:
            # What commands left in their /tmp; the next turn of a reopened session begins without.
            shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def _checkpoints(
    home: Home, session_id: str, workspace: Path, hidden: tuple[Path, ...]
) -> Iterator[Checkpoints | None]:
    """Gives where the workspace as it was is kept; None without git."""
    program = find_program("git", workspace)
    if program is None:
        yield None
        return
    site = Site(workspace.resolve(), hidden, temporary_name)
    store = home.sessions.folder / session_id / "checkpoints"
    git = Git(program, functools.partial(run_tool, timeout_s=_GIT_S))
    with contextlib.closing(Checkpoints(store, site, git)) as checkpoints:
        yield checkpoints


# git waits for ever at a .gitignore that is a pipe, and a reply could make one.
_GIT_S = 60


def _keep(
    checkpoints: Checkpoints | None, show: Callable[[Notice], None], *, before: bool
) -> Checkpoint | None:
    """Takes a checkpoint; without one a turn goes on, and can't be taken back."""
    if checkpoints is None:
        return None
    try:
        # What is ignored must be known only where files may be put back to.
        found = checkpoints.take(with_ignored=before)
    except WorkError as fault:
        show(Remark(f"this turn can't be taken back: {fault}"))
        return None
    if found.set_aside:
        show(Remark(f"earlier checkpoints were damaged and are kept in {found.set_aside}"))
    return found


def _uncovered(
    checkpoints: Checkpoints | None, old: str, new: str, changed: tuple[str, ...]
) -> tuple[str, ...]:
    """Gives those of the changed paths that can't be taken back by these two checkpoints."""
    if checkpoints is None or not changed:
        return ()
    try:
        known = checkpoints.covers(old, new, changed)
    except WorkError:
        return ()
    return tuple(path for path in changed if path not in known)


def _undo(
    home: Home,
    ledger: Ledger,
    checkpoints: Checkpoints,
    show: Callable[[Notice], None],
    *,
    force: bool = False,
) -> Undo:
    session = ledger.session
    found = steps(home.sessions.records(session.session_id))
    folders = (Path(session.workspace), home.root)
    return Undo(ledger, checkpoints, found, lambda: disk.sync(folders), now, show, force)


@contextlib.contextmanager
def history_of(home: Home, session: Session) -> Iterator[tuple[Checkpoints, tuple[Step, ...]]]:
    """Gives a session's checkpoints, to be looked at, and the steps between them.

    Raises:
        UsageError: if there is no git, or the workspace can't be used.
    """
    root = Path(session.workspace)
    with _checkpoints(home, session.session_id, root, _hidden(home, root)) as checkpoints:
        if checkpoints is None:
            raise UsageError(_NO_GIT)
        yield checkpoints, steps(home.sessions.records(session.session_id))


_NO_GIT = "this needs git, which is not installed here; all else works without it"


def take_back(
    home: Home,
    conversation: Conversation,
    turns: int | None,
    show: Callable[[Notice], None],
    *,
    force: bool = False,
) -> None:
    """Takes back the last turns of a session, or with None the last undo; then writes its request anew.

    With `force` also what someone changed again since.

    Raises:
        UsageError: if there is no git, or nothing to take back.
        WorkError: if the disk does not let it.
    """
    with history_of(home, conversation.session) as (checkpoints, _):
        undo = _undo(home, conversation.ledger, checkpoints, show, force=force)
        if turns is None:
            undo.redo()
        else:
            undo.turns(turns)
    conversation.recover()


def _hidden(home: Home, workspace: Path) -> tuple[Path, ...]:
    """Gives the folders that are ours and may lie inside the workspace."""
    folders = (home.sessions.folder, home.mailbox.outbox, home.mailbox.inbox)
    return folders if home.root.resolve() in workspace.resolve().parents else (home.root, *folders)


def _environment(
    settings: Settings, sandbox: Bubblewrap | Unconfined, policy: Policy
) -> Environment:
    return Environment(
        f"{platform.system()} ({platform.machine()})",
        "cmd.exe" if os.name == "nt" else "/bin/sh",
        tuple(name for name in _PROGRAMS if shutil.which(name)),
        settings.command_timeout,
        sandbox.description,
        sandbox.network,
        policies.advice(policy),
    )


def now() -> str:
    """Gives the time in UTC, ISO 8601 with milliseconds and Z."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def watch_inbox(home: Home) -> "Watch":
    """Gives a watch on the inbox, to be entered. Imported late: the request is out by then."""
    from codingagent.world.watch import Watch

    return Watch(home.mailbox.inbox)
