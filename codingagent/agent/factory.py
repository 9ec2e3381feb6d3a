"""Build a session at work from folders and settings: the composition root."""

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from codingagent.agent.context import Context, Person, Resources, bare_context, context_of, untold
from codingagent.agent.requests import Requests
from codingagent.agent.secrecy import Secrecy, VaultFile
from codingagent.checkpoints.checkpointer import LazyStore, WorkLayout, git_for, place_of
from codingagent.errors import UsageError
from codingagent.model import notices, session_fold
from codingagent.model.journal_entries import Attached, Protocol, SessionStarted, Wants
from codingagent.model.session_state import Session
from codingagent.model.settings import Settings
from codingagent.policy.rules import PRESETS, Policy, in_sandbox, with_named
from codingagent.process import bubblewrap, diagnosis, memory, select_sandbox
from codingagent.process.runner import Runner, environment
from codingagent.storage import clock
from codingagent.storage.homes import Home, check_apart, keep_terms, make_workspace, own_folders
from codingagent.storage.journal import SessionLog, ShownTexts
from codingagent.workspace import git_programs, own_code, programs, real_paths
from codingagent.workspace.workspace import Workspace

# How many are named of the files that are not attached, and of project files whose tool lacks something.
_LEFT_OUT_NAMED, _TOOLS_NAMED = 10, 2

# The code that parses and executes answers is imported when first used: the first request is out by then.
if TYPE_CHECKING:
    from codingagent.agent.conversation import Conversation
    from codingagent.agent.wanted_files import RankedFiles
    from codingagent.prompt.render import Material


def start_session(
    home: Home,
    workspace: Path,
    task: str,
    settings: Settings,
    protocol: Protocol | Literal["calls"] = "tags",
    wants: Wants = "edits",
) -> Session:
    """Begin a session, which keeps its policy and its sandbox; UsageError if the workspace can't be used."""
    make_workspace(home.root, workspace)
    opened = Workspace(workspace)
    opened.close()
    session_id = secrets.token_hex(4)
    while (home.sessions.folder / session_id).exists():
        session_id = secrets.token_hex(4)
    terms = kept_policy(settings), settings.sandbox, settings.network, protocol, settings.check
    shown = settings.context, settings.never_choose, settings.conventions, settings.secrets
    guide = settings.guide if protocol == "tags" else "whole"  # the other guide is never kept
    record = SessionStarted(session_id, task, str(opened.root), clock.now(), *terms, *shown, wants, guide)
    home.sessions.begin(session_id, record)
    keep_terms(home.root, record)
    session = session_fold.fold(None, record)
    home.sessions.write_document(session)
    return session


@contextlib.contextmanager
def open_workspace(
    place: WorkLayout, settings: Settings, folders: tuple[Path, ...] = ()
) -> Iterator[Resources]:
    """Prepare a workspace; at the end close everything that it holds open, and end its commands."""
    git, root = partial(git_for, place.root), place.original or place.root
    policy = select_sandbox.policy_of(settings, root)
    if policy.filesystem.approval_required:
        policy = with_named(policy, git_programs.named_by_git(root, git()))
    sandbox = select_sandbox.choose_sandbox(settings, policy, root, place.hidden, place.temporary)
    if place.original is not None:
        if not isinstance(sandbox, bubblewrap.Bubblewrap):
            raise UsageError(bubblewrap.NO_TRIALS)
        layer = place.temporary.parents[3] / "layer"
        sandbox = replace(sandbox, copy=place.root, beside=place.beside, layer=layer)
    if sandbox.tier != "none":
        policy = in_sandbox(policy, has_network=sandbox.has_network)
    with contextlib.ExitStack() as stack:
        opened = Workspace(place.root, place.hidden, git=git, original=place.original)
        workspace = stack.enter_context(contextlib.closing(opened))
        variables = environment(programs.persons_variables(), settings.pass_env)
        runner = Runner(sandbox, variables, memory.limit_bytes(settings.command_memory))
        stack.callback(runner.close)
        lazy_store = stack.enter_context(contextlib.closing(LazyStore(place)))
        durable = (workspace.root, *folders)
        yield Resources(workspace, runner, sandbox, policy, settings, lazy_store, durable)


class OpenSession:
    """A session at work: its requests, and its conversation once that is needed."""

    def __init__(self, context: Context, home: Home, *, is_named: bool) -> None:
        self.context = context
        self.requests = Requests(context, home)
        self._home = home
        self._is_named = is_named

    @cached_property
    def conversation(self) -> "Conversation":
        """Take answers, execute them, and write the next requests."""
        from codingagent.agent.candidates import Trials
        from codingagent.agent.conversation import Conversation

        trials = Trials(self.context, self._home, session_in)
        return Conversation(self.requests, self._home, trials, is_named=self._is_named)

    @property
    def is_checking(self) -> bool:
        """Return whether the check runs beside the person."""
        return "conversation" in vars(self) and self.conversation.check.is_running

    def close(self) -> None:
        """End what runs beside the person."""
        if self.is_checking:
            self.conversation.check.end()

    def changes(self) -> notices.Changes:
        """Return the files that the session's turns changed, but for undone turns."""
        return self.conversation.changes()


@contextlib.contextmanager
def session_in(
    home: Home,
    session: Session,
    settings: Settings,
    person: Person,
    place: WorkLayout | None = None,
    *,
    is_named: bool = True,
) -> Iterator[OpenSession]:
    """Yield a session at work, in a copy of its workspace if `place` is one; close it at the end.

    If `is_named`, by the person, answers that name no other session are its own.
    """
    session_id = session.session_id
    if (aside := home.sessions.set_damaged_document_aside(session_id)) is not None:
        text = f"the session file was damaged: kept as {aside}, rebuilt from the journal"
        person.show(notices.Remark(text))
    if place is None:
        check_workspace(home, session)
        place = place_of(home, session)
    with contextlib.ExitStack() as stack:
        folders = (home.root, home.mailbox.outbox)
        resources = stack.enter_context(open_workspace(place, settings, folders))
        sandbox = resources.sandbox
        select_sandbox.refuse_impossible_check(settings, resources.policy, resources.workspace.root)
        journal = stack.enter_context(contextlib.closing(home.sessions.open(session_id)))
        folder = home.sessions.folder / session_id
        texts = ShownTexts(folder / "shown")
        secrecy = secrecy_for(settings, VaultFile(folder))
        stack.callback(secrecy.save)
        stack.push(secrecy.hide_error)
        tell = person.record
        person = replace(
            person,
            show=lambda notice, show=person.show: show(secrecy.notice(notice)),
            ask=lambda awaited, ask=person.ask: ask(secrecy.asked(awaited)),
            record=untold if person.record is untold else lambda *told: tell(*secrecy.record(*told)),
        )
        log = SessionLog(journal, session, person.record)
        context = context_of(resources, log, person, texts, secrecy)
        if session.undoing is not None:
            from codingagent.checkpoints import undo

            undo.finish_undo(home, context.checkpointer)
        context.checkpointer.settle()
        if (session.is_new and not session.is_asking) or session.tier not in ("", sandbox.tier):
            context.remark(sandbox.remark)
            if said := own_code.own_code_in(place.root).remark:
                free = " (but commands, which no sandbox confines, can)" * (sandbox.tier == "none")
                context.remark(f"{said}{free}")
        if session.is_new and git_for(place.root) is None:
            lacks = "nothing can be undone, and you are not asked when a command changes a protected file"
            context.remark(f"git is not installed: {lacks}")
        if session.is_new and not session.is_asking:
            tools = diagnosis.lacking(sandbox, place.root, programs.persons_path())
            for told in [f"{file}: {lacks}" for file, lacks in tools if lacks][:_TOOLS_NAMED]:
                context.remark(told)
        yield stack.enter_context(contextlib.closing(OpenSession(context, home, is_named=is_named)))
        if log.session.is_complete:
            # The next turn of a reopened session starts without files that commands left there.
            sandbox.clear_temporary()


def secrecy_for(settings: Settings, file: VaultFile | None = None) -> Secrecy:
    """Return what work under these settings hides; the values of variables that commands see are known."""
    secrecy = Secrecy(settings.secrets, file)
    for name in settings.pass_env:
        secrecy.vault.learn(os.environ.get(name, ""), "VALUE", f"${name}")
    return secrecy


def attached(
    home: Path, root: Path, patterns: Sequence[str], policy: Policy, show: Callable[[notices.Notice], None]
) -> dict[str, Attached]:
    """Return the files that a person names, and which parts; say which can't be shown."""
    if not patterns:
        return {}
    from codingagent.agent.wanted_files import attachable

    if not root.is_dir():
        how = "to work in this folder add --here, or name another with --workspace"
        raise UsageError(f"--attach names files of the workspace {root}, which is not there yet; {how}")
    with _workspace_in(home, root) as workspace:
        found, left_out = attachable(workspace, patterns, Path.cwd(), policy)
    if len(left_out) > _LEFT_OUT_NAMED:
        left_out[_LEFT_OUT_NAMED:] = [f"{len(left_out) - _LEFT_OUT_NAMED} more"]
    for reason in left_out:
        show(notices.Remark(f"not attached: {reason}"))
    return found


def drafted(
    home: Path, root: Path, task: str, settings: Settings, files: Mapping[str, Attached]
) -> "tuple[Material, RankedFiles | None]":
    """Return the first request that a task would have, with these files; nothing is kept, no check is run."""
    if not root.is_dir():
        raise UsageError(f"{root} is not a folder; name another with --workspace")
    with _workspace_in(home, root) as workspace:
        began = SessionStarted("0" * 8, task, str(workspace.root), clock.now(), check=settings.check)
        chosen = {"context": settings.context, "leave_out": settings.never_choose}
        session = session_fold.fold(None, replace(began, **chosen, conventions=settings.conventions))
        log, runner = SessionLog(None, session), Runner(bubblewrap.Unconfined(), {})
        policy, secrecy = select_sandbox.policy_of(settings, root), secrecy_for(settings)
        context = replace(bare_context(workspace, runner, policy, log), settings=settings, secrecy=secrecy)
        requests = Requests(context, Home.of(home))
        requests.say("", files)
        return requests.draft()[1:]


def _workspace_in(home: Path, root: Path) -> "contextlib.closing[Workspace]":
    """Return a workspace to read before a session begins; a home in it stays unseen."""
    return contextlib.closing(Workspace(root, own_folders(home, root), git=partial(git_for, root)))


def check_workspace(home: Home, session: Session) -> None:
    """Refuse (UsageError) a workspace that the session's home has no authority over."""
    root = Path(session.workspace)
    check_apart(home.root, root)
    real = real_paths.resolved(root)  # a mapped drive of Windows has two names
    if home.was_found and real_paths.resolved(home.root.parent) not in (real, *real.parents):
        # Anyone who can write to a folder can plant a home there, with a session in it.
        where = f"session {session.session_id} works in '{root}', not where its home was found"
        how = f"name the home with --home {programs.quoted([str(home.root)])}"
        raise UsageError(f"{where}: if it is yours, {how}")


def new_run_id() -> str:
    return f"run_{secrets.token_hex(6)}"


def kept_policy(settings: Settings) -> str:
    """Return the policy as a record names it: a preset, or a file's absolute path."""
    policy = settings.policy
    return policy if policy in PRESETS else str(Path(policy).absolute())


def reply_runner() -> Runner:
    """Return the runner of the person's own command for answers: unconfined, with its whole environment."""
    # cmd.exe else looks in the current folder first, where an answer may have put a program.
    return Runner(bubblewrap.Unconfined(), {**os.environ, "NoDefaultCurrentDirectoryInExePath": "1"})
