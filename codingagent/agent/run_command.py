"""Plan RUN_COMMAND, and run the command."""

import re
import shlex
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from codingagent.agent.context import Context
from codingagent.agent.plan import Order, Plan
from codingagent.agent.secrecy import HiddenStream, Secrecy
from codingagent.errors import OperationError
from codingagent.model import paths, plain_text
from codingagent.model.events import CommandRan, Denied
from codingagent.model.observations import Extras, Outcome, digest_of
from codingagent.model.operations import RunCommand
from codingagent.model.patterns import lazy_pattern
from codingagent.model.ui_events import Notice, OutputCame
from codingagent.policy import evaluate
from codingagent.policy.rules import Ask, Deny
from codingagent.process.output import TRUNCATED, without_half
from codingagent.workspace.real_paths import with_slashes

# How much of a command's output a result shows (specification 003, RUN_COMMAND).
OUTPUT_LIMIT_CHARACTERS = 20_000
# How much of a command's output the screen shows as it comes.
_LIVE_LIMIT_CHARACTERS = 50_000

_GIT_CAME = (
    "this command made .git here: commands can only read it from now on, and its config and hooks should be"
    " checked before git is used here"
)

_VARIABLE = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def plan(context: Context, order: Order, operation: RunCommand) -> Plan | Denied:
    command, variables = operation.command, operation.variables
    _check_command(operation)
    verdict = evaluate.judge_command(
        context.policy, command, str(context.workspace.root), variables
    )
    if isinstance(verdict, Deny):
        return order.denied(command, verdict)
    # A yes holds for the folder that cwd leads to now, and for these variables.
    where = context.workspace.resolved(operation.cwd) if operation.cwd != "." else ""
    parts = (operation.cwd, where, *(f"{name}={value}" for name, value in variables.items()))
    asked = (verdict,) if isinstance(verdict, Ask) else ()
    if asked and (where or variables):
        # An "always" holds only for this folder and these variables.
        given = digest_of("\0".join(parts).encode(errors="replace"))[:12]
        here = f" in '{paths.shown(operation.cwd)}' ({given})"
        asked = (replace(asked[0], grants=tuple(grant + here for grant in asked[0].grants)),)
    shown, act = partial(_shown, operation), partial(_run, context, order, operation)
    return Plan(command, parts, shown, act, asked)


def _check_command(operation: RunCommand) -> None:
    """Refuse a command that no system can start: empty, with a NUL, or a variable of an invalid name."""
    if not operation.command.strip():
        raise OperationError("The command is empty", advice="; give a shell command")
    if "\0" in operation.command:
        raise OperationError("The command has a NUL character", advice="; write it without")
    for name, value in operation.variables.items():
        if not _VARIABLE.fullmatch(name):
            raise OperationError(
                f"'{paths.shown(name)}' is no name of a variable",
                advice="; use letters, digits and _",
            )
        if "\0" in value:
            raise OperationError(
                f"The variable {name} has a NUL character", advice="; write it without"
            )


def _shown(operation: RunCommand) -> str:
    where = "" if operation.cwd == "." else f"in {operation.cwd}: "
    variables = "".join(f"{name}={shlex.quote(v)} " for name, v in operation.variables.items())
    return f"{where}{variables}{operation.command}"


def limit_of(context: Context, operation: RunCommand) -> float | None:
    """Return how long a command may run, in seconds; None: without end."""
    asked_s, most_s = operation.timeout_s, context.policy.shell.timeout
    limit_s = context.settings.command_timeout if asked_s is None else asked_s or None
    return limit_s if most_s is None else min(limit_s or most_s, most_s)


def _run(context: Context, order: Order, operation: RunCommand) -> CommandRan:
    limit_s = limit_of(context, operation)
    had_git = context.workspace.has_git()
    learn_files(context, operation)
    with context.workspace.folder(operation.cwd) as folder:
        show = _Live(context.show, context.secrecy)
        extras = Extras(operation.variables, operation.parts_streams)
        outcome = context.runner.run(operation.command, folder, limit_s, show.add, extras)
    if outcome.ended_by == "itself" or not context.secrecy.vault.hides:
        show.end()
    ran = ended(context, operation, outcome, order.room)
    came = not had_git and context.workspace.has_git()
    return replace(ran, notes=(*ran.notes, *[_GIT_CAME] * came))


def ended(context: Context, operation: RunCommand, outcome: Outcome, room: int = 0) -> CommandRan:
    """Return the event of a command that has ended, without the secrets in what it printed."""
    hides = context.secrecy.vault.hides
    was_cut = hides and outcome.ended_by != "itself"
    if outcome.failure:
        raise OperationError(f"The command could not be started: {outcome.failure}")
    # Before it is cut: what is left of a secret could not be found.
    learn_files(context, operation)
    hide = context.secrecy.hide
    printed = without_half(outcome.output) if was_cut else outcome.output
    output = hide(plain_text.without_controls(printed))
    streams: list[str | None] = [outcome.stdout, outcome.stderr]
    if hides:
        streams = [None if each is None else hide(_readable(each, was_cut)) for each in streams]
    context.secrecy.save()
    notes = outcome.notes
    if outcome.stopped_processes and outcome.ended_by == "itself":
        count = outcome.stopped_processes
        what = plain_text.plural(count, "background process was", "background processes were")
        notes += (f"{count} {what} ended with the command",)
    return CommandRan(
        operation.command,
        outcome.exit_code,
        plain_text.clip_middle(output, OUTPUT_LIMIT_CHARACTERS, outcome.dropped_characters),
        round(outcome.duration_s, 3),
        outcome.ended_by,
        outcome.limit,
        outcome.stopped_processes,
        outcome.sandbox,
        outcome.has_network,
        _within(streams[0], room),
        _within(streams[1], room),
        notes=notes,
    )


def learn_files(context: Context, operation: RunCommand) -> None:
    """Learn the secrets that a command may print, also a part of."""
    words = re.split(r"[\s'\"`;:|&<>()=,]+", with_slashes(operation.command))
    named = list(filter(None, words))
    if operation.cwd != ".":
        named = [f"{operation.cwd}/{name}" for name in named] + named
    there = (*context.workspace.names(), *named)
    context.secrecy.read_files(context.workspace, there, named)


def _readable(stream: str, was_cut: bool) -> str:
    """Return a stream without what could part a secret: control sequences, and the word at its cut."""
    whole = stream.removesuffix(TRUNCATED)
    if was_cut or whole != stream:
        stream = f"{without_half(whole)}{stream[len(whole) :]}"
    return plain_text.without_controls(stream)


def _within(text: str | None, room: int) -> str | None:
    limit = max(room, OUTPUT_LIMIT_CHARACTERS)
    return None if text is None else plain_text.clip_middle(text, limit)


class _Live:
    """Pass a running command's output to the screen, up to a limit: nobody reads more."""

    def __init__(self, show: Callable[[Notice], None], secrecy: Secrecy) -> None:
        self._show = show
        self._hidden = HiddenStream(secrecy)
        self._left = _LIVE_LIMIT_CHARACTERS

    def add(self, text: str) -> None:
        if self._left > 0:  # A flood is not worth looking through.
            self._add(self._hidden.add(text))

    def end(self) -> None:
        """Show what was held back."""
        self._add(self._hidden.rest())

    def _add(self, text: str) -> None:
        if text and self._left > 0:
            shown = plain_text.without_controls(text[: self._left])
            self._left -= len(text)
            self._show(OutputCame(shown if self._left > 0 else f"{shown}\n… (more is not shown)\n"))
