"""The command commit."""

import contextlib
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from codingagent.checkpoints.history import steps
from codingagent.cli import output, shared_session, stdio, task_input
from codingagent.cli.commands.common import at_rest, home_of, latest_of, opened
from codingagent.cli.commands.options import Json, SessionName, option
from codingagent.cli.plain_output import Screen, write_json_line
from codingagent.errors import UsageError, WorkError
from codingagent.model import journal_entries, paths, plain_text
from codingagent.model.session_state import Phase, Session
from codingagent.storage.clock import now
from codingagent.storage.homes import Home, told_as

if TYPE_CHECKING:
    from codingagent.agent.commit import CommitPlan, Committed, PersonsRepository

    _Prepared = tuple[PersonsRepository, CommitPlan, str, int, str]

app = typer.Typer()


@app.command(epilog="Example: codingagent commit --branch verbose-option", name="commit")
def _commit(  # noqa: PLR0913, PLR0917  # one for each command-line option
    context: typer.Context,
    session: SessionName = None,
    branch: Annotated[str | None, option("branch")] = None,
    message: Annotated[list[str] | None, option("message")] = None,
    edit: Annotated[bool | None, option("edited")] = None,
    whole: Annotated[bool, option("whole files")] = False,
    trust_ignored: Annotated[bool, option("ignored")] = False,
    json: Json = False,
) -> None:
    """Commit what a session changed since its last commit, with your git, and push nothing.

    What you changed yourself, staged or not, stays as it is.
    """
    home = home_of(context)
    state = latest_of(home) if session is None else home.sessions.load(session)
    own_words = "\n\n".join(message or ())
    is_asked = stdio.is_terminal(sys.stdin) and stdio.is_terminal(sys.stdout) and not own_words
    with output.screen_for(json) as screen:
        how = {"whole": whole, "trusts_ignored": trust_ignored}
        prepared = _prepared(home, state, screen, branch, **how)
        repository, plan, words, *_ = prepared
        if message == ["-"]:  # not before: what is typed, and then refused, would be lost
            own_words = task_input.read_words(message, None, edit=False, may_be_empty=False)
        if (edits := is_asked if edit is None else edit) and is_asked:
            screen.remark("your editor opens with the message: save and close it to commit")
        make = partial(repository.commit, plan, own_words or words, edit=edits, branch=branch)
        # The editor may stay open for long: nothing is locked meanwhile.
        try:
            made = own.wait(make) if (own := shared_session.AT_WORK.get()) else make()
        except WorkError as fault:
            hooked, _ = _record(home, state, screen, prepared, None)
            raise WorkError("; ".join(filter(None, (str(fault), hooked)))) from fault
        hooked, not_in_it = _record(home, state, screen, prepared, made)
        yours = [path for path in repository.differing(made.files) if path not in not_in_it]
        _tell(screen, made, plan.left, yours, hooked)
        if json:
            more = {"left": plan.left, "uncommitted": yours, "hooked": hooked}
            write_json_line(sys.stdout, made._asdict() | more)


def _record(
    home: Home, state: Session, screen: Screen, prepared: "_Prepared", made: "Committed | None"
) -> tuple[str, set[str]]:
    """Record a commit and what hooks changed: in words, and the files that the commit has otherwise."""
    repository, plan, _, count, before = prepared
    told: list[str] = []
    left = set[str]()
    with at_rest(home, state.session_id, screen) as shared:
        log, records = shared.work.context.log, [*home.records(state.session_id)]
        # What came while the editor was open is of a turn, or the person's.
        own = repository.hooked(plan) if len(records) == count else {}
        with contextlib.suppress(WorkError):  # the commit is recorded in any case
            checkpoints = shared.work.context.lazy_store.needed()
            after = checkpoints.take().id
            changed = [each.path for each in checkpoints.changes(before, after) if each.path in own]
            counts = checkpoints.counts(before, after) if changed else {}
            told = [f"{paths.shown(p)} (+{counts[p][0]} -{counts[p][1]})" for p in changed if p in counts]
            told += [paths.shown(path) for path in changed if path not in counts]
            left = {own[path] for path in changed}
        if told:
            there = (s.sequence for s in steps(records)[::-1] if s.sequence and not s.undo)
            log.record(journal_entries.HookChanged(next(there, 0), before, after, tuple(changed), now()))
        if made is not None:
            left -= repository.altered(plan)
            log.record(journal_entries.CommitMade(*made, count + (bool(told) and not left), now()))
        log.sync()
    how = "`codingagent diff` shows it, `codingagent commit` commits it so"
    said = f"a hook changed {', '.join(told)}: {how if left else 'the commit has it so'}"
    return said if told else "", left


def _tell(screen: Screen, made: "Committed", left: Sequence[str], yours: Sequence[str], hooked: str) -> None:
    count = len(made.files)
    what = f"{count} {plain_text.plural(count, 'file')}"
    screen.remark(f"committed {what} on {made.branch}: {made.commit[:10]}")
    for line in left:
        screen.remark(f"not in it: {line}")
    if yours:
        screen.remark(f"your own changes stay uncommitted in: {', '.join(map(paths.shown, yours))}")
    if hooked:
        screen.remark(hooked)


def _prepared(
    home: Home, state: Session, screen: Screen, branch: str | None, *, whole: bool, trusts_ignored: bool
) -> "_Prepared":
    """Return what is to be committed, its message, how many records tell of it, and the checkpoint before.

    UsageError says why it can't be.
    """
    from codingagent.agent.commit import PersonsRepository
    from codingagent.agent.uncommitted import work_since_commit

    session_id = state.session_id
    with shared_session.locked(home, screen.remark):
        state = home.sessions.load(session_id)
        if state.phase in (Phase.EXECUTING, Phase.AWAITING_APPROVAL) or state.undoing is not None:
            raise UsageError(
                f"session {told_as(state)} is in the middle of a turn: `codingagent resume {session_id}`"
                " finishes it, then commit"
            )
        with opened(home, state, screen, executes=False) as shared:
            context = shared.work.context
            repository = PersonsRepository(Path(state.workspace), trusts_ignored=trusts_ignored)
            repository.check(branch)
            checkpoints = context.lazy_store.needed()
            hide, records = context.secrecy.hide, home.records(session_id)
            work = work_since_commit(records, repository.holds, hide)
            if not work.steps:
                raise UsageError(f"session {told_as(state)} has changed nothing since its last commit")
            addable, tell = context.workspace.addable, screen.remark
            plan = repository.plan(checkpoints, work, addable, whole=whole, tell=tell)
            before = checkpoints.take().id
            return repository, plan, work.message, work.records, before
