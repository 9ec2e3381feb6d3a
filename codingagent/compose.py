"""Folders and settings -> a session at work: the only place that knows every class."""

import contextlib
import locale
import os
import platform
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from codingagent.agent import Agent, Means
from codingagent.attaching import attachable
from codingagent.confinement import choose_sandbox, policy_of, refuse_impossible_check
from codingagent.conversation import Conversation, Correspondence
from codingagent.core import policy as policies
from codingagent.core.approval import Answer
from codingagent.core.changes import Change, Checkpoint
from codingagent.core.findings import digest_of
from codingagent.core.notices import ApprovalAwaited, Notice, Remark
from codingagent.core.outbox import Budget, Environment
from codingagent.core.policy import PRESETS, Policy
from codingagent.core.session import Protocol, Session, SessionStarted, Step, fold, steps
from codingagent.core.settings import Settings
from codingagent.errors import UsageError, WorkError
from codingagent.execution import Check, Ledger, Surroundings
from codingagent.homes import Home, check_apart, make_workspace
from codingagent.keeping import Keeper, Keeping
from codingagent.undo import Undo
from codingagent.world import disk
from codingagent.world.checkpoints import Checkpoints, Site
from codingagent.world.gitstore import Git
from codingagent.world.repository import user_excludes
from codingagent.world.runner import Runner, environment, find_program, run_tool
from codingagent.world.sandbox import Bubblewrap, Unconfined
from codingagent.world.workspace import Workspace, temporary_name

if TYPE_CHECKING:
    from codingagent.world.watch import Watch


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


def start_session(
    home: Home, workspace: Path, task: str, settings: Settings, protocol: Protocol = "tags"
) -> Session:
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
    record = SessionStarted(
        session_id,
        task,
        str(opened.root),
        now(),
        kept_policy(settings),
        settings.sandbox,
        settings.network,
        protocol,
        settings.check,
    )
    home.sessions.begin(session_id, record)
    session = fold(None, record)
    home.sessions.write_document(session)
    return session


@dataclass(frozen=True, slots=True)
class Person:
    """Whoever watches: what they are shown, and whether they can be asked.

    `ask` gives None if nobody is there; `approves_all` says that they said yes to everything before.
    """

    show: Callable[[Notice], None]
    ask: Callable[[ApprovalAwaited], Answer | None] = lambda _: None
    approves_all: bool = False
    accepts_formats: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where work is done.

    `root` is the workspace; `hidden` are folders of ours that may lie in it; `temporary` is what
    sandboxed commands see as /tmp; `store` is where checkpoints are kept, None for none.
    """

    root: Path
    hidden: tuple[Path, ...]
    temporary: Path
    store: Path | None


@dataclass(frozen=True, slots=True)
class Bench:
    """A place made ready: all that executing needs, whichever protocol asks."""

    workspace: Workspace
    runner: Runner
    sandbox: Bubblewrap | Unconfined
    policy: Policy
    checkpoints: Checkpoints | None
    settings: Settings
    folders: tuple[Path, ...]
    """What must be durable before anyone hears of it."""

    def agent(self, ledger: Ledger, show: Callable[[Notice], None]) -> Agent:
        """Gives what executes single operations."""
        timeout_s = self.settings.command_timeout
        means = Means(self.workspace, self.runner, ledger, now, show, timeout_s, self.policy)
        return Agent(means)

    def surroundings(
        self, person: "Person", keep_document: Callable[[Session], None]
    ) -> Surroundings:
        """Gives what executing many of them needs besides."""
        return Surroundings(
            self.workspace,
            lambda: disk.sync(self.folders),
            now,
            person.show,
            _keeping(self.checkpoints, self.folders, person.show),
            person.ask,
            person.approves_all,
            Check(self.settings.check, self.settings.check_timeout)
            if self.settings.check
            else None,
            keep_document,
        )


@contextlib.contextmanager
def bench_at(place: Place, settings: Settings, folders: tuple[Path, ...] = ()) -> Iterator[Bench]:
    """Makes a place ready for work; all that it holds open is closed, and its commands ended, after.

    Raises:
        UsageError: if the workspace or the policy can't be used.
        WorkError: if a sandbox is required and does not work.
    """
    policy = policy_of(settings, place.root)
    sandbox = choose_sandbox(settings, policy, place.root, place.hidden, place.temporary)
    with contextlib.ExitStack() as stack:
        rules = partial(_user_rules, place.root)
        lines = settings.list_entries
        opened = Workspace(place.root, place.hidden, user_rules=rules, entries=lines)
        workspace = stack.enter_context(contextlib.closing(opened))
        runner = Runner(sandbox, environment(os.environ, settings.pass_env))
        stack.callback(runner.close)
        checkpoints = stack.enter_context(_checkpoints(place))
        yield Bench(
            workspace,
            runner,
            sandbox,
            policy,
            checkpoints,
            settings,
            (workspace.root, *folders),
        )


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
    check_workspace(home, session)
    place = place_of(home, session)
    with contextlib.ExitStack() as stack:
        bench = stack.enter_context(bench_at(place, settings, (home.root, home.mailbox.outbox)))
        refuse_impossible_check(settings, bench.policy, place.root)
        journal = stack.enter_context(contextlib.closing(home.sessions.open(session_id)))
        ledger = Ledger(journal, session)
        finish_undo(home, ledger, bench.checkpoints, show)
        mail = Correspondence(
            home.mailbox,
            Budget(settings.context_chars, settings.list_entries),
            _environment(settings, bench.sandbox, bench.policy),
            locale.getpreferredencoding(do_setlocale=False),
            person.accepts_formats,
        )
        if session.is_new or session.tier not in ("", bench.sandbox.tier):
            show(Remark(bench.sandbox.remark))
        surroundings = bench.surroundings(person, home.sessions.mend_document)
        yield Conversation(ledger, bench.agent(ledger, show), surroundings, mail)
        if ledger.session.is_complete:
            # What commands left in their /tmp; the next turn of a reopened session begins without.
            shutil.rmtree(place.temporary, ignore_errors=True)


def attached(
    home: Path, root: Path, patterns: Sequence[str], show: Callable[[Notice], None]
) -> tuple[str, ...]:
    """Gives the files of a workspace that a person names from the current folder; says what can't be shown.

    Raises:
        UsageError: if one names nothing that can be shown.
    """
    if not patterns:
        return ()
    hidden = (home, *(home / name for name in ("sessions", "outbox", "inbox")))
    rules = partial(_user_rules, root)
    with contextlib.closing(Workspace(root, hidden, user_rules=rules)) as workspace:
        found = attachable(workspace, patterns, Path.cwd())
    for reason in found.left_out[:_LEFT_OUT_NAMED]:
        show(Remark(f"not attached: {reason}"))
    if len(found.left_out) > _LEFT_OUT_NAMED:
        show(Remark(f"not attached: {len(found.left_out) - _LEFT_OUT_NAMED} more"))
    return found.paths


_LEFT_OUT_NAMED = 10


def check_workspace(home: Home, session: Session) -> None:
    """Refuses to go on in a workspace that its home has no say over.

    Raises:
        UsageError: if that is so.
    """
    root = Path(session.workspace)
    check_apart(home.root, root)
    if home.was_found and home.root.parent.resolve() not in (root, *root.parents):
        # Whoever can write in a folder can plant a home there, and a session in it.
        raise UsageError(
            f"session {session.session_id} works in '{root}', not where its home was found: if it is yours,"
            f" name the home with --home '{home.root}'"
        )


def place_of(home: Home, session: Session) -> Place:
    """Gives where a session, or a run, does its work."""
    root = Path(session.workspace)
    if session.is_run:
        return place_of_runs(home, root)
    own = home.sessions.folder / session.session_id
    return Place(root, _hidden(home, root), own / "tmp", own / "checkpoints")


def place_of_runs(home: Home, root: Path) -> Place:
    """Gives where all runs in a workspace do their work.

    They come by the thousand: what is kept of the workspace, and their /tmp, is for all of them.
    """
    key = digest_of(os.fsencode(root.resolve()))[:12]
    folder = home.runs.folder
    return Place(root, _hidden(home, root), folder / "tmp", folder / f"checkpoints-{key}")


def new_run_id() -> str:
    """Gives a name that no run has."""
    return f"run_{secrets.token_hex(6)}"


def kept_policy(settings: Settings) -> str:
    """Gives how a record names the policy: a preset, or a file from wherever one is."""
    policy = settings.policy
    return policy if policy in PRESETS else str(Path(policy).absolute())


@contextlib.contextmanager
def _checkpoints(place: Place) -> Iterator[Checkpoints | None]:
    """Gives where the workspace as it was is kept; None without git."""
    program = find_program("git", place.root)
    if program is None or place.store is None:
        yield None
        return
    site = Site(place.root.resolve(), place.hidden, temporary_name)
    git = Git(program, partial(run_tool, timeout_s=_GIT_S))
    with contextlib.closing(Checkpoints(place.store, site, git)) as checkpoints:
        yield checkpoints


# git waits for ever at a .gitignore that is a pipe, and a reply could make one.
_GIT_S = 60


def _keeping(
    checkpoints: Checkpoints | None, folders: tuple[Path, ...], show: Callable[[Notice], None]
) -> Keeping:
    return Keeping(
        # What is ignored must be known only where files may be put back to.
        lambda before: _keep(checkpoints, show, lambda kept: kept.take(with_ignored=before)),
        lambda since, wanted: _keep(checkpoints, show, lambda kept: kept.take_only(since, wanted)),
        lambda shown: _prepare(checkpoints, shown),
        lambda old, new, changed: _uncovered(checkpoints, old, new, changed),
        lambda old, new: _changes(checkpoints, old, new),
        lambda: disk.sync(folders),
        now,
        show,
    )


@cache
def _user_rules(root: Path) -> str:
    """Gives what the user leaves out of all repositories; git is asked once, when a listing is made."""
    run = partial(run_tool, timeout_s=_GIT_S)
    return user_excludes(find_program("git", root), run, os.environ)


def _keep(
    checkpoints: Checkpoints | None,
    show: Callable[[Notice], None],
    take: Callable[[Checkpoints], Checkpoint],
) -> Checkpoint | None:
    """Takes a checkpoint; without one a turn goes on, and can't be taken back."""
    if checkpoints is None:
        return None
    try:
        found = take(checkpoints)
    except WorkError as fault:
        show(Remark(f"this turn can't be taken back: {fault}"))
        return None
    if found.set_aside:
        show(Remark(f"earlier checkpoints were damaged and are kept in {found.set_aside}"))
    return found


def _prepare(checkpoints: Checkpoints | None, shown: str) -> bool:
    """Keeps the workspace ahead of time, and compares it; what goes wrong is said when it matters."""
    if checkpoints is None:
        return True
    try:
        return checkpoints.prepare(shown)
    except WorkError:
        return True


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


def _changes(checkpoints: Checkpoints | None, old: str, new: str) -> tuple[Change, ...] | None:
    """Gives what differs between two checkpoints; None if that can't be known."""
    if checkpoints is None or not old or not new:
        return None
    if old == new:
        return ()
    try:
        return checkpoints.changes(old, new)
    except WorkError:
        return None


def finish_undo(
    home: Home,
    ledger: Ledger,
    checkpoints: Checkpoints | None,
    show: Callable[[Notice], None],
) -> None:
    """Ends an undo that a kill interrupted; without git it waits."""
    if ledger.session.undoing is not None and checkpoints is not None:
        _undo(home, ledger, checkpoints, show).finish()


def _undo(
    home: Home,
    ledger: Ledger,
    checkpoints: Checkpoints,
    show: Callable[[Notice], None],
    *,
    force: bool = False,
) -> Undo:
    session = ledger.session
    found = steps(home.records(session.session_id))
    folders = (Path(session.workspace), home.root)
    return Undo(ledger, checkpoints, found, lambda: disk.sync(folders), now, show, force)


@contextlib.contextmanager
def history_of(home: Home, session: Session) -> Iterator[tuple[Checkpoints, tuple[Step, ...]]]:
    """Gives a session's checkpoints, to be looked at, and the steps between them.

    Raises:
        UsageError: if there is no git, or the workspace can't be used.
    """
    with _checkpoints(place_of(home, session)) as checkpoints:
        if checkpoints is None:
            raise UsageError(_NO_GIT)
        yield checkpoints, steps(home.records(session.session_id))


_NO_GIT = "this needs git, which is not installed here; all else works without it"


def take_back(
    home: Home,
    ledger: Ledger,
    turns: int | None,
    show: Callable[[Notice], None],
    *,
    force: bool = False,
) -> None:
    """Takes back the last turns of a session, or a run, or with None the last undo.

    With `force` also what someone changed again since.

    Raises:
        UsageError: if there is no git, or nothing to take back.
        WorkError: if the disk does not let it.
    """
    with history_of(home, ledger.session) as (checkpoints, _):
        folders = (Path(ledger.session.workspace), home.root)
        Keeper(ledger, _keeping(checkpoints, folders, show)).catch_up()
        undo = _undo(home, ledger, checkpoints, show, force=force)
        if turns is None:
            undo.redo()
        else:
            undo.turns(turns)


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
        settings.check,
        policies.advice(policy),
    )


def now() -> str:
    """Gives the time in UTC, ISO 8601 with milliseconds and Z."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def watch_inbox(home: Home) -> "Watch":
    """Gives a watch on inbox and errands, to be entered. Imported late: the request is out by then."""
    from codingagent.world.watch import Watch

    home.desk.open()
    return Watch(home.mailbox.inbox, (home.desk.folder,))


def reply_runner() -> Runner:
    """Gives what runs the person's own command that replies: unconfined, with all that it may need."""
    return Runner(Unconfined(), dict(os.environ))
