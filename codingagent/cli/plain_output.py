"""Show notices as plain lines for a pipe or a log, or as JSON, one object a line."""

import json
from collections.abc import Sequence
from typing import TextIO, assert_never

from msgspec import to_builtins
from msgspec.structs import replace

from codingagent.cli import layout
from codingagent.editing import diff
from codingagent.editing.diff import LINES_LIMIT, Difference
from codingagent.model import ui_events as ui
from codingagent.model.approval import Answer
from codingagent.model.plain_text import on_screen, unmasked
from codingagent.model.results import Result

# A change that needs no approval is shown in brief; the rest is counted.
_SHORT_LINES = 12
_SHORT_CONTEXT = 1


class Changes:
    """Diffs to show: as much as was asked for, and nothing twice.

    `how` is never, short or full.
    """

    def __init__(self, how: str) -> None:
        self.how = how
        self._approved = ""
        self._change: ui.FileChanged | None = None

    def note(self, notice: ui.Notice) -> None:
        """Record what is shown for approval, and a change; the diff is computed later."""
        match notice:
            case ui.OperationBegan():
                self._approved, self._change = "", None
            case ui.ApprovalAwaited():
                self._approved = notice.subject
            case ui.FileChanged() if self.how != "never" and notice.path != self._approved:
                self._change = notice
            case _:
                pass

    def take(self) -> tuple[Difference, tuple[str, ...]] | None:
        """Return what the last operation changed, and the lines of it to show; once."""
        change, self._change = self._change, None
        if change is None:
            return None
        is_full = self.how == "full"
        found = diff.between(change.old or b"", change.new, *(() if is_full else (_SHORT_CONTEXT,)))
        if change.old is None:
            # The position of lines in a new file says nothing.
            found = replace(found, lines=found.lines[1:])
        lines = found.first(LINES_LIMIT if is_full else _SHORT_LINES)
        return found, tuple(on_screen(line).expandtabs(4) for line in lines)


class _Piped:
    """A screen in a pipe: nobody can answer there, and it has no state to restore."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._changes = Changes("never")

    def tell_changes(self, how: str, *, asked: bool) -> None:
        # Nobody may be looking: show only what was asked for explicitly.
        self._changes.how = how if asked or how == "full" else "never"

    def ask(self, notice: ui.ApprovalAwaited, elsewhere: ui.Elsewhere) -> Answer | None: ...
    def choose(self, question: str, choices: Sequence[str]) -> int | None: ...
    def close(self) -> None: ...


class Lines(_Piped):
    """Show each notice as lines of plain text."""

    def show(self, notice: ui.Notice) -> None:
        self._changes.note(notice)
        text = lines_of(notice)
        if isinstance(notice, ui.OperationDone) and (told := self._changes.take()) is not None:
            found, lines = told
            count = layout.counted(found, layout.PIPE)
            text = "\n".join([f"{text}{count}", *(f"         {line}" for line in lines)])
        if text:
            self._stream.write(f"{on_screen(text)}\n")
            self._stream.flush()


class JsonLines(_Piped):
    """Show each notice as one JSON object on a line; `type` is the notice's name."""

    def show(self, notice: ui.Notice) -> None:
        self._changes.note(notice)
        if not isinstance(notice, ui.FileChanged):
            write_json_line(self._stream, {"type": _type(notice), **to_builtins(notice)})
        elif (told := self._changes.take()) is not None:
            found, lines = told
            said = {"path": notice.path, "added": found.added, "removed": found.removed}
            document = {"type": _type(notice), **said, "difference": "\n".join(lines)}
            write_json_line(self._stream, document)


def write_json_line(stream: TextIO, document: object) -> None:
    """Write one JSON object and a line end; keys are in camelCase, as in the session files."""
    stream.write(json.dumps(_camel_keys(document)) + "\n")
    stream.flush()


def lines_of(notice: ui.Notice) -> str:
    """Return a notice in words; empty for one that matters only on a terminal."""
    match notice:
        case ui.OutboxReady():
            return ready_lines(notice)
        case ui.Waiting():
            return waiting_lines(notice)
        case ui.ReplyAccepted():
            count = notice.operations
            return (
                f"answer {notice.sequence}: {count} {'operation' if count == 1 else 'operations'}"
            )
        case ui.ReplyRejected():
            return f"rejected: {notice.name}: {notice.reason}\n  moved to {notice.path}\n  {notice.remedy}"
        case ui.OperationBegan() | ui.OutputCame() | ui.FileChanged():
            return ""
        case ui.OperationDone():
            return operation_line(notice)
        case ui.ApprovalAwaited():
            return approval_lines(notice)
        case ui.ModelSaid():
            return f"the model says: {notice.text}"
        case ui.QuestionAsked():
            return question_line(notice)
        case ui.TurnDone():
            return "\n".join([turn_line(notice), *(f"  note: {note}" for note in notice.notes)])
        case ui.SessionDone():
            return "\n".join(done_lines(notice))
        case ui.Remark():
            return notice.text
        case _:
            assert_never(notice)


def ready_lines(notice: ui.OutboxReady) -> str:
    """Return where a request is, its size, and its short version."""
    size = layout.size(notice.characters, notice.tokens)
    lines = [f"request {notice.sequence} is ready: {notice.path} ({size})"]
    if notice.budget:
        lines.append(f"  {layout.budget_line(notice.characters, notice.budget)}")
    if notice.short_path:
        size = layout.size(notice.short_characters, notice.short_tokens)
        lines.append(f"  short, for the same chat: {notice.short_path} ({size})")
    return "\n".join(lines)


def waiting_lines(notice: ui.Waiting) -> str:
    """Return what the person has to do now, for a newcomer."""
    first = f"attach this file to any chat, or paste its text, and send it: {notice.outbox}"
    if notice.short:
        first = (
            f"in the same chat send this file, attached or pasted: {notice.short}\n"
            f"     or in a new chat this complete one: {notice.outbox}"
        )
    return (
        f"now it is your turn:\n"
        f"  1. {first}\n"
        f"  2. save the chat's whole answer as a .txt file in: {notice.inbox}\n"
        f"{waiting_line(notice)}"
    )


def waiting_line(notice: ui.Waiting) -> str:
    """Return what happens next: this process waits, another one does, or the person runs a command."""
    if notice.elsewhere:
        return "the other terminal waits for the answer"
    resume = f"`codingagent resume {notice.session_id}`"
    if notice.watched:
        return f"waiting for the answer (Ctrl-C stops; {resume} continues)"
    return f"then: {resume} takes the answer and continues"


_OF_FILES = ("CREATE_FILE", "EDIT_FILE", "DELETE_FILE", "MOVE_FILE", "READ_FILE", "DONE")
_DENIED = "DENIED"


def output_of(result: Result) -> str:
    """Return what a failure printed; of a refusal nothing, since that is advice for the model."""
    return "" if result.success or result.summary.startswith(_DENIED) else result.output


def fault_of(result: Result) -> str:
    """Return a summary for the person: without what a failed operation advises the model to do."""
    if result.summary.startswith(_DENIED):
        return result.summary.replace(": the person said no", ": you said no", 1)
    if result.success or result.command_type not in _OF_FILES:
        return result.summary
    return result.summary.partition("; ")[0]


def summary_of(result: Result) -> str:
    """Return a summary for the person while a session runs; the request has the advice for the model."""
    fault = fault_of(result)
    if fault == result.summary or result.summary.startswith(_DENIED):
        return fault
    return f"{fault}; the next request asks the model to fix it"


def operation_line(notice: ui.OperationDone) -> str:
    """Return a result in one line, followed by what failed or was noted."""
    result = notice.result
    if result.success and result.command_type in ("MESSAGE", "DONE") and not result.notes:
        return ""  # shown by another notice
    mark = "ok    " if result.success else "FAILED"
    lines = [f"  {mark} {result.command_type}: {summary_of(result)}"]
    if output := output_of(result):
        lines.extend(f"         {line}" for line in output.rstrip("\n").split("\n")[-12:])
    lines.extend(f"         note: {note}" for note in result.notes)
    return "\n".join(lines)


def approval_lines(notice: ui.ApprovalAwaited) -> str:
    """Return what needs approval, and why."""
    shown = "\n".join(f"    {line}" for line in unmasked(notice.shown).split("\n"))
    why = "\n".join(f"  because: {reason}" for reason in notice.reasons)
    always = "".join(f"\n  --always would cover: {grant}" for grant in notice.grants)
    return f"{notice.operation_id} {notice.command_type} awaits approval\n{shown}\n{why}{always}"


def question_line(notice: ui.QuestionAsked) -> str:
    """Return how to answer the model's question."""
    return (
        "the model asks or says something (see above);"
        f' to answer: codingagent say {notice.session_id} "your words" (this rewrites the request)'
    )


def turn_line(notice: ui.TurnDone) -> str:
    """Sum up a turn."""
    failed = f", {notice.failed} failed" if notice.failed else ""
    count = len(notice.changed)
    changed = f", {count} {'file' if count == 1 else 'files'} changed" if count else ""
    return f"turn {notice.sequence}: {notice.succeeded} ok{failed}{changed}"


def done_lines(notice: ui.SessionDone) -> list[str]:
    """Return that the task is done, and what failed in the last answer."""
    lines = [f"done: {notice.summary}" if notice.summary else "done"]
    if notice.failed:
        lines.append("but these operations of the last answer failed:")
        lines.extend(f"  {line}" for line in notice.failed)
        lines.append(f"to continue with them: codingagent resume {notice.session_id}")
    return lines


def _type(notice: ui.Notice) -> str:
    name = type(notice).__name__
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).removeprefix("_")


def _camel_keys(value: object) -> object:
    if isinstance(value, dict):
        return {_camel(key): _camel_keys(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_camel_keys(inner) for inner in value]
    return value


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
