"""Word the records of a journal for the person: for `log`, and for who waits while another terminal works."""

from typing import assert_never

from codingagent.model import journal_entries as entries
from codingagent.model import plain_text
from codingagent.model.approval import operation_id
from codingagent.model.events import MessageShown
from codingagent.model.journal_entries import Record
from codingagent.model.operations import Kind
from codingagent.model.results import check_result, result_of


def line_of(record: Record) -> str:
    """Return one record in words; text from answers and commands has no control characters."""
    return plain_text.on_screen(" ".join(_words(record).split()))


def _said(record: entries.PersonSaid) -> str:
    files = ", ".join(record.attached)
    if not record.text:
        return f"the person attached {files}"
    with_files = f"; attached: {files}" if files else ""
    return f"the person said: {plain_text.one_line(record.text, 200)}{with_files}"


_PLAIN: dict[type[Record], str] = {
    entries.RefreshAsked: "refresh requested",
    entries.SessionReopened: "session reopened",
    entries.SessionClosed: "session closed",
    entries.CommitMade: "committed on {0.branch}: {0.commit:.10}",
}


def _words(record: Record) -> str:
    match record:
        case entries.SessionStarted():
            terms = [
                f"workspace {record.workspace}",
                *([f"policy {record.policy}"] if record.policy else []),
                *([f"sandbox {record.sandbox}"] if record.sandbox else []),
                *(["with network"] if record.network else []),
                *([f"answers in {record.protocol}"] if record.protocol != "tags" else []),
                *([f"check `{record.check}`"] if record.check else []),
            ]
            said = ", ".join(terms)
            return f"session started ({said}): {plain_text.one_line(record.task, 200)}"
        case entries.RunStarted():
            return f"run started (workspace {record.workspace}, policy {record.policy})"
        case entries.InboxFound():
            names = ", ".join(file.name for file in record.files)
            return f"ignored, because it was in the inbox before: {names}"
        case entries.RequestWritten():
            return f"request {record.sequence} written"
        case entries.PersonSaid():
            return _said(record)
        case entries.GrantsRevoked():
            return f"revoked: {', '.join(record.grants)}"
        case entries.CheckNamed():
            return f"the check is now: {record.command or 'none'}"
        case entries.AnswerTaken():
            return f"answer {record.sequence} taken: {record.name}"
        case entries.AnswerSetAside():
            return f"rejected: {record.name}: {record.reason}"
        case entries.OperationStarted():
            name = (
                "check"
                if record.kind is Kind.CHECK
                else f"{operation_id(record.index)} {record.kind}"
            )
            return f"{name} begins: {plain_text.one_line(record.subject, 200)}"
        case entries.OperationEnded():
            result = result_of(record.event)
            mark = "ok" if result.success else "FAILED"
            where = f" [sandbox: {result.sandbox}]" if result.sandbox else ""
            notes = "".join(f"; note: {note}" for note in result.notes)
            event = record.event
            said = event.text if isinstance(event, MessageShown) else result.summary
            line = f"{operation_id(record.index)} {result.kind} {mark}: {said}"
            return f"{line}{where}{notes}"
        case entries.CheckEnded():
            result = check_result(record.event)
            mark = "ok" if result.success else "FAILED"
            return f"check {mark}: {result.summary} [sandbox: {result.sandbox or 'none'}]"
        case entries.ApprovalAsked():
            question = record.question
            why = "; ".join(question.reasons)
            subject = plain_text.one_line(question.subject, 200)
            return (
                f"{operation_id(record.index)} {question.kind} awaits approval: {subject} ({why})"
            )
        case entries.ApprovalAnswered():
            return f"{operation_id(record.index)} answered {record.answer.said}"
        case entries.CheckpointTaken():
            names = ", ".join(record.uncovered)
            return f"changed, and no checkpoint holds it: {names}" if names else ""
        case entries.ProtectedFound():
            names = ", ".join(change.path for change in record.changes)
            return f"protected files changed without approval: {names}"
        case entries.ProtectedSettled():
            ways = {
                "kept": record.kept,
                "put back": record.put_back,
                "could not be put back": record.left,
            }
            told = [f"{way}: {', '.join(which)}" for way, which in ways.items() if which]
            return f"protected files {'; '.join(told)}"
        case entries.UndoBegan():
            how = ", forced" if record.force else ""
            return f"undo begins{how}"
        case entries.UndoEnded():
            return f"undo done: {'; '.join(record.notes)}"
        case entries.TurnEnded():
            notes = "".join(f"; note: {note}" for note in record.notes)
            return f"turn {record.sequence} ended{notes}"
        case entries.RefreshAsked(unsays=True):
            return "the last words were withdrawn"
        case entries.RefreshAsked(leave_out=tuple(globs)):
            return f"left out of the choice: {', '.join(globs) or 'nothing'}"
        case (
            entries.RefreshAsked()
            | entries.SessionReopened()
            | entries.SessionClosed()
            | entries.CommitMade()
        ):
            return _PLAIN[type(record)].format(record)
        case _:
            assert_never(record)
