"""Plan RUN_COMMAND, and run the command."""

import re
import shlex
from functools import partial

from msgspec.structs import replace

from codingagent.agent.context import Context
from codingagent.agent.plan import OperationRequest, Plan
from codingagent.agent.secrecy import HiddenStream
from codingagent.errors import OperationError
from codingagent.model import events, notices, observations, paths, patterns, plain_text
from codingagent.model.operations import RunCommand
from codingagent.policy import evaluate, rules
from codingagent.process import bubblewrap, diagnosis
from codingagent.process.output import TRUNCATED, without_half
from codingagent.workspace import programs, real_paths

# How much of a command's output a result shows (specification 003, RUN_COMMAND).
OUTPUT_LIMIT_CHARACTERS = 20_000
# How much of a command's output the screen shows as it comes.
_LIVE_LIMIT_CHARACTERS = 50_000

_GIT_CAME = (
    "this command made .git here: commands can only read it from now on, and its config and hooks should be"
    " checked before git is used here"
)

_VARIABLE = patterns.lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def plan(context: Context, order: OperationRequest, operation: RunCommand) -> Plan | events.Denied:
    command, variables = operation.command, operation.variables
    if not command.strip():
        raise OperationError("The command is empty", advice="; give a shell command")
    if "\0" in command:
        raise OperationError("The command has a NUL character", advice="; write it without")
    for name, value in variables.items():
        if not _VARIABLE.fullmatch(name):
            fact = f"'{paths.shown(name)}' is no name of a variable"
            raise OperationError(fact, advice="; use letters, digits and _")
        if "\0" in value:
            fact = f"The variable {name} has a NUL character"
            raise OperationError(fact, advice="; write it without")
    verdict = evaluate.judge_command(context.policy, command, str(context.workspace.root), variables)
    if isinstance(verdict, rules.Deny):
        return order.denied(command, verdict)
    # A yes holds for the folder that cwd leads to now, and for these variables.
    where = context.workspace.resolved(operation.cwd) if operation.cwd != "." else ""
    parts = (operation.cwd, where, *(f"{name}={value}" for name, value in variables.items()))
    asked = (verdict,) if isinstance(verdict, rules.Ask) else ()
    if asked and (where or variables):
        # An "always" holds only for this folder and these variables.
        given = observations.digest_of("\0".join(parts).encode(errors="replace"))[:12]
        here = f" in '{paths.shown(operation.cwd)}' ({given})"
        asked = (replace(asked[0], grants=tuple(grant + here for grant in asked[0].grants)),)
    words = (f"{name}={shlex.quote(value)} " for name, value in variables.items())
    shown = f"in {operation.cwd}: " * (operation.cwd != ".") + "".join(words) + command
    act, limit_s = partial(_run, context, order, operation), limit_of(context, operation)
    return Plan(command, parts, lambda: shown, act, asked, limit_s=limit_s)


def limit_of(context: Context, operation: RunCommand) -> float | None:
    """Return how long a command may run, in seconds; None: without end."""
    asked_s, most_s = operation.timeout_s, context.policy.shell.timeout
    limit_s = context.settings.command_timeout if asked_s is None else asked_s or None
    return limit_s if most_s is None else min(limit_s or most_s, most_s)


def _run(context: Context, order: OperationRequest, operation: RunCommand) -> events.CommandRan:
    limit_s = limit_of(context, operation)
    had_git = context.workspace.has_git()
    learn_files(context, operation)
    hidden, left = HiddenStream(context.secrecy), _LIVE_LIMIT_CHARACTERS

    def show(text: str) -> None:
        nonlocal left
        if text and left > 0:
            shown = plain_text.without_controls(text[:left])
            left -= len(text)
            context.person.show(
                notices.OutputCame(shown if left > 0 else f"{shown}\n… (more is not shown)\n")
            )

    def add(text: str) -> None:
        if left > 0:  # A flood is not worth looking through.
            show(hidden.add(text))

    with context.workspace.folder(operation.cwd) as folder:
        extras = observations.Extras(operation.variables, operation.parts_streams)
        outcome = context.runner.run(operation.command, folder, limit_s, add, extras)
    if outcome.ended_by == "itself" or not context.secrecy.vault.hides:
        show(hidden.rest())
    ran = ended(context, operation, outcome, order.room)
    came = not had_git and context.workspace.has_git()
    return replace(ran, notes=(*ran.notes, *[_GIT_CAME] * came))


def ended(
    context: Context, operation: RunCommand, outcome: observations.Outcome, room: int = 0
) -> events.CommandRan:
    """Return the event of a command that has ended, without the secrets in what it printed."""
    hides, hide = context.secrecy.vault.hides, context.secrecy.hide
    was_cut = hides and outcome.ended_by != "itself"
    if outcome.failure:
        raise OperationError(f"The command could not be started: {outcome.failure}")
    # Before it is cut: what is left of a secret could not be found.
    learn_files(context, operation)
    printed = without_half(outcome.output) if was_cut else outcome.output
    output = hide(plain_text.without_controls(printed))
    streams: list[str | None] = [outcome.stdout, outcome.stderr]
    if hides or context.chat is not None:
        streams = [None if each is None else hide(_readable(each, was_cut)) for each in streams]
    limit = max(room, OUTPUT_LIMIT_CHARACTERS)
    clip = plain_text.clip_middle
    output = clip(output, OUTPUT_LIMIT_CHARACTERS, outcome.dropped_characters)
    streams = [None if each is None else clip(each, limit) for each in streams]
    context.secrecy.save()
    notes = outcome.notes
    if outcome.stopped_processes and outcome.ended_by == "itself":
        count = outcome.stopped_processes
        what = plain_text.plural(count, "background process was", "background processes were")
        notes += (f"{count} {what} ended with the command",)
    if outcome.exit_code and isinstance(sandbox := context.runner.sandbox, bubblewrap.Bubblewrap):
        seen = (programs.persons_variables(), context.runner.variables)
        notes += tuple(map(hide, diagnosis.causes(sandbox, operation.command, output, *seen)))
    command, duration_s = operation.command, round(outcome.duration_s, 3)
    how = outcome.ended_by, outcome.limit, outcome.stopped_processes, outcome.sandbox, outcome.has_network
    return events.CommandRan(command, outcome.exit_code, output, duration_s, *how, *streams, notes=notes)


def learn_files(context: Context, operation: RunCommand) -> None:
    """Learn the secrets that a command may print, also a part of."""
    words = re.split(r"[\s'\"`;:|&<>()=,]+", real_paths.with_slashes(operation.command))
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
