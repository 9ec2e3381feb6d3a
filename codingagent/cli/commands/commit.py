"""The command commit."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from codingagent.cli.commands.common import at_rest, home_of, latest_of, opened
from codingagent.cli.commands.options import Json, SessionName, told
from codingagent.cli.output import screen_for
from codingagent.cli.plain_output import Screen, write_json_line
from codingagent.cli.shared_session import AT_WORK, locked
from codingagent.cli.stdio import is_terminal
from codingagent.cli.task_input import read_words
from codingagent.errors import UsageError
from codingagent.model.journal_entries import CommitMade
from codingagent.model.paths import shown
from codingagent.model.plain_text import on_screen, plural
from codingagent.model.session_state import Phase, Session
from codingagent.storage.clock import now
from codingagent.storage.homes import Home, told_as

if TYPE_CHECKING:
    from codingagent.agent.commit import CommitPlan, Committed, PersonsRepository

app = typer.Typer()


@app.command(epilog="Example: codingagent commit --branch verbose-option", name="commit")
def _commit(  # noqa: PLR0913, PLR0917  # one for each command-line option
    context: typer.Context,
    session: SessionName = None,
    branch: Annotated[str | None, told("branch")] = None,
    message: Annotated[str | None, told("message")] = None,
    edit: Annotated[bool | None, told("edited")] = None,
    whole: Annotated[bool, told("whole files")] = False,
    json: Json = False,
) -> None:
    """Commit what a session changed since its last commit, with your git, and push nothing.

    What you changed yourself, staged or not, stays as it is.
    """
    home = home_of(context)
    state = latest_of(home) if session is None else home.sessions.load(session)
    message = (
        read_words([message], None, edit=False, may_be_empty=False) if message == "-" else message
    )
    is_asked = is_terminal(sys.stdin) and is_terminal(sys.stdout) and message is None
    with screen_for(json) as screen:
        repository, plan, told, count = _prepared(home, state, screen, branch, whole=whole)
        edits = is_asked if edit is None else edit
        if edits and is_asked:
            screen.remark("your editor opens with the message: save and close it to commit")
        make = partial(repository.commit, plan, message or told, edit=edits, branch=branch)
        # The editor may stay open for long: nothing is locked meanwhile.
        made = own.wait(make) if (own := AT_WORK.get()) else make()
        _record(home, state, screen, CommitMade(*made, count, now()))
        yours = repository.differing(made.files)
        if json:
            found = made._asdict() | {"left": plan.left, "uncommitted": yours}
            write_json_line(sys.stdout, found)
        else:
            _tell(screen, made, plan.left, yours)


def _record(home: Home, state: Session, screen: Screen, record: CommitMade) -> None:
    with at_rest(home, state.session_id, screen) as shared:
        shared.work.context.log.record(record)
        shared.work.context.log.sync()


def _tell(screen: Screen, made: "Committed", left: Sequence[str], yours: Sequence[str]) -> None:
    count = len(made.files)
    what = f"{count} {plural(count, 'file')}"
    screen.remark(f"committed {what} on {made.branch}: {made.commit[:10]}")
    for line in left:
        screen.remark(f"not in it: {line}")
    if yours:
        screen.remark(f"your own changes stay uncommitted in: {', '.join(map(shown, yours))}")


def _prepared(
    home: Home, state: Session, screen: Screen, branch: str | None, *, whole: bool
) -> "tuple[PersonsRepository, CommitPlan, str, int]":
    """Return what is to be committed, the message, how many records tell of it; UsageError says why not."""
    from codingagent.agent.commit import PersonsRepository
    from codingagent.agent.uncommitted import work_since_commit

    session_id = state.session_id
    with locked(home, screen.remark):
        state = home.sessions.load(session_id)
        if state.phase in (Phase.EXECUTING, Phase.AWAITING_APPROVAL) or state.undoing is not None:
            raise UsageError(
                f"session {told_as(state)} is in the middle of a turn: `codingagent resume {session_id}`"
                " finishes it, then commit"
            )
        with opened(home, state, screen, executes=False) as shared:
            context = shared.work.context
            repository = PersonsRepository(Path(state.workspace))
            repository.check(branch)
            checkpoints = context.lazy_store.needed()
            work = work_since_commit(home.records(session_id), repository.holds)
            if not work.steps:
                raise UsageError(
                    f"session {told_as(state)} has changed nothing since its last commit"
                )
            plan = repository.plan(checkpoints, work, context.workspace.addable, whole=whole)
            message = context.secrecy.hide(on_screen(work.message))
            return repository, plan, message, work.records
