"""The commands say, refresh and revoke."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from codingagent.agent import factory
from codingagent.agent.requests import Requests
from codingagent.checkpoints.checkpointer import check_present
from codingagent.cli.commands.common import at_rest, home_of, inbox_of, latest_of, settings_of
from codingagent.cli.commands.options import Attach, Json, OpenSessionName, option
from codingagent.cli.output import fail, screen_for
from codingagent.cli.plain_output import Screen
from codingagent.cli.shared_session import announce
from codingagent.cli.task_input import read_words
from codingagent.errors import UsageError, WorkError
from codingagent.model.journal_entries import Attached, Wants, is_run_id, is_session_id
from codingagent.model.session_state import Session
from codingagent.process.select_sandbox import policy_of
from codingagent.storage import homes
from codingagent.storage.homes import Home

app = typer.Typer()


@app.command(epilog='Example: codingagent say "Python 3.9 must still work"', name="say")
def _say(  # noqa: PLR0913, PLR0917  # one for each command-line option
    context: typer.Context,
    words: Annotated[list[str] | None, option("say")] = None,
    file: Annotated[Path | None, option("say file")] = None,
    edit: Annotated[bool, option("say edit")] = False,
    attach: Attach = None,
    ask: Annotated[bool, option("ask")] = False,
    do: Annotated[bool, option("do")] = False,
    withdraw: Annotated[bool, option("withdraw")] = False,
    json: Json = False,
) -> None:
    """Add your words, or files, to the current request; then send it again."""
    if ask + do + withdraw > 1:
        raise UsageError("--ask, --do and --withdraw can't be combined; leave one in")
    home = home_of(context)
    state, rest = _meant(home, words or [])
    if withdraw:
        with screen_for(json) as screen:
            write_anew(home, state, Requests.unsay, screen)
        return
    text = read_words(rest, file, edit, may_be_empty=bool(attach) and not (ask or do))
    wants: Wants | None = "words" if ask else "edits" if do else None
    with screen_for(json) as screen:
        say(home, state, text, attach, screen, wants)


def say(
    home: Home,
    state: Session,
    text: str,
    attach: list[str] | None,
    screen: Screen,
    wants: Wants | None = None,
) -> None:
    """Add words and files to a session's request; `wants` changes what it asks for."""
    files: dict[str, Attached] = {}
    if attach:
        check_present(state)
        root = Path(state.workspace)
        policy = policy_of(settings_of(home, state, {}, executes=False), root)
        files = factory.attached(home.root, root, attach, policy, screen.show)
    write_anew(home, state, lambda asked: asked.say(text, files, wants), screen, has_words=True)


@app.command(epilog="Example: codingagent refresh", name="refresh")
def _refresh(
    context: typer.Context,
    session: OpenSessionName = None,
    leave_out: Annotated[list[str] | None, option("refresh leave out")] = None,
    json: Json = False,
) -> None:
    """Rewrite the current request from the files as they are now."""
    home = home_of(context)
    state = home.sessions.load(session) if session else _meant(home, [])[0]
    globs = None if leave_out is None else tuple(filter(None, leave_out))
    with screen_for(json) as screen:
        write_anew(home, state, lambda asked: asked.refresh(globs), screen)


@app.command(epilog="Example: codingagent revoke a1b2c3d4 2", name="revoke")
def _revoke(
    context: typer.Context, words: Annotated[list[str] | None, option("revoked")] = None, json: Json = False
) -> None:
    """Withdraw approvals that you gave with --always: you are asked again."""
    home = home_of(context)
    given = words or []
    first = given[0] if given else ""
    is_named = bool(first) and not (first.isdecimal() and len(first) < len("a1b2c3d4"))
    state = home.sessions.load(first) if is_named else latest_of(home)
    granted, numbers = sorted(state.granted), given[is_named:]
    if not granted:
        raise UsageError(f"session {state.session_id} has no approvals to withdraw")
    for number in numbers:
        if not number.isdecimal() or not 0 < int(number) <= len(granted):
            raise UsageError(
                f"there is no approval '{number}', only 1 to {len(granted)};"
                f" `codingagent show {state.session_id}` lists them"
            )
    grants = [granted[int(number) - 1] for number in numbers] or granted
    with screen_for(json) as screen, at_rest(home, state.session_id, screen) as shared:
        shared.work.requests.revoke(tuple(grants))


def choose(home: Home, state: Session, words: Sequence[str], choice: Sequence[str], screen: Screen) -> None:
    """Change which files the request shows: globs and -N leave out, +N takes back, or attaches whole."""
    left_out, attached = list(state.leave_out), []
    for word in words:
        number = word.lstrip("+-")
        if not number.isdecimal():
            left_out.append(word)
        elif not 0 < int(number) <= len(choice):
            lines = f"the choice has lines 1 to {len(choice)}"
            raise UsageError(f"{word} names nothing: {lines if choice else '/refresh shows the choice'}")
        elif word[0] != "+":
            left_out.append(choice[int(number) - 1])
        elif (path := choice[int(number) - 1]) in left_out:
            left_out.remove(path)
        else:
            attached.append(os.path.join(state.workspace, path))
    globs = tuple(dict.fromkeys(left_out))
    if globs != state.leave_out:
        write_anew(home, state, lambda asked: asked.refresh(globs), screen)
    if attached:
        say(home, state, "", attached, screen)


def _meant(home: Home, words: list[str]) -> tuple[Session, list[str]]:
    """Return the session that is meant, and the words after its id."""
    first = words[0] if words else ""
    if is_run_id(first):
        raise UsageError(f"{first} is a run; you can't add words to a run")
    if is_session_id(first):
        if first in home.sessions.ids():
            return home.sessions.load(first), words[1:]
        # "deadbeef" is a word too. But words meant for one session must not go into another.
        if words[1:]:
            raise UsageError(
                f"no session {first} in {home.sessions.folder}; `codingagent list` shows all (if it is"
                " a word: put your whole text in quotes)"
            )
    found = homes.all_sessions(home, fail)
    return next((each for each in found if not each.is_complete), None) or latest_of(home), words


def write_anew(
    home: Home, state: Session, change: Callable[[Requests], None], screen: Screen, *, has_words: bool = False
) -> None:
    """Rewrite a session's request after a change."""
    with at_rest(home, state.session_id, screen) as shared:
        conversation, session_id = shared.conversation, state.session_id
        change(conversation.requests)
        try:
            # Not `recover`: this may come in the middle of a turn.
            conversation.write_due()
        except WorkError as fault:
            kept = "your words are kept, don't repeat them: " if has_words else ""
            way = f"`codingagent refresh {session_id}` writes the request"
            raise WorkError(f"{fault}; {kept}{way}") from fault
        resume = f"`codingagent resume {session_id}`"
        if conversation.session.is_awaiting_answer:
            if any(file.size_bytes for file in inbox_of(conversation, home).files()):
                screen.remark(
                    f"but an earlier answer is already in the inbox: {resume} takes it first;"
                    " if it ends the task, run the same command again to continue"
                )
            announce(conversation)
        elif conversation.session.is_complete:
            ended = "noted; but an answer that came at the same moment ended the task"
            screen.remark(f"{ended}: {resume} continues with what you said")
        else:
            screen.remark(f"noted for the next request; {resume} continues the current turn")
