"""The commands try and take: answers are tried in copies of the workspace, and one is taken."""

import contextlib
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from codingagent.agent.tried import difference
from codingagent.cli import output, shared_session
from codingagent.cli.commands.common import home_of, opened, waiting_of
from codingagent.cli.commands.options import Json, SessionOptions, option, with_options
from codingagent.errors import UsageError
from codingagent.storage.mailbox import REPLY_LIMIT_BYTES, read_bounded

app = typer.Typer()


@contextlib.contextmanager
def _at_work(
    context: typer.Context, given: SessionOptions, session: str | None, *, json: bool
) -> Iterator[shared_session.SharedSession]:
    """Yield the session that is named, else the latest whose request waits."""
    home = home_of(context)
    with (
        output.screen_for(json) as screen,
        shared_session.locked(home, screen.remark),
        opened(home, waiting_of(home, session), screen, given) as shared,
    ):
        yield shared


@app.command(epilog="Example: codingagent try answer.txt", name="try")
@with_options("yes accept_formats")
def _try(  # noqa: PLR0913, PLR0917  # one for each command-line option
    context: typer.Context,
    given: SessionOptions,
    files: Annotated[list[Path] | None, option("tried")] = None,
    after: Annotated[int | None, option("after")] = None,
    compare: Annotated[tuple[int, int] | None, option("compare")] = None,
    session: Annotated[str | None, option("tried in")] = None,
    json: Json = False,
) -> None:
    """Try answers to the current request, each in a copy of the workspace; compare what came of them.

    Without a file, go on with what was interrupted or asks you, and compare.
    """
    if compare is not None:
        home = home_of(context)
        sys.stdout.write(difference(home, waiting_of(home, session), *compare))
        return
    answers = [_read(file) for file in files or ()]
    with _at_work(context, given, session, json=json) as shared:
        trials = shared.conversation.trials
        shared.conversation.check.end()
        for data in answers if after is not None else ():
            trials.give(after or 0, data)
        numbers = [after] if after is not None else [*map(trials.begin, answers)]
        numbers = numbers or [number for number, _ in shared.conversation.session.trials]
        if not numbers:
            raise UsageError("no answer was tried yet: `codingagent try FILE`")
        shared.doing(partial(shared.conversation.try_candidates, numbers))


def _read(file: Path) -> bytes:
    data = read_bounded(file, UsageError) if file.is_file() else None
    if file.name == "-":
        data = sys.stdin.buffer.read(REPLY_LIMIT_BYTES + 1)
    if data is None or len(data) > REPLY_LIMIT_BYTES:
        raise UsageError(f"{file} is no file, or too large to be an answer; name the chat's answer")
    return data


@app.command(epilog="Example: codingagent take 2", name="take")
@with_options("yes")
def _take(
    context: typer.Context,
    given: SessionOptions,
    number: Annotated[int, option("candidate")],
    session: Annotated[str | None, option("tried in")] = None,
    json: Json = False,
) -> None:
    """Make what one of the tried answers changed the turn, byte for byte; nothing is run again."""
    with _at_work(context, given, session, json=json) as shared:
        conversation = shared.conversation
        shared.doing(partial(conversation.take_candidate, number))
        if not conversation.session.is_complete:
            shared_session.announce(conversation)
