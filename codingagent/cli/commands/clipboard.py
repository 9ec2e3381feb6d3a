"""The commands copy and paste: requests to the chat, answers back."""

from typing import Annotated

import typer

from codingagent.cli.commands.common import ask_whose, home_of, settings_of, waiting_of
from codingagent.cli.commands.options import WaitingSessionName
from codingagent.cli.output import screen_for

app = typer.Typer()


@app.command(epilog="Example: codingagent copy --short", name="copy")
def _copy(
    context: typer.Context,
    session: WaitingSessionName = None,
    short: Annotated[
        bool,
        typer.Option(
            "--short", help="Copy the short request, for a chat that saw the earlier ones."
        ),
    ] = False,
    split: Annotated[
        int | None,
        typer.Option(metavar="CHARS", help="Copy in parts of at most this many characters."),
    ] = None,
) -> None:
    """Put the waiting request on the clipboard; in a pipe, print it."""
    from codingagent.cli import copy_paste

    home = home_of(context)
    state = waiting_of(home) if session is None else home.sessions.load(session)
    budget = settings_of(home, state, {}, executes=False).context_chars
    copy_paste.copy(home, state, short=short, limit=split, budget=budget)


@app.command(epilog="Example: xclip -o | codingagent paste", name="paste")
def _paste(
    context: typer.Context,
    session: WaitingSessionName = None,
    editor: Annotated[
        bool, typer.Option("--editor", help="Paste it into an editor first.")
    ] = False,
) -> None:
    """Save the chat's answer in the inbox: from a pipe, else from the clipboard."""
    from codingagent.cli import copy_paste

    home = home_of(context)
    if session is not None:
        copy_paste.paste(home, home.sessions.load(session), None, edits=editor)
        return
    with screen_for(json=False) as screen:
        copy_paste.paste(home, waiting_of(home), ask_whose(screen), edits=editor)
