"""The commands copy and paste: carry requests and answers through the clipboard, or pipes."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from codingagent.agent.answers import Ask, save_answer
from codingagent.cli import clipboard, layout
from codingagent.cli.command_table import runnable
from codingagent.cli.commands.common import ask_whose, home_of, settings_of, waiting_of
from codingagent.cli.commands.options import WaitingSessionName, told
from codingagent.cli.output import screen_for
from codingagent.cli.stdio import be_utf8, is_terminal
from codingagent.cli.task_input import edited
from codingagent.errors import UsageError, disk_errors
from codingagent.model import chats
from codingagent.model.session_state import Phase, Session, no_request_waits
from codingagent.model.settings import Settings
from codingagent.prompt import split as parts
from codingagent.prompt import tokens
from codingagent.storage.homes import Home
from codingagent.storage.mailbox import REPLY_LIMIT_BYTES

app = typer.Typer()


@app.command(epilog="Example: codingagent copy --split 8000", name="copy")
def _copy(
    context: typer.Context,
    session: WaitingSessionName = None,
    whole: Annotated[bool, told("whole")] = False,
    split: Annotated[int | None, told("split", min=parts.SMALLEST_CHARACTERS)] = None,
) -> None:
    """Put the current request on the clipboard; in a pipe, print it. The short one, if there is one."""
    home = home_of(context)
    state = waiting_of(home) if session is None else home.sessions.load(session)
    settings = settings_of(home, state, {}, executes=False)
    _put_request(home, state, settings, whole=whole, limit=split)


@app.command(epilog="Example: codingagent paste --editor", name="paste")
def _paste(
    context: typer.Context,
    session: WaitingSessionName = None,
    editor: Annotated[bool, told("editor")] = False,
) -> None:
    """Save the chat's answer in the inbox: from a pipe, else from the clipboard."""
    home = home_of(context)
    if session is not None:
        _save_answer(home, home.sessions.load(session), None, edits=editor)
        return
    with screen_for(json=False) as screen:
        _save_answer(home, waiting_of(home), ask_whose(screen), edits=editor)


def _put_request(
    home: Home, session: Session, settings: Settings, *, whole: bool, limit: int | None
) -> None:
    """Put a request on the clipboard: its parts, also in `outbox/parts/`, one after the other.

    In a pipe, print it, or the parts' file names. Without a `limit`, that of the person's chat makes parts.
    """
    if session.phase is not Phase.AWAITING_ANSWER:
        raise UsageError(no_request_waits(session))
    path = home.mailbox.outbox_path(session.session_id, session.sequence)
    if not whole:
        path = (*home.mailbox.waiting_paths(session.session_id, session.sequence), path)[0]
    with disk_errors(f"{path} can't be read"):
        text = path.read_text("utf-8")
    takes = chats.pasted(settings.chat) if is_terminal(sys.stdout) else None
    limit = limit or (takes if takes and len(text) > takes else None)
    pieces = (text,) if limit is None else parts.split(text, limit)
    names = [path] if limit is None else home.mailbox.write_parts(path.stem, pieces)
    if not is_terminal(sys.stdout):
        # The reader of the pipe has its own way to the clipboard.
        be_utf8(sys.stdout)
        sys.stdout.write(text if limit is None else "".join(f"{name}\n" for name in names))
        return
    for number, (name, piece) in enumerate(zip(names, pieces, strict=True), start=1):
        done, if_not = clipboard.put(piece, home.root, Path(session.workspace))
        size = layout.size(len(piece), tokens.estimate(piece))
        sys.stdout.write(f"{name.name} {done} ({size}): paste it into the chat\n{if_not}")
        if number < len(pieces):
            sys.stdout.write("then press Enter for the next part\n")
            sys.stdout.flush()
            if not sys.stdin.readline():
                raise UsageError(f"only {number} of {len(pieces)} parts were copied")


def _save_answer(home: Home, session: Session, ask: Ask | None, *, edits: bool) -> None:
    """Save an answer in the inbox: from a pipe, an editor, or else the clipboard."""
    if edits:
        data = edited("answer.txt")
    elif not is_terminal(sys.stdin):
        # As bytes: the inbox detects the encoding.
        data = sys.stdin.buffer.read(REPLY_LIMIT_BYTES + 1)
    else:
        data = clipboard.read().encode("utf-8", "replace")
    path, owner = save_answer(home, session, ask, data)
    way = runnable(f"`codingagent resume {owner}`")
    sys.stdout.write(f"saved as {path}; a waiting terminal applies it now, otherwise run {way}\n")
