"""Execute operations: plan one, ask the policy, journal its start, do it, and return its event.

After a kill at any instant the journal tells what to do: what had not begun is done, an interrupted file
operation is settled by looking at the file, and an interrupted command is never run again.
"""

import base64
import contextlib
import re
import shlex
from functools import partial

from msgspec.structs import replace

from codingagent.agent import file_operations, placeholders
from codingagent.agent.context import Context, OperationRequest, Plan, Views, subject_of
from codingagent.agent.secrecy import HiddenStream
from codingagent.errors import OperationError
from codingagent.model import documents, encoding, events, notices, operations, paths, plain_text
from codingagent.model.approval import Question
from codingagent.model.journal_entries import ApprovalAsked, OperationStarted
from codingagent.model.observations import Extras, Outcome, digest_of
from codingagent.policy import evaluate, rules
from codingagent.process import bubblewrap, diagnosis
from codingagent.process.output import TRUNCATED, without_half
from codingagent.storage.clock import now
from codingagent.workspace import programs, real_paths

# More files in one request do not help a model; it can narrow the glob.
_GLOB_LIMIT_FILES = 100
_VALUES = "an answer reads it, and it holds secrets: without a yes the chat sees names in their place"
_NAMES = "{} holds secrets: the chat sees the names of its variables only; to show it the values"
# How much of a command's output a result shows (specification 003, RUN_COMMAND).
OUTPUT_LIMIT_CHARACTERS = 20_000
# How much of a command's output the screen shows as it comes.
_LIVE_LIMIT_CHARACTERS = 50_000


class Executor:
    """Execute operations of any protocol."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._views = Views(context.workspace)
        self._listed = ""
        """The files, listed once for all patterns of an answer until it changes something."""

    def begin(self) -> None:
        self._listed = ""

    def perform(self, order: OperationRequest, approved: str = "") -> events.Event | Question:
        """Do one operation and return its outcome; the model's mistakes are events too.

        If the policy requires approval, return a question instead. Call again with `approved`, the digest of
        the question that was answered with yes: the operation is done if it would still do exactly the same.

        If the journal can't be written (WorkError), nothing was changed.
        """
        operation, context = order.operation, self._context
        log = context.log
        if operation.changes:
            self._listed = ""
        try:
            plan = self.plan(order)
            if not isinstance(plan, Plan):
                return plan
            if plan.asked and not order.is_check:
                question = self._question(order, plan)
                if question.digest != approved:
                    return question
            # Everything that the operation changes is recorded before it is changed.
            kept = context.checkpointer.keep(plan.changes[0].place, plan.edited) if plan.changes else None
            planned = plan.changes, plan.event, order.id, plan.is_unseen, plan.limit_s, kept
            log.record(OperationStarted(order.index, order.kind, plan.subject, now(), *planned))
            if plan.event is None:
                # A command whose start is lost in a power failure would start twice.
                log.sync()
            return plan.act()
        except OperationError as fault:
            subject, quote = subject_of(operation), self._context.secrecy.quote
            fact, detail, advice = (
                quote(text, subject, order.names) for text in (fault.fact, fault.detail, fault.advice)
            )
            return events.Refused(order.kind, fact, detail, subject, advice=advice)

    def _question(self, order: OperationRequest, plan: Plan) -> Question:
        """Return the question whose digest covers all that a plan would do."""
        secrecy = self._context.secrecy
        shown = secrecy.quote(secrecy.hide_diff(plan.shown(), plan.subject), "", order.names)
        parts = "\0".join((order.kind, plan.subject, *plan.parts))
        digest, asked = digest_of(parts.encode(errors="replace")), rules.together(*plan.asked)
        return Question(order.kind, plan.subject, asked.rules, asked.reasons, shown, digest, asked.grants)

    def plan(self, order: OperationRequest) -> Plan | events.Event:
        """Return what is to be done, or the outcome of what changes nothing or can't be done."""
        context, operation = self._context, order.operation
        if isinstance(operation, operations.FileOperation):
            return file_operations.plan(context, order, operation)
        match operation:
            case operations.ReadFile():
                return self._request(order, operation)
            case operations.FetchFile():
                return self._denied(order, operation.path) or self._fetch(order, operation)
            case operations.ListFolder(path=path):
                denied = self._denied(order, path)
                return denied or events.FolderListed(path, context.workspace.entries(path))
            case operations.RunCommand():
                return plan_command(context, order, operation)
            case operations.ShowMessage():
                return events.MessageShown(operation.text)
            case operations.Finish():
                return events.Finished(operation.summary)

    def after_kill(self, started: OperationStarted) -> events.Event | None:
        """Return the outcome of an operation that a kill interrupted; None: it had not begun."""
        if started.event is None:
            return events.Interrupted(started.kind, started.subject)
        workspace = self._context.workspace
        follows = {change.path: change.follows for change in started.event.changes}
        found: list[str | None] = []
        for path in (change.path for change in started.changes):
            try:
                workspace.discard_temporary(path)
                found.append(workspace.digest(path, follow_last=follows[path]))
            except OperationError:
                found.append("out of reach")
        if found == [change.after for change in started.changes]:
            return started.event
        if found == [change.before for change in started.changes]:
            return None
        if isinstance(started.event, events.FileMoved):
            with contextlib.suppress(OperationError):
                if workspace.finish_move(started.event.path, started.event.to):
                    return started.event
        fact = "the file is neither as it was before nor as it should be now"
        notes = (f"{fact}: read it",)
        return events.Interrupted(started.kind, started.subject, notes=notes, facts=(fact,))

    # --- what changes nothing ------------------------------------------------------------------
    def _request(self, order: OperationRequest, operation: operations.ReadFile) -> events.Event:
        """Return the files that the next request shows: one, or those that a glob matches."""
        workspace, path = self._context.workspace, operation.path
        lines = (operation.start_line, operation.end_line)
        if not paths.is_glob(path) or workspace.exists(path):
            if (denied := self._denied(order, path)) is not None:
                return denied
            self._views.view(path, *lines)
            self._ask_to_show(path)
            return events.FileRequested(path, (path,), *lines)
        if not self._listed:
            self._listed = "\0".join(("", *filter(paths.is_utf8, workspace.listing().files), ""))
        found = sorted(x for x in paths.matches(path, self._listed) if documents.is_asked_for(x, path))
        readable = list(filter(self._context.may_read, found))
        if not readable:
            fact = f"No file {'that the policy lets be read ' if found else ''}matches '{path}'"
            raise OperationError(fact, advice="; see Workspace Files for what there is")
        for each in readable[:_GLOB_LIMIT_FILES]:
            self._ask_to_show(each)
        notes: tuple[str, ...] = ()
        if len(readable) < len(found):
            notes += (f"{len(found) - len(readable)} more files match; the policy blocks them",)
        if len(readable) > _GLOB_LIMIT_FILES:
            notes += (f"{len(readable)} files match; only the first {_GLOB_LIMIT_FILES} were read",)
        return events.FileRequested(path, tuple(readable[:_GLOB_LIMIT_FILES]), *lines, notes=notes)

    def _fetch(self, order: OperationRequest, operation: operations.FetchFile) -> events.Event:
        path, workspace = operation.path, self._context.workspace
        workspace.check_leaves(path)
        data = workspace.read(path).data
        self._ask_to_show(path)
        if operation.encoding == "base64":
            content = base64.b64encode(data).decode()
        elif (text := encoding.decoded(data, "utf-8")) is not None:
            content = text
        else:
            found = workspace.text(path, data)
            if found is None or "?" in found.others:
                fact = f"File '{path}' is no text in a known encoding"
                raise OperationError(fact, advice="; ask for it with encoding base64")
            content = found.text
        if plain_text.json_length(content) > order.room:
            fact = f"File '{path}' has {len(data)} bytes and no room is left for them among these results"
            raise OperationError(fact, advice="; ask for fewer files at a time")
        return events.FileFetched(path, content, operation.encoding, len(data))

    def _denied(self, order: OperationRequest, path: str) -> events.Denied | None:
        # The root has no name of its own that a policy could block; what matters is whether it can be read.
        real = path if path == "." else self._context.workspace.resolved(path)
        verdict = rules.judge_read(self._context.policy, real)
        return order.denied(path, verdict) if isinstance(verdict, rules.Deny) else None

    def _ask_to_show(self, path: str) -> None:
        """Ask once, without waiting, whether the chat may see the values in a secret file."""
        context, secrecy = self._context, self._context.secrecy
        path = context.workspace.resolved(path)
        read = placeholders.reader(context.workspace)
        if context.texts is None or not (secrecy.may_ask(path) and secrecy.may_ask(path, read(path))):
            return
        asked = Question(operations.Kind.READ_FILE, path, (), (_VALUES,), path, "")
        question = ApprovalAsked(-1, asked, now())
        answer = None if context.person.approves_all else context.person.ask(question)
        if answer is not None:
            secrecy.decide(path, is_allowed=answer.decision != "no")
        else:
            how = f"codingagent secrets allow {programs.quoted([path])}"
            context.remark(f"{_NAMES.format(paths.shown(path))}: {how}")


# --- commands ------------------------------------------------------------------------------------------
def plan_command(
    context: Context, order: OperationRequest, operation: operations.RunCommand
) -> Plan | events.Denied:
    command, variables = operation.command, operation.variables
    if not command.strip():
        raise OperationError("The command is empty", advice="; give a shell command")
    for name in variables:
        if not (name.isascii() and name.isidentifier()):
            fact = f"'{paths.shown(name)}' is no name of a variable"
            raise OperationError(fact, advice="; use letters, digits and _")
    texts = {f"The variable {name}": value for name, value in variables.items()}
    for what, text in {"The command": command, **texts}.items():
        if "\0" in text:
            raise OperationError(f"{what} has a NUL character", advice="; write it without")
    verdict = evaluate.judge_command(context.policy, command, str(context.workspace.root), variables)
    if isinstance(verdict, rules.Deny):
        return order.denied(command, verdict)
    # A yes holds for the folder that cwd leads to now, and for these variables.
    where = context.workspace.resolved(operation.cwd) if operation.cwd != "." else ""
    parts = (operation.cwd, where, *(f"{name}={value}" for name, value in variables.items()))
    asked = (verdict,) if isinstance(verdict, rules.Ask) else ()
    if asked and (where or variables):
        # An "always" holds only for this folder and these variables.
        given = digest_of("\0".join(parts).encode(errors="replace"))[:12]
        here = f" in '{paths.shown(operation.cwd)}' ({given})"
        asked = (replace(asked[0], grants=tuple(grant + here for grant in asked[0].grants)),)
    words = (f"{name}={shlex.quote(value)} " for name, value in variables.items())
    shown = f"in {operation.cwd}: " * (operation.cwd != ".") + "".join(words) + command
    act, limit_s = partial(_run, context, order, operation), limit_of(context, operation)
    return Plan(command, parts, lambda: shown, act, asked, limit_s=limit_s)


def limit_of(context: Context, operation: operations.RunCommand) -> float | None:
    """Return how long a command may run, in seconds; None: without end."""
    asked_s, most_s = operation.timeout_s, context.policy.shell.timeout
    limit_s = context.settings.command_timeout if asked_s is None else asked_s or None
    return limit_s if most_s is None else min(limit_s or most_s, most_s)


def _run(context: Context, order: OperationRequest, operation: operations.RunCommand) -> events.CommandRan:
    limit_s = limit_of(context, operation)
    learn_files(context, operation)
    hidden, left = HiddenStream(context.secrecy), _LIVE_LIMIT_CHARACTERS

    def show(text: str) -> None:
        nonlocal left
        if text and left > 0:
            shown = plain_text.without_controls(text[:left])
            left -= len(text)
            end = "" if left > 0 else "\n… (more is not shown)\n"
            context.person.show(notices.OutputCame(f"{shown}{end}"))

    def add(text: str) -> None:
        if left > 0:  # A flood is not worth looking through.
            show(hidden.add(text))

    with context.workspace.folder(operation.cwd) as folder:
        extras = Extras(operation.variables, operation.parts_streams)
        outcome = context.runner.run(operation.command, folder, limit_s, add, extras)
    if outcome.ended_by == "itself" or not context.secrecy.vault.hides:
        show(hidden.rest())
    return ended(context, operation, outcome, order.room)


def ended(
    context: Context, operation: operations.RunCommand, outcome: Outcome, room: int = 0
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
    output = plain_text.clip_middle(output, OUTPUT_LIMIT_CHARACTERS, outcome.dropped_characters)
    streams = [None if each is None else plain_text.clip_middle(each, limit) for each in streams]
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


def learn_files(context: Context, operation: operations.RunCommand) -> None:
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
