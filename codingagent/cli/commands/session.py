"""Commands that work on a session: new, resume, approve, deny, undo."""

import contextlib
import os
import shlex
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from codingagent.cli.commands.common import (
    ask_whose,
    at_work,
    confinement_of,
    follow,
    held_or_handed,
    home_of,
    home_was_found,
    inbox_of,
    latest_of,
    reply_command,
    say_if_not_obeyed,
    settings_of,
)
from codingagent.cli.commands.options import (
    AcceptFormats,
    Attach,
    AwaitingName,
    Changes,
    CheckCommand,
    Clipboard,
    Json,
    MaxTurns,
    Network,
    OpenSessionName,
    PolicyName,
    ReplyTimeout,
    ReplyWith,
    SandboxUse,
    SessionName,
    WorkspaceFolder,
    Yes,
)
from codingagent.cli.output import fail, person_at, remark, screen_for
from codingagent.cli.task_input import read_task
from codingagent.errors import UsageError

if TYPE_CHECKING:
    from codingagent.agent.conversation import Conversation
    from codingagent.agent.recipients import Recipients
    from codingagent.cli.inbox_loop import Inbox
    from codingagent.cli.output import Screen
    from codingagent.model.approval import Answer
    from codingagent.model.session_state import Session
    from codingagent.storage.homes import Home

app = typer.Typer()


class _Protocol(StrEnum):
    """What a session's requests may ask to be answered in."""

    TAGS = "tags"
    JSON = "json"


@app.command(
    epilog='Example: codingagent new --here "Add a --verbose option to cli.py"', name="new"
)
def _new(  # noqa: PLR0913, PLR0917  # one for each word of the command line
    context: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="TASK...", help="The task; - reads it from stdin.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Read the task from a file.")
    ] = None,
    edit: Annotated[bool, typer.Option("--edit", help="Write the task in an editor.")] = False,
    workspace: WorkspaceFolder = None,
    here: Annotated[
        bool,
        typer.Option("--here", help="Work in this folder; the home is .codingagent."),
    ] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Exit when the first request is written.")
    ] = False,
    attach: Attach = None,
    check: CheckCommand = None,
    clipboard: Clipboard = False,
    reply_with: ReplyWith = None,
    reply_timeout: ReplyTimeout = None,
    max_turns: MaxTurns = None,
    protocol: Annotated[
        _Protocol,
        typer.Option(
            show_default=False, help="The format of answers: tag blocks or JSON. [default: tags]"
        ),
    ] = _Protocol.TAGS,
    policy: PolicyName = None,
    sandbox: SandboxUse = None,
    network: Network = None,
    accept_formats: AcceptFormats = False,
    yes: Yes = False,
    diff: Changes = None,
    json: Json = False,
) -> None:
    """Start a task: write the first request, then wait for the answer."""
    from codingagent.agent import factory
    from codingagent.cli.handoff import Attendant
    from codingagent.process import select_sandbox
    from codingagent.storage import homes

    named: Path | None = context.obj
    was_found = home_was_found(context)
    if here:
        if workspace is not None or named is not None:
            raise UsageError("--here says both --workspace and --home; leave those out")
        workspace, named = Path.cwd(), Path.cwd() / homes.HERE_HOME
    others = {"--no-wait": no_wait, "--clipboard": clipboard}
    reply = reply_command(reply_with, reply_timeout, max_turns, others=others)
    task = read_task(words or [], file, edit)
    root = homes.find_home(named, Path.cwd(), os.environ)
    options = {
        "workspace": None if workspace is None else str(workspace),
        "check": check,
        **confinement_of(policy, sandbox, network),
        "diff": diff,
    }
    homes.check_home(root, was_found=was_found)
    # Before anything is made: a mistyped --workspace must not leave a home behind.
    resolved, folder = homes.settings_for(root, options, os.environ)
    settings = resolved.settings
    rules = select_sandbox.policy_of(settings, folder)
    select_sandbox.refuse_impossible_check(settings, rules, folder)
    with screen_for(json) as screen, contextlib.ExitStack() as stack:
        files = factory.attached(root, folder, attach or (), rules, screen.show)
        home = homes.Home.at(root, create=True, was_found=was_found)
        stack.enter_context(home.locked())
        if was_found and not home.is_remembered:
            remark(
                screen,
                f"this home can't be remembered, since XDG_STATE_HOME (else ~/.local/state) can't be written:"
                f" name it each time, with --home {shlex.quote(str(home.root))} or as CODINGAGENT_HOME",
            )
        attendant = Attendant(home, screen.show)
        session = factory.start_session(home, folder, task, settings, protocol.value)
        person = person_at(
            screen,
            settings,
            approves_all=yes,
            accepts_formats=accept_formats,
            elsewhere=attendant.answer_to,
            diff=diff,
        )
        say_if_not_obeyed(screen, root, folder)
        if not here and _is_elsewhere(folder):
            remark(screen, _ELSEWHERE)
        with at_work(home, session, settings, person) as work:
            work.requests.begin()
            if files:
                work.requests.say("", files)
            work.requests.write()
            work.try_check(screen.show)
            if no_wait:
                work.requests.announce(watched=False)
                return
            attendant.sit_with(work.conversation)
            follow(
                work.conversation, home, screen, attend=attendant, clipboard=clipboard, reply=reply
            )


_ELSEWHERE = (
    "the workspace is empty, so the model sees no files; to work in this folder:"
    " codingagent new --here"
)


def _is_elsewhere(workspace: Path) -> bool:
    """Tells whether a person seems to have meant the folder that they are in."""
    own = {"workspace", "outbox", "inbox", "sessions"}
    here = (name for name in os.listdir() if name not in own and not name.startswith("."))
    return not any(workspace.iterdir()) and any(here)


@app.command(epilog="Example: codingagent resume", name="resume")
def _resume(  # noqa: PLR0913, PLR0917  # one for each word of the command line
    context: typer.Context,
    session: OpenSessionName = None,
    once: Annotated[
        bool, typer.Option("--once", help="Take the answers that are there now, then exit.")
    ] = False,
    accept: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Execute this answer although it was set aside."),
    ] = None,
    check: CheckCommand = None,
    clipboard: Clipboard = False,
    reply_with: ReplyWith = None,
    reply_timeout: ReplyTimeout = None,
    max_turns: MaxTurns = None,
    policy: PolicyName = None,
    sandbox: SandboxUse = None,
    network: Network = None,
    accept_formats: AcceptFormats = False,
    yes: Yes = False,
    diff: Changes = None,
    json: Json = False,
) -> int:
    """Continue a task: take the answer from the inbox, or wait for it. Or finish a run."""
    from codingagent.agent.recipients import Recipients
    from codingagent.cli.handoff import Attendant
    from codingagent.model.journal_entries import is_run_id

    others = {"--once": once, "--clipboard": clipboard}
    reply = reply_command(reply_with, reply_timeout, max_turns, others=others)
    home = home_of(context)
    options = {"check": check, **confinement_of(policy, sandbox, network), "diff": diff}
    if session is not None and is_run_id(session):
        from codingagent.cli import runs

        if accept is not None:
            raise UsageError(f"--accept is for sessions; {session} is a run, and takes no replies")
        state = home.load(session)
        settings = settings_of(home, state, options)
        return runs.finish(home, state, settings, approves_all=yes)
    # What is said of one session must not hold for another, which an answer may be for.
    said_of_one = (accept, reply, yes or None, accept_formats or None, check, policy, sandbox)
    moves = session is None and all(each is None for each in (*said_of_one, network))

    def go_on(screen: "Screen", recipients: "Recipients", state: "Session") -> str:
        """Return the session to go on with, if an answer is for another one; else ""."""
        settings = settings_of(home, state, options)
        say_if_not_obeyed(screen, home.root, Path(state.workspace))
        attendant = Attendant(home, screen.show)
        person = person_at(
            screen,
            settings,
            approves_all=yes,
            accepts_formats=accept_formats,
            elsewhere=attendant.answer_to,
            diff=diff,
        )
        person = replace(person, recipients=recipients, follows_answers=moves)
        with at_work(home, state, settings, person) as work:
            conversation = work.conversation
            attendant.sit_with(conversation)
            if conversation.session.is_complete:
                home.sessions.mend_document(conversation.session)
                if once and accept is None and not home.mailbox.look():
                    _say_nothing_taken(screen, home, conversation, inbox_of(conversation, home))
                    return ""
                conversation.requests.reopen()
            if check is not None:
                conversation.requests.name_check(check)
                work.try_check(screen.show)
            conversation.recover()
            if accept is not None:
                conversation.take(_brought(home, accept), accept=True)
            if once:
                from codingagent.cli import inbox_loop

                inbox = inbox_of(conversation, home)
                other, still_grows = inbox_loop.take_present(conversation, inbox)
                if still_grows:
                    remark(screen, "a file in the inbox is still being written: it was left there")
                elif not (other or accept or inbox.given):
                    _say_nothing_taken(screen, home, conversation, inbox)
                return other
            return follow(
                conversation, home, screen, attend=attendant, clipboard=clipboard, reply=reply
            )

    with screen_for(json) as screen, home.locked():
        recipients = Recipients(home, None if session else ask_whose(screen))
        chosen = home.sessions.load(session) if session is not None else None
        first = chosen or _latest(home, screen, accept)
        _go_on_with_each(home, first, partial(go_on, screen, recipients))
    return 0


def _say_nothing_taken(
    screen: "Screen", home: "Home", conversation: "Conversation", inbox: "Inbox"
) -> None:
    """Say why nothing was done, and what the session waits for."""
    from codingagent.model.paths import shown

    session = conversation.session
    for complaint in inbox.complaints(is_last_look=True):
        remark(screen, complaint)
    if left := inbox.names_left_alone():
        remark(
            screen,
            f"left alone, because it lay in the inbox before: {', '.join(map(shown, left))}; to use one:"
            f" codingagent resume {session.session_id} --accept FILE",
        )
    state = "is complete" if session.is_complete else f"waits for the answer to {session.sequence}"
    remark(
        screen,
        f"no answer in {home.mailbox.inbox}: nothing was done; session {session.session_id} {state}",
    )
    if session.is_awaiting_reply:
        conversation.requests.announce(watched=False)


def _latest(home: "Home", screen: "Screen", accept: Path | None) -> "Session":
    """Return the session that `resume` means if none is named."""
    from codingagent.storage import homes

    found = homes.all_sessions(home, fail)
    for each in found:
        # A kill may have left a session file behind its journal.
        home.sessions.mend_document(each)
    waiting = [each for each in found if each.is_awaiting_reply]
    if accept is not None and len(waiting) > 1:
        return home.sessions.load(ask_whose(screen)(accept.name, waiting))
    return homes.latest_session(found)


def _go_on_with_each(home: "Home", first: "Session", go_on: "Callable[[Session], str]") -> None:
    """Go on with a session, with each that an answer is for, and then with those that were left for it."""
    state, left = first, list[str]()
    while other := go_on(state):
        left = [each for each in left if each not in (other, state.session_id)]
        left.append(state.session_id)
        state = home.sessions.load(other)
    for session_id in reversed(left):
        # Complete by now: an answer to it came while another was gone on with.
        if not (earlier := home.sessions.load(session_id)).is_complete:
            _go_on_with_each(home, earlier, go_on)


@app.command(epilog="Example: codingagent approve a1b2c3d4 op-3", name="approve")
def _approve(  # noqa: PLR0913, PLR0917  # one for each word of the command line
    context: typer.Context,
    session: AwaitingName = None,
    operation_id: Annotated[
        str | None,
        typer.Argument(
            metavar="[OPERATION_ID]",
            help="The operation; of a run, - reads the answer as JSON from stdin."
            " [default: the one that awaits approval]",
        ),
    ] = None,
    always: Annotated[
        bool, typer.Option("--always", help="Ask for exactly this no more in this session.")
    ] = False,
    policy: PolicyName = None,
    sandbox: SandboxUse = None,
    network: Network = None,
    yes: Yes = False,
    diff: Changes = None,
    json: Json = False,
) -> int:
    """Approve the operation that awaits approval, and continue."""
    from codingagent.model.approval import Answer

    answer = Answer("always" if always else "yes", how="command")
    options = {**confinement_of(policy, sandbox, network), "diff": diff}
    return _answer(context, session, operation_id, answer, options=options, yes=yes, json=json)


@app.command(
    epilog="Example: codingagent deny a1b2c3d4 --reason 'keep build/'",
    name="deny",
)
def _deny(  # noqa: PLR0913, PLR0917  # one for each word of the command line
    context: typer.Context,
    session: AwaitingName = None,
    operation_id: Annotated[
        str | None,
        typer.Argument(
            metavar="[OPERATION_ID]",
            help="The operation. [default: the one that awaits approval]",
        ),
    ] = None,
    reason: Annotated[str, typer.Option(help="Why not; the model is told.")] = "",
    policy: PolicyName = None,
    sandbox: SandboxUse = None,
    network: Network = None,
    yes: Yes = False,
    diff: Changes = None,
    json: Json = False,
) -> int:
    """Refuse the operation that awaits approval, and continue without it."""
    from codingagent.model.approval import Answer

    answer = Answer("no", reason=reason, how="command")
    options = {**confinement_of(policy, sandbox, network), "diff": diff}
    return _answer(context, session, operation_id, answer, options=options, yes=yes, json=json)


@app.command(epilog="Example: codingagent undo --turns 2", name="undo")
def _undo(
    context: typer.Context,
    session: SessionName = None,
    turns: Annotated[
        int, typer.Option(min=1, help="How many of the last turns that changed something.")
    ] = 1,
    redo: Annotated[bool, typer.Option("--redo", help="Take the last undo back.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Take back also what was changed again since.")
    ] = False,
    json: Json = False,
) -> None:
    """Undo turns: restore the files that they changed. The model is told."""
    from codingagent.checkpoints import history

    home = home_of(context)
    with screen_for(json) as screen, home.locked():
        state = latest_of(home, or_run=True) if session is None else home.load(session)
        settings = settings_of(home, state, {}, executes=False)
        if state.is_run:
            from codingagent.cli import runs

            runs.undo(home, state, None if redo else turns, screen.show, force=force)
            return
        person = person_at(screen, settings, approves_all=False)
        with at_work(home, state, settings, person) as work:
            conversation = work.conversation
            if conversation.session.undoing is not None:
                raise UsageError("an undo was interrupted, and only git can finish it: install git")
            if state.undoing is None:
                back = None if redo else turns
                history.take_back(home, conversation.ledger, back, screen.show, force=force)
                conversation.recover()
            else:
                remark(
                    screen, "an undo that was interrupted is finished; nothing more was taken back"
                )
                conversation.recover()
            if not conversation.session.is_complete:
                remark(screen, "the request was written anew: send the chat this one")
                conversation.requests.announce(watched=False)


def _answer(  # noqa: PLR0913
    context: typer.Context,
    session: str | None,
    operation_id: str | None,
    answer: "Answer",
    *,
    options: dict[str, object],
    yes: bool,
    json: bool,
) -> int:
    """Answers what awaits approval, and goes on to the next request, or with the run."""
    from codingagent.model.approval import nothing_awaits
    from codingagent.model.journal_entries import is_run_id, is_session_id
    from codingagent.storage import homes
    from codingagent.storage.queued_request import Errand, seen

    home = home_of(context)
    if session and operation_id is None and not (is_session_id(session) or is_run_id(session)):
        session, operation_id = None, session
    if session is None:
        session = homes.awaiting_approval(home, fail).session_id
    if is_run_id(session):
        from codingagent.cli import runs

        state = home.load(session)
        given = runs.read_message("-") if operation_id == "-" else operation_id
        settings = settings_of(home, state, options)
        return runs.answer(home, state, settings, given, answer, approves_all=yes)
    state = home.sessions.load(session)
    if state.asked is None or not state.is_awaiting_approval:
        raise UsageError(nothing_awaits(session))
    shown = seen(state.asked.question.shown)
    errand = Errand("answer", session, "", (), operation_id or "", answer, shown)
    with screen_for(json) as screen, held_or_handed(home, errand, screen) as (is_handed, _):
        if is_handed:
            own = [f"--{name}" for name, value in (*options.items(), ("yes", yes or None)) if value]
            not_obeyed = f" with its own settings ({', '.join(own)} is not obeyed)" if own else ""
            remark(screen, f"answered; the other terminal goes on{not_obeyed}")
            return 0
        state = home.sessions.load(session)
        asked = state.asked if state.is_awaiting_approval else None
        if asked is not None and seen(asked.question.shown) != shown:
            # Whoever held the lock went on meanwhile, to something that nobody has seen here.
            raise UsageError(
                f"{asked.name} of {session} awaits approval by now, which is another: see what it is with"
                f" `codingagent show {session}`"
            )
        settings = settings_of(home, state, options)
        person = person_at(screen, settings, approves_all=yes, diff=options["diff"])
        with at_work(home, state, settings, person) as work:
            conversation = work.conversation
            conversation.answer(operation_id, answer)
            conversation.recover()
            if not conversation.session.is_complete:
                conversation.requests.announce(watched=False)
    return 0


def _brought(home: "Home", path: Path) -> str:
    if not path.is_file():
        raise UsageError(f"{path} is no file; name one of inbox/rejected/")
    return home.mailbox.bring_back(path)
