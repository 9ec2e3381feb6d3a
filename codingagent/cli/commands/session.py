"""Commands that work on a session: resume, approve, deny, undo, commit."""

import contextlib
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from codingagent.checkpoints.history import steps
from codingagent.cli import stdio, task_input
from codingagent.cli.commands import common, options
from codingagent.cli.commands.common import home_of, latest_of, opened, settings_of
from codingagent.cli.commands.options import REPLY, RULES, TRIALS, SessionOptions, with_options
from codingagent.cli.output import fail, screen_for
from codingagent.cli.plain_output import Screen, write_json_line
from codingagent.cli.shared_session import AT_WORK, announce, locked
from codingagent.errors import UsageError, WorkError
from codingagent.model.approval import Answer, nothing_awaits
from codingagent.model.journal_entries import CommitMade, HookChanged, UndoBegan, is_run_id, is_session_id
from codingagent.model.paths import shown
from codingagent.model.plain_text import plural
from codingagent.model.session_state import Phase, Session
from codingagent.storage import homes, lock, mailbox
from codingagent.storage.clock import now
from codingagent.storage.homes import Home, told_as
from codingagent.workspace.real_paths import typed_in, with_slashes

if TYPE_CHECKING:
    from codingagent.agent.commit import CommitPlan, Committed, PersonsRepository
    from codingagent.agent.conversation import Conversation
    from codingagent.checkpoints.undo import UndoChoice

    _PreparedCommit = tuple[PersonsRepository, CommitPlan, str, int, str]

app = typer.Typer()


@app.command(epilog="Example: codingagent resume", name="resume")
@with_options(f"once accept dry_run skip unless_done check {TRIALS} {REPLY} {RULES} accept_formats yes diff")
def _resume(
    context: typer.Context,
    given: SessionOptions,
    session: options.OpenSessionName = None,
    json: options.Json = False,
) -> int:
    """Continue a session: apply the answer in the inbox, or wait for one. With a run id: finish that run.

    With a file in its place, take that as the answer: a text, a zip of changed files, a patch, a file.
    """
    given.check_reply()
    home, forces = home_of(context), given.accept is not None
    if session and not (is_session_id(session) or is_run_id(session)) and Path(session).is_file():
        given, session = replace(given, accept=Path(session)), None
    if given.dry_run is not None:
        return _rehearse(home, session, given.dry_run, json=json)
    if session is not None and is_run_id(session):
        from codingagent.cli import runs

        if given.accept is not None:
            raise UsageError(f"--accept is for sessions; {session} is a run, which takes no answers")
        state = home.load(session)
        settings = settings_of(home, state, given.settings)
        return runs.finish(home, state, settings, approves_all=given.yes)
    with screen_for(json) as screen, home.lock.held(screen.remark):
        meant = [session] if session else _meant(home, given)
        _numbers(given)
        for each in meant:
            _go_on(home, home.sessions.load(each), screen, given, forces=forces, is_named=bool(session))
    return 0


def _numbers(given: SessionOptions) -> tuple[int, ...]:
    """Return the indexes of the operations that are left out; they are typed counted from 1."""
    words = [] if given.skip is None else given.skip.replace(",", " ").split()
    if words and given.accept is None:
        raise UsageError("--skip needs --accept, with the answer that --dry-run showed")
    if not all(word.isdecimal() and int(word) for word in words):
        raise UsageError(f"--skip is {given.skip}; it must be numbers, as --dry-run shows them: 2,3")
    return tuple(int(word) - 1 for word in words)


def _rehearse(home: Home, name: str | None, file: Path, *, json: bool) -> int:
    """Show what an answer would do."""
    from msgspec import to_builtins

    from codingagent.editing.diff import LINES_LIMIT

    state = home.sessions.load(name) if name else latest_of(home)
    # Nobody may ever write to one.
    if (data := None if file.is_fifo() else mailbox.read_bounded(file, UsageError)) is None:
        raise UsageError(f"{file} is too large to be an answer, or a pipe; name another file")
    with (
        screen_for(json) as screen,
        home.lock.held(screen.remark),
        opened(home, state, screen, executes=False) as shared,
    ):
        for each in shared.conversation.rehearsed(data):
            if json:
                write_json_line(sys.stdout, {"kind": "rehearsed", **to_builtins(each)})
                continue
            which = ", ".join(map(str, each.depends))
            what = f"depends on command {which}; without it" if which else "would fail"
            fault = f"{what}: {each.fault}" if each.fault else ""
            told = f"{each.index + 1} {each.operation} {shown(each.subject)} {fault}".rstrip()
            asks = (f"  asks you: {reason}" for reason in each.reasons)
            *text, last = each.difference.split("\n", LINES_LIMIT) if each.difference else [""]
            more = last.count("\n") + 1
            last = f"… {more:,} more lines" if more > 1 else last
            for line in (told, *asks, *(f"  {line}" for line in (*text, last) if line)):
                screen.remark(line)
    return 0


def _go_on(
    home: Home, state: Session, screen: Screen, given: SessionOptions, *, forces: bool, is_named: bool
) -> None:
    """Continue a session as the command line says; `forces` takes an answer whatever it is to."""
    accept = given.accept
    with opened(home, state, screen, given, is_named=is_named) as shared:
        conversation = shared.conversation
        if conversation.session.is_complete:
            home.sessions.mend_document(conversation.session)
            if given.unless_done:
                return
            if given.once and accept is None and not home.mailbox.look():
                _say_nothing_taken(home, conversation, screen)
                return
            # On a terminal the person sees first what was done, and says what comes next.
            is_asked = not (given.once or accept or given.reply_with) and screen.keyboard()
            if not is_asked or conversation.session.is_closed:
                conversation.requests.reopen()
        given.tell(conversation.requests)
        shared.go_on()
        if accept is not None:
            if not accept.is_file():
                raise UsageError(f"{accept} is not a file; name one in inbox/rejected/")
            shared.conversation.check.run_ahead()
            name = home.mailbox.bring_back(accept)
            skip = _numbers(given)
            shared.doing(lambda: shared.conversation.take(name, accept=forces, skip=skip))
        if not given.once:
            from codingagent.cli.commands.waiting import follow

            follow(shared, home, screen, given)
            return
        from codingagent.cli import inbox_loop

        inbox = common.inbox_of(shared.conversation, home)
        if inbox_loop.take_present(shared, inbox, screen.remark):
            screen.remark("a file in the inbox is still being written: it was left there")
        elif not (accept or inbox.given):
            _say_nothing_taken(home, shared.conversation, screen)


def _say_nothing_taken(home: Home, conversation: "Conversation", screen: Screen) -> None:
    """Say why nothing was done, and what the session waits for."""
    session, inbox = conversation.session, common.inbox_of(conversation, home)
    for complaint in inbox.complaints(is_last_look=True):
        screen.remark(complaint)
    if left := [file.name for file in home.mailbox.look() if file.earlier in session.earlier]:
        screen.remark(
            f"ignored, because it was in the inbox before: {', '.join(map(shown, left))}; to use"
            f" one: codingagent resume {session.session_id} --accept FILE"
        )
    what = f"No answer to request {session.sequence}"
    if session.is_complete:
        what = f"Session {session.session_id} is complete; no answer"
    screen.remark(f"{what} in {home.mailbox.inbox}; nothing was done.")
    if session.is_awaiting_answer:
        conversation.requests.announce(watched=False)


def _meant(home: Home, given: SessionOptions) -> list[str]:
    """Return the ids that `resume` means without one: those that a kill interrupted, else the latest."""
    found = homes.all_sessions(home, fail)
    for each in found:
        # A kill may have left a session file older than its journal.
        home.sessions.mend_document(each)
    waiting = [each for each in found if each.is_awaiting_answer]
    if given.accept is not None and len(waiting) > 1:
        from codingagent.agent.answers import unclear

        raise unclear(given.accept.name, waiting)
    taken = home.mailbox.find_taken
    interrupted = [
        each.session_id
        for each in found
        if each.phase is Phase.EXECUTING or (each in waiting and taken(each.session_id, each.sequence))
    ]
    # One that waits has the terminal; `resume` again continues the next.
    return interrupted[: None if given.once else 1] or [homes.latest_session(found).session_id]


@app.command(epilog="Example: codingagent approve a1b2c3d4 op-3", name="approve")
@with_options(f"{RULES} yes diff")
def _approve(  # one for each command-line option
    context: typer.Context,
    given: SessionOptions,
    session: options.AwaitingName = None,
    operation_id: Annotated[str | None, options.option("answered")] = None,
    always: Annotated[bool, options.option("always")] = False,
    json: options.Json = False,
) -> int:
    """Approve the operation that waits for approval, and continue."""
    answer = Answer("always" if always else "yes", how="command")
    return _answer(context, session, operation_id, answer, given, json=json)


@app.command(epilog='Example: codingagent deny a1b2c3d4 --reason "keep build/"', name="deny")
@with_options(f"{RULES} yes diff")
def _deny(  # one for each command-line option
    context: typer.Context,
    given: SessionOptions,
    session: options.AwaitingName = None,
    operation_id: Annotated[str | None, options.option("refused")] = None,
    reason: Annotated[str, options.option("reason")] = "",
    json: options.Json = False,
) -> int:
    """Deny the operation that waits for approval, and continue without it."""
    answer = Answer("no", reason=reason, how="command")
    return _answer(context, session, operation_id, answer, given, json=json)


@app.command(epilog="Example: codingagent undo src/cart.py", name="undo")
def _undo(  # one for each command-line option
    context: typer.Context,
    words: options.UndoneFiles = None,
    turns: Annotated[int, options.option("turns", min=1)] = 1,
    redo: Annotated[bool, options.option("redo")] = False,
    force: Annotated[bool, options.option("force")] = False,
    json: options.Json = False,
) -> None:
    """Undo the last turns: restore the files that they changed. The next request tells the model."""
    from codingagent.checkpoints.undo import UndoChoice

    home = home_of(context)
    names = list(words or ())
    session = names.pop(0) if names and (is_session_id(names[0]) or is_run_id(names[0])) else None
    if redo and names:
        raise UsageError("--redo redoes the whole undo; leave out the files")
    with screen_for(json) as screen:
        state = latest_of(home, or_run=True) if session is None else home.load(session)
        root, here = Path(state.workspace), Path.cwd()
        # What is not in the workspace is meant from there, too.
        files = tuple(typed_in(root, each, here) or os.path.normpath(with_slashes(each)) for each in names)
        what = UndoChoice(None if redo else turns, files, force)
        with locked(home, screen.remark):
            if state.is_run:
                from codingagent.cli import runs

                runs.undo(home, state, what, screen)
            else:
                _undo_here(home, state, what, screen)


def _undo_here(home: Home, before: Session, what: "UndoChoice", screen: Screen) -> None:
    """Undo turns, unless another process did meanwhile."""
    from codingagent.checkpoints.undo import take_back

    state, left = home.load(before.session_id), ""
    if state.sequence != before.sequence:
        raise UsageError(
            f"session {state.session_id} has gone on from request {before.sequence} to {state.sequence}"
            " since you typed this: nothing was done; see `codingagent show`"
        )
    with opened(home, state, screen, executes=False) as shared:
        conversation = shared.conversation
        conversation.check.end()
        if conversation.session.undoing is not None:
            raise UsageError("an undo was interrupted, and only git can finish it: install git")
        if state.undos != before.undos:
            screen.remark("another terminal did an undo meanwhile; nothing else was undone")
        elif state.undoing is not None:
            screen.remark("finished an interrupted undo; nothing else was undone")
        else:
            checkpointer = conversation.context.checkpointer
            left = take_back(home, checkpointer, what)
            records = [*home.records(state.session_id)]
            made = [each for each in records if isinstance(each, CommitMade)][-1:]
            (began,) = [each for each in records if isinstance(each, UndoBegan)][-1:]
            if made and min(began.steps) < len(steps(records[: made[0].records])):
                stays = f"commit {made[0].commit[:10]} stays as it is: an undo restores files"
                screen.remark(f"{stays}; `codingagent commit` commits what it restored")
        conversation.recover()
        if not conversation.session.is_complete:
            announce(conversation)
    if left:
        raise WorkError(left)


def _answer(
    context: typer.Context,
    session: str | None,
    operation_id: str | None,
    answer: Answer,
    given: SessionOptions,
    *,
    json: bool,
) -> int:
    """Answer the pending question, and continue to the next request, or with the run."""
    home = home_of(context)
    if session and operation_id is None and not (is_session_id(session) or is_run_id(session)):
        session, operation_id = None, session
    if session is None:
        session = homes.awaiting_approval(home, fail).session_id
    if is_run_id(session):
        from codingagent.cli import runs

        state = home.load(session)
        named = runs.read_message("-") if operation_id == "-" else operation_id
        settings = settings_of(home, state, given.settings)
        return runs.answer(home, state, settings, named, answer, approves_all=given.yes)
    with screen_for(json) as screen:
        _answer_session(home, session, operation_id, answer, given, screen)
    return 0


def _answer_session(
    home: Home, session: str, operation_id: str | None, answer: Answer, given: SessionOptions, screen: Screen
) -> None:
    """Answer the question that a session showed, and continue with it."""
    state = home.sessions.load(session)
    if (before := state.asked) is None or not state.is_awaiting_approval:
        raise UsageError(nothing_awaits(session))
    with locked(home, screen.remark):
        state = home.sessions.load(session)
        asked = state.asked if state.is_awaiting_approval else None
        if asked is not None and asked != before:
            # Another process has meanwhile gone on to something that nobody has seen here.
            raise UsageError(
                f"meanwhile another operation, {asked.name} of {session}, waits for approval;"
                f" `codingagent show {session}` shows it"
            )
        with opened(home, state, screen, given) as shared:
            shared.conversation.answer(operation_id, answer)
            shared.go_on()
            if screen.keyboard() is not None and not lock.is_held(home.waiting_path(session)):
                from codingagent.cli.commands.waiting import follow

                follow(shared, home, screen, given)
            elif not shared.conversation.session.is_complete:
                announce(shared.conversation)


@app.command(epilog="Example: codingagent commit --branch verbose-option", name="commit")
def _commit(  # noqa: PLR0913, PLR0917  # one for each command-line option
    context: typer.Context,
    session: options.SessionName = None,
    branch: Annotated[str | None, options.option("branch")] = None,
    message: Annotated[list[str] | None, options.option("message")] = None,
    edit: Annotated[bool | None, options.option("edited")] = None,
    whole: Annotated[bool, options.option("whole files")] = False,
    trust_ignored: Annotated[bool, options.option("ignored")] = False,
    json: options.Json = False,
) -> None:
    """Commit what a session changed since its last commit, with your git, and push nothing.

    What you changed yourself, staged or not, stays as it is.
    """
    home = home_of(context)
    state = latest_of(home) if session is None else home.sessions.load(session)
    own_words = "\n\n".join(message or ())
    is_asked = stdio.is_terminal(sys.stdin) and stdio.is_terminal(sys.stdout) and not own_words
    with screen_for(json) as screen:
        how = {"whole": whole, "trusts_ignored": trust_ignored}
        prepared = _prepared_commit(home, state, screen, branch, **how)
        repository, plan, words, *_ = prepared
        if message == ["-"]:  # not before: what is typed, and then refused, would be lost
            own_words = task_input.read_words(message, None, edit=False, may_be_empty=False)
        if (edits := is_asked if edit is None else edit) and is_asked:
            screen.remark("your editor opens with the message: save and close it to commit")
        make = partial(repository.commit, plan, own_words or words, edit=edits, branch=branch)
        # The editor may stay open for long: nothing is locked meanwhile.
        try:
            made = own.wait(make) if (own := AT_WORK.get()) else make()
        except WorkError as fault:
            hooked, _ = _record_commit(home, state, screen, prepared, None)
            raise WorkError("; ".join(filter(None, (str(fault), hooked)))) from fault
        hooked, not_in_it = _record_commit(home, state, screen, prepared, made)
        yours = [path for path in repository.differing(made.files) if path not in not_in_it]
        _tell_made(screen, made, plan.left, yours, hooked)
        if json:
            more = {"left": plan.left, "uncommitted": yours, "hooked": hooked}
            write_json_line(sys.stdout, made._asdict() | more)


def _record_commit(
    home: Home, state: Session, screen: Screen, prepared: "_PreparedCommit", made: "Committed | None"
) -> tuple[str, set[str]]:
    """Record a commit and what hooks changed: in words, and the files that the commit has otherwise."""
    repository, plan, _, count, before = prepared
    told: list[str] = []
    left = set[str]()
    with common.at_rest(home, state.session_id, screen) as shared:
        log, records = shared.work.context.log, [*home.records(state.session_id)]
        # What came while the editor was open is of a turn, or the person's.
        own = repository.hooked(plan) if len(records) == count else {}
        with contextlib.suppress(WorkError):  # the commit is recorded in any case
            checkpoints = shared.work.context.lazy_store.needed()
            after = checkpoints.take().id
            changed = [each.path for each in checkpoints.changes(before, after) if each.path in own]
            told, left = [shown(path) for path in changed], {own[path] for path in changed}
        if told:
            there = (s.sequence for s in steps(records)[::-1] if s.sequence and not s.undo)
            log.record(HookChanged(next(there, 0), before, after, tuple(changed), now()))
        if made is not None:
            left -= repository.altered(plan)
            log.record(CommitMade(*made, count + (bool(told) and not left), now()))
        log.sync()
    how = "`codingagent diff` shows it, `codingagent commit` commits it so"
    said = f"a hook changed {', '.join(told)}: {how if left else 'the commit has it so'}"
    return said if told else "", left


def _tell_made(
    screen: Screen, made: "Committed", left: Sequence[str], yours: Sequence[str], hooked: str
) -> None:
    what = f"{len(made.files)} {plural(len(made.files), 'file')}"
    others = f"your own changes stay uncommitted in: {', '.join(map(shown, yours))}" * bool(yours)
    told = f"committed {what} on {made.branch}: {made.commit[:10]}"
    for line in filter(None, (told, *(f"not in it: {each}" for each in left), others, hooked)):
        screen.remark(line)


def _prepared_commit(
    home: Home, state: Session, screen: Screen, branch: str | None, *, whole: bool, trusts_ignored: bool
) -> "_PreparedCommit":
    """Return what is to be committed, its message, how many records tell of it, and the checkpoint before.

    UsageError says why it can't be.
    """
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
