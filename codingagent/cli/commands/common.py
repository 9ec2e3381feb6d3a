"""Shared steps of commands: find the home and the session, resolve settings, open the session."""

import contextlib
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from msgspec.structs import replace

from codingagent.cli.commands.options import SessionOptions
from codingagent.cli.output import fail
from codingagent.cli.plain_output import Screen
from codingagent.errors import UsageError
from codingagent.model.session_state import Session
from codingagent.model.settings import FILE_NAME, HOME_VARIABLE, Settings
from codingagent.storage import homes
from codingagent.storage.homes import Home

if TYPE_CHECKING:
    from codingagent.agent.conversation import Conversation
    from codingagent.agent.factory import OpenSession
    from codingagent.cli.inbox_loop import Inbox
    from codingagent.cli.shared_session import SharedSession


def home_of(context: typer.Context) -> Home:
    root = homes.find_home(context.obj, Path.cwd(), os.environ)
    return homes.Home.at(root, create=False, was_found=home_was_found(context))


def home_was_found(context: typer.Context) -> bool:
    """Return whether the home was searched for: no option and no variable named it."""
    return context.obj is None and HOME_VARIABLE not in os.environ


def trusted_home(context: typer.Context, named: Path | None = None) -> tuple[Path, bool]:
    """Return the folder of a home that may not exist yet, and whether it was searched for."""
    root = homes.find_home(named or context.obj, Path.cwd(), os.environ)
    was_found = home_was_found(context)
    homes.check_home(root, was_found=was_found)
    return root, was_found


def here_home(context: typer.Context, workspace: Path | None, option: str = "--here") -> Path:
    """Return the home of the current folder; UsageError if another one is named, or a workspace."""
    if workspace is not None or context.obj is not None:
        raise UsageError(f"{option} already sets --workspace and --home; leave those out")
    return Path.cwd() / homes.HERE_HOME


def waiting_of(home: Home, named: str | None = None) -> Session:
    """Return the session that is named, else the latest whose request waits, else the latest."""
    if named is not None:
        return home.sessions.load(named)
    found = homes.all_sessions(home, fail)
    return next((each for each in found if each.is_awaiting_answer), None) or latest_of(home)


def latest_of(home: Home, *, or_run: bool = False) -> Session:
    """Return the latest session, complete or not; with `or_run` the latest run if there is no session."""
    found = homes.all_sessions(home, fail)
    if found:
        return found[0]
    if home.sessions.ids():
        raise UsageError("none of the sessions here can be read")
    runs = homes.all_sessions(home, fail, runs=True) if or_run else []
    if not runs:
        raise UsageError("there is no session yet; start one with `codingagent new`")
    if len(runs) > 1:
        told = f"there is no session here; this is the latest of {len(runs)} runs"
        fail(f"{told} (`codingagent list --runs` lists them)")
    return runs[0]


def settings_of(home: Home, state: Session, options: dict[str, object], *, executes: bool = True) -> Settings:
    resolved, _ = homes.settings_for(home.root, options, os.environ, Path(state.workspace))
    return homes.kept_settings(home.root, state, resolved, executes=executes)


def _reread(home: Home, options: dict[str, object], state: Session, now: Settings) -> Settings:
    """Return the settings of a session at work with what was set meanwhile, here or by another process."""
    from codingagent.process.select_sandbox import paths_to_show

    with contextlib.suppress(UsageError):  # half of a file is not obeyed, nor what can't be shown
        new = settings_of(home, state, options)
        paths_to_show(new, Path(state.workspace))
        now = replace(now, show=new.show, pass_env=new.pass_env)
    return replace(now, check=state.check)


def inbox_of(conversation: "Conversation", home: Home) -> "Inbox":
    """Return the inbox as a session sees it: files from before it began are ignored."""
    from codingagent.cli.inbox_loop import Inbox

    return Inbox(home.mailbox, set(conversation.session.earlier))


@contextlib.contextmanager
def opened(  # noqa: PLR0913
    home: Home,
    session: Session,
    screen: Screen,
    given: SessionOptions = SessionOptions(),  # noqa: B008  # immutable
    *,
    settings: Settings | None = None,
    executes: bool = True,
    is_named: bool = True,
) -> "Iterator[SharedSession]":
    """Yield a session at work in a locked home; without `executes` nothing of an answer is executed."""
    from codingagent.agent import context, factory
    from codingagent.cli.shared_session import SharedSession, at_work_on

    if own := at_work_on(session):
        yield own
        return
    settings = settings or settings_of(home, session, given.settings, executes=executes)
    file = home.root / FILE_NAME
    if executes and file.exists() and not homes.obeys_file(home.root, Path(session.workspace)):
        why = "it is in the workspace, where an answer could have written it"
        screen.remark(f"{file} is ignored: {why}; use options or CODINGAGENT_… variables")
    screen.obey(settings, home.mailbox, asked=given.diff is not None)
    terms = (given.yes, given.accept_formats, screen.how != "never")

    @contextlib.contextmanager
    def open_session(state: Session, own: Settings) -> "Iterator[OpenSession]":
        person = context.Person(screen.show, shared.ask, *terms, screen.record, screen.any_key)
        with factory.session_in(home, state, own, person, is_named=is_named) as work:
            screen.files_found = work.context.workspace.listed
            screen.files_saved = work.context.lazy_store.files_read
            screen.changes = work.changes
            yield work

    shared = SharedSession(home, screen, open_session, settings, partial(_reread, home, given.settings))
    with shared.opened(session):
        yield shared


@contextlib.contextmanager
def at_rest(home: Home, session_id: str, screen: Screen) -> "Iterator[SharedSession]":
    """Yield a session as it is now, in the home, which is locked; nothing of an answer is executed."""
    from codingagent.cli.shared_session import locked

    with (
        locked(home, screen.remark),
        opened(home, home.sessions.load(session_id), screen, executes=False) as shared,
    ):
        yield shared
