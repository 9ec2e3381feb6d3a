"""The commands try and take: answers are tried in copies of the workspace, and one is taken."""

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from codingagent.cli import output, shared_session
from codingagent.cli.commands.common import home_of, opened, waiting_of
from codingagent.cli.commands.options import Json, SessionOptions, option, with_options
from codingagent.errors import UsageError
from codingagent.storage.mailbox import read_bounded

if TYPE_CHECKING:
    from codingagent.cli.plain_output import Screen

app = typer.Typer()


@contextlib.contextmanager
def _at_work(
    context: typer.Context, given: SessionOptions, *, json: bool
) -> Iterator[tuple["Screen", shared_session.SharedSession]]:
    """Yield the screen, and the session whose request waits."""
    home = home_of(context)
    with (
        output.screen_for(json) as screen,
        shared_session.locked(home, screen.remark),
        opened(home, waiting_of(home), screen, given) as shared,
    ):
        yield screen, shared


@app.command(epilog="Example: codingagent try answer.txt", name="try")
@with_options("yes accept_formats")
def _try(
    context: typer.Context,
    given: SessionOptions,
    files: Annotated[list[Path] | None, option("tried")] = None,
    after: Annotated[int | None, option("after")] = None,
    compare: Annotated[tuple[int, int] | None, option("compare")] = None,
    json: Json = False,
) -> None:
    """Try answers to the current request, each in a copy of the workspace; compare what came of them.

    Without a file, go on with what was interrupted or asks you, and compare.
    """
    answers = [(file, read_bounded(file, UsageError) if file.is_file() else None) for file in files or ()]
    for file in [file for file, data in answers if data is None]:
        raise UsageError(f"{file} is no file, or too large to be an answer; name the chat's answer")
    with _at_work(context, given, json=json) as (screen, shared):
        conversation, trials = shared.conversation, shared.conversation.trials
        conversation.check.end()
        if compare is not None:
            for line in trials.diff(*compare).split("\n"):
                screen.remark(line)
            return
        for data in [data or b"" for _, data in answers if after is not None]:
            trials.give(after or 0, data)
        numbers = [trials.begin(data) for _, data in answers if data is not None and after is None]
        numbers = numbers or [each.began.number for each in trials.all() if each.state]
        for number in numbers:
            shared.doing(partial(conversation.try_candidate, number))
        if not numbers and not trials.compare():
            screen.remark("no answer was tried yet: `codingagent try FILE`")


@app.command(epilog="Example: codingagent take 2", name="take")
@with_options("yes")
def _take(
    context: typer.Context,
    given: SessionOptions,
    number: Annotated[int | None, option("candidate")] = None,
    auto: Annotated[bool, option("auto")] = False,
    json: Json = False,
) -> None:
    """Make what one of the tried answers changed the turn, byte for byte; nothing is run again."""
    if (number is None) != auto:
        raise UsageError("name one candidate, as `codingagent try` numbers them, or --auto")
    with _at_work(context, given, json=json) as (_, shared):
        conversation = shared.conversation
        green = (
            [each.began.number for each in conversation.trials.all() if each.is_green] if auto else [number]
        )
        if len(green) != 1 or green[0] is None:
            raise UsageError(f"not one candidate is green, but {len(green)}; name one")
        shared.doing(partial(conversation.take_candidate, green[0]))
        if not conversation.session.is_complete:
            shared_session.announce(conversation)
