"""Build a session at work from folders and settings: the composition root."""

import contextlib
import locale
import os
import platform
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from codingagent.agent.requests import Materials, Requests
from codingagent.checkpoints.checkpointer import Checkpointer
from codingagent.checkpoints.layout import GIT_S, LazyStore, WorkLayout, place_of
from codingagent.errors import UsageError
from codingagent.model.approval import Answer
from codingagent.model.journal_entries import Protocol, SessionStarted
from codingagent.model.session_state import Session, fold
from codingagent.model.settings import Settings
from codingagent.model.ui_events import ApprovalAwaited, Notice, Remark
from codingagent.policy import rules as policies
from codingagent.policy.rules import PRESETS, Policy
from codingagent.process import memory
from codingagent.process.bubblewrap import Bubblewrap, Unconfined
from codingagent.process.runner import Runner, environment, find_program, run_tool
from codingagent.process.select_sandbox import choose_sandbox, policy_of, refuse_impossible_check
from codingagent.prompt.render import Budget, Environment
from codingagent.storage import atomic_write
from codingagent.storage.clock import now
from codingagent.storage.homes import Home, check_apart, make_workspace
from codingagent.storage.session_log import SessionLog
from codingagent.storage.shown_texts import ShownTexts
from codingagent.workspace.git_repository import is_bare, user_excludes
from codingagent.workspace.workspace import Workspace

# The code that parses and executes answers is imported when first used: the first request is out by then.
if TYPE_CHECKING:
    from codingagent.agent.batch import Surroundings
    from codingagent.agent.conversation import Conversation
    from codingagent.agent.executor import Agent
    from codingagent.agent.recipients import Recipients
    from codingagent.storage.watch import Watch


# Programs that a model would otherwise spend a round trip to find out about.
_PROGRAMS = (
    *("python3", "python", "pip", "uv", "pytest", "node", "npm", "pnpm", "yarn", "bun", "deno"),
    *("tsc", "go", "cargo", "java", "mvn", "gradle", "dotnet", "ruby", "php", "gcc", "g++"),
    *("clang", "cmake", "make", "git", "rg", "jq", "sed", "patch", "curl", "docker"),
)


def start_session(
    home: Home, workspace: Path, task: str, settings: Settings, protocol: Protocol = "tags"
) -> Session:
    """Begin a session, which keeps its policy and its sandbox.

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


class Person(Struct, frozen=True):
    """The person at the screen: how to show them notices and ask them.

    `ask` returns None if nobody can answer; `approves_all` means that they approved everything in advance.
    """

    show: Callable[[Notice], None]
    ask: Callable[[ApprovalAwaited], Answer | None] = lambda _: None
    approves_all: bool = False
    accepts_formats: bool = False
    recipients: "Recipients | None" = None
    """Find the session of an answer; None: the person named the current session."""
    follows_answers: bool = False
    """Continue with the session that an answer is for; otherwise leave it, and say so."""


class Bench(Struct, frozen=True):
    """A prepared workspace: everything that execution needs, in any protocol."""

    workspace: Workspace
    runner: Runner
    sandbox: Bubblewrap | Unconfined
    policy: Policy
    lazy_store: LazyStore
    settings: Settings
    folders: tuple[Path, ...]
    """Folders that must be durable before anything is reported."""

    def use_temporary(self, name: str) -> None:
        """Give commands a /tmp of this name from now on."""
        self.runner.sandbox = self.sandbox.with_temporary(name)

    def clear_temporary(self, name: str) -> None:
        """Remove a /tmp of this name, with everything that commands left there."""
        self.sandbox.with_temporary(name).clear_temporary()

    def agent(self, log: SessionLog, show: Callable[[Notice], None]) -> "Agent":
        """Return the executor of single operations."""
        from codingagent.agent import executor as agent

        timeout_s = self.settings.command_timeout
        means = agent.Means(
            self.workspace,
            self.runner,
            log,
            now,
            show,
            timeout_s,
            self.policy,
            self.checkpointer(log, show).is_uncovered,
        )
        return agent.Agent(means)

    def checkpointer(self, log: SessionLog, show: Callable[[Notice], None]) -> Checkpointer:
        """Return the checkpoints of one session."""
        return Checkpointer(log, self.lazy_store, self.folders, show)

    def surroundings(
        self, log: SessionLog, person: "Person", keep_document: Callable[[Session], None]
    ) -> "Surroundings":
        """Return what the execution of a batch needs besides."""
        from codingagent.agent.batch import Check, Surroundings

        return Surroundings(
            self.workspace,
            lambda: atomic_write.sync(self.folders),
            now,
            person.show,
            self.checkpointer(log, person.show),
            person.ask,
            person.approves_all,
            Check(self.settings.check, self.settings.check_timeout)
            if self.settings.check
            else None,
            keep_document,
            self.policy.filesystem,
        )


@contextlib.contextmanager
def bench_at(
    place: WorkLayout, settings: Settings, folders: tuple[Path, ...] = ()
) -> Iterator[Bench]:
    """Prepare a workspace; at the end close everything that it holds open, and end its commands.

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
        variables = environment(os.environ, settings.pass_env)
        runner = Runner(sandbox, variables, memory.limit_bytes(settings.command_memory))
        stack.callback(runner.close)
        lazy_store = stack.enter_context(contextlib.closing(LazyStore(place)))
        yield Bench(
            workspace,
            runner,
            sandbox,
            policy,
            lazy_store,
            settings,
            (workspace.root, *folders),
        )


class AtWork(Struct):
    """A session at work: its requests, and its conversation once that is needed."""

    requests: Requests
    bench: Bench
    _open: Callable[[], "Conversation"]
    _opened: "Conversation | None" = None

    @property
    def conversation(self) -> "Conversation":
        """Take answers, execute them, and write the next requests."""
        self._opened = self._opened or self._open()
        return self._opened

    def try_check(self, show: Callable[[Notice], None]) -> None:
        """Say so if the check can't start in its folder; it is not run here."""
        bench = self.bench
        if not bench.settings.check:
            return
        from codingagent.process.check_trial import complaint_about

        def run(line: str) -> str:
            outcome = bench.runner.run(line, os.fspath(root), _CHECK_TRIAL_S, lambda _: None)
            return "" if outcome.failure or outcome.ended_by != "itself" else outcome.output

        root = bench.workspace.root
        variables = environment(os.environ, bench.settings.pass_env)
        complaint = complaint_about(bench.settings.check, root, variables, run)
        if complaint:
            session_id = self.requests.session.session_id
            remedy = f"to name another: codingagent resume {session_id} --check 'COMMAND'"
            show(Remark(f"{complaint}; {remedy}"))


# Looking up a few names is quick; a network disk may take longer.
_CHECK_TRIAL_S = 20


@contextlib.contextmanager
def session_in(
    home: Home, session: Session, settings: Settings, person: Person
) -> Iterator[AtWork]:
    """Yield a session at work; at the end close everything that it holds open, and end its commands.

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
        log = SessionLog(journal, session)
        if session.undoing is not None:
            from codingagent.checkpoints import undo

            undo.finish_undo(home, bench.checkpointer(log, show))
        if session.is_new or session.tier not in ("", bench.sandbox.tier):
            show(Remark(bench.sandbox.remark))
        if session.is_new and is_bare(place.root):
            show(Remark(_BARE))
        if session.is_new and find_program("git", place.root) is None:
            show(Remark(_NO_GIT))
        requests = Requests(log, _materials_of(home, bench, log, show))
        yield AtWork(requests, bench, lambda: _conversation(home, bench, requests, person))
        if log.session.is_complete:
            # The next turn of a reopened session starts without files that commands left there.
            bench.sandbox.clear_temporary()


@contextlib.contextmanager
def conversation_in(
    home: Home, session: Session, settings: Settings, person: Person
) -> "Iterator[Conversation]":
    """Yield a session at work, ready to take answers.

    Raises:
        UsageError, WorkError: as `session_in`.
    """
    with session_in(home, session, settings, person) as work:
        yield work.conversation


def _materials_of(
    home: Home, bench: Bench, log: SessionLog, show: Callable[[Notice], None]
) -> Materials:
    settings = bench.settings

    return Materials(
        bench.workspace,
        home.mailbox,
        Budget(settings.context_chars, settings.list_entries),
        _environment(settings, bench.sandbox, bench.policy),
        lambda: atomic_write.sync(bench.folders),
        now,
        show,
        bench.checkpointer(log, show).changed_since_request,
        partial(_may_read, bench.workspace, bench.policy),
        home.sessions.mend_document,
        _shown_texts(home, log.session.session_id),
    )


def _shown_texts(home: Home, session_id: str) -> ShownTexts:
    return ShownTexts(home.sessions.folder / session_id / "shown")


def _conversation(home: Home, bench: Bench, requests: Requests, person: Person) -> "Conversation":
    from codingagent.agent.conversation import Conversation, Correspondence
    from codingagent.agent.recipients import Recipients

    mail = Correspondence(
        home.mailbox,
        person.recipients or Recipients(home),
        locale.getpreferredencoding(do_setlocale=False),
        person.accepts_formats,
        person.follows_answers,
    )
    texts = _shown_texts(home, requests.session.session_id)
    surroundings = bench.surroundings(requests.log, person, home.sessions.mend_document)
    surroundings = replace(surroundings, shown_text=texts.read)
    return Conversation(requests, bench.agent(requests.log, person.show), surroundings, mail)


def attached(
    home: Path,
    root: Path,
    patterns: Sequence[str],
    policy: Policy,
    show: Callable[[Notice], None],
) -> tuple[str, ...]:
    """Return the workspace files that a person names from the current folder; say which can't be shown.

    Raises:
        UsageError: if one names nothing that can be shown.
    """
    if not patterns:
        return ()
    from codingagent.agent.attachments import attachable

    if not root.is_dir():
        raise UsageError(
            f"--attach names files of the workspace {root}, which is not there yet; to work in this folder"
            " add --here, or name another with --workspace"
        )
    hidden = (home, *(home / name for name in ("sessions", "outbox", "inbox")))
    rules = partial(_user_rules, root)
    with contextlib.closing(Workspace(root, hidden, user_rules=rules)) as workspace:
        may_read = partial(_may_read, workspace, policy)
        found = attachable(workspace, patterns, Path.cwd(), may_read)
    for reason in found.left_out[:_LEFT_OUT_NAMED]:
        show(Remark(f"not attached: {reason}"))
    if len(found.left_out) > _LEFT_OUT_NAMED:
        show(Remark(f"not attached: {len(found.left_out) - _LEFT_OUT_NAMED} more"))
    return found.paths


_LEFT_OUT_NAMED = 10

_NO_GIT = (
    "git is not installed here: nothing can be undone, and protected files that commands change are not"
    " asked about"
)

_BARE = (
    "the workspace is a bare git repository: answers can change its hooks and its configuration, which"
    " git runs; work in a clone of it instead"
)


def _may_read(workspace: Workspace, policy: Policy, path: str) -> bool:
    """Return whether the policy allows a file's text to go to the chat."""
    verdict = policies.judge_read(policy, workspace.resolved(path))
    return not isinstance(verdict, policies.Deny)


def check_workspace(home: Home, session: Session) -> None:
    """Refuse a workspace that the session's home has no authority over.

    Raises:
        UsageError: if it has none.
    """
    root = Path(session.workspace)
    check_apart(home.root, root)
    if home.was_found and home.root.parent.resolve() not in (root, *root.parents):
        # Anyone who can write to a folder can plant a home there, with a session in it.
        raise UsageError(
            f"session {session.session_id} works in '{root}', not where its home was found: if it is yours,"
            f" name the home with --home '{home.root}'"
        )


def new_run_id() -> str:
    """Return an unused run id."""
    return f"run_{secrets.token_hex(6)}"


def kept_policy(settings: Settings) -> str:
    """Return the policy as a record names it: a preset, or a file's absolute path."""
    policy = settings.policy
    return policy if policy in PRESETS else str(Path(policy).absolute())


@cache
def _user_rules(root: Path) -> str:
    """Return the person's global git ignore rules; git is called once, when a listing is made."""
    run = partial(run_tool, timeout_s=GIT_S)
    return user_excludes(find_program("git", root), run, os.environ)


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
        memory.in_words(memory.limit_bytes(settings.command_memory)),
        settings.check,
        policies.advice(policy),
    )


def watch_inbox(home: Home) -> "Watch":
    """Return a context that watches inbox and errands. Imported late: the request is out by then."""
    from codingagent.storage.watch import Watch

    home.desk.open()
    return Watch(home.mailbox.inbox, (home.desk.folder,))


def reply_runner() -> Runner:
    """Return the runner of the person's own command for answers: unconfined, with its whole environment."""
    return Runner(Unconfined(), dict(os.environ))
