"""Fold the records of a journal into the state of its session. Resuming folds them again.

Within EXECUTING each operation leaves OperationStarted (only if it changes something) and
OperationEnded; the person's own check leaves OperationStarted and CheckEnded. A start without an end
was interrupted by a kill: `Session.started`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from typing import Any

from msgspec.structs import force_setattr, replace

from codingagent.model import approval, events, results
from codingagent.model import journal_entries as entries
from codingagent.model.events import file_changes
from codingagent.model.operations import EVERYWHERE, Kind
from codingagent.model.plain_text import json_length, one_line, some
from codingagent.model.session_state import NONE, AppendList, Phase, Said, Session

_REOPENED = "the user goes on after your DONE: "
# Of what a turn changed, and of what failed in it, so many are named.
_NAMED, _FAILED_CHARACTERS = 5, 80
_OWED = ("do what they say, or what is missing", "what FAILED above is still to do")

_DUE, _AWAITING, _EXECUTING, _APPROVAL, _COMPLETE = Phase
_SAME = {phase: phase for phase in Phase}
_WAITS = {_AWAITING: _AWAITING}
# A waiting request is rewritten.
_REWRITTEN = {**_SAME, _AWAITING: _DUE}
# A question that waits is gone once its operation does something else: it is planned from the files of now.
_WORK = {_EXECUTING: _EXECUTING, _APPROVAL: _EXECUTING}

Changes = dict[str, object]


def fold(session: Session | None, record: entries.Record) -> Session:
    """Return the state after one more record; ValueError if it can't follow: another program wrote it."""
    return _begun(record) if session is None else replace(session, **_changes(session, record))


def replay(records: Iterable[entries.Record]) -> Session | None:
    return reduce(advance, records, None)


def states(
    records: Iterable[entries.Record], begun: Session | None = None
) -> Iterator[tuple[entries.Record, Session]]:
    """Yield each record with the state after it, good until the next; `begun`, before all, stays as it is."""
    session = None if begun is None else replace(begun)
    for record in records:
        session = advance(session, record)
        yield record, session


def advance(session: Session | None, record: entries.Record) -> Session:
    """Change a state in place as `fold` does, and return it: copies would be half of the work."""
    if session is None:
        return _begun(record)
    for name, value in _changes(session, record).items():
        force_setattr(session, name, value)
    return session


def _begun(record: entries.Record) -> Session:
    match record:
        case entries.SessionStarted():
            terms = record
        case entries.RunStarted(run_id=name, workspace=folder, at=at):
            rules = record.policy, record.sandbox, record.network
            terms = entries.SessionStarted(name, "", folder, at, *rules, secrets=record.secrets)
        case _:
            raise ValueError("no start of a session")
    head = terms.session_id, terms.task, terms.workspace, terms.at, terms.at
    begun = Session(*head, check=terms.check, leave_out=terms.leave_out, terms=terms)
    if isinstance(record, entries.RunStarted):
        taken = entries.AnswerTaken(1, entries.MESSAGE_NAME, record.digest, record.at)
        return replace(begun, phase=_EXECUTING, taken=taken, is_run=True)
    return replace(begun, is_taught=terms.wants == "edits")


def _changes(session: Session, record: entries.Record) -> Changes:
    if (row := _RECORDS.get(type(record))) is None:
        raise ValueError("a second start of a session")
    was, (phases, changes) = session.phase, row
    if was not in phases:
        raise ValueError(f"a {record.class_name} while the session is {was.value}")
    phase = phases[was]
    found: Changes = {"updated_at": record.at, "phase": phase}
    if was is _APPROVAL is not phase and not isinstance(record, entries.ApprovalAnswered):
        found["asked"] = None
    found.update(changes(session, record))
    return found


def _written(session: Session, record: entries.RequestWritten) -> Changes:
    # What the chat now knows, including files that the person changed.
    refused = (each for each in session.results if isinstance(each, events.Refused))
    known = {each.subject: each.digest for each in refused if each.digest}
    known |= {file.path: file.digest for file in record.shown}
    held = {path: part for path, part in session.held_before.items() if path not in known}
    return {
        "checkpoints": replace(session.checkpoints, told=session.checkpoints.latest),
        "known": {**session.known, **known} if known else session.known,
        "shown_in_part": session.shown_in_part.union(record.parts),
        "held": {**held, **{part.path: part for part in record.held}},
        "requested": record.sequence,
        "is_rewritten": record.sequence == session.requested,
    }


def _say(session: Session, record: entries.PersonSaid) -> Changes:
    # What is said during a turn goes into the request after it.
    sequence = session.sequence + (session.phase in (_EXECUTING, _APPROVAL))
    is_late = sequence == session.requested
    how = (is_late, record.wants, record.brief, record.parts)
    said = Said(sequence, record.text, record.attached, *how)
    is_question = record.wants == "words"
    return {
        "notes": tuple(n for n in session.notes if not is_question or not n.startswith(_REOPENED)),
        "was_done": session.was_done and is_question,
        # The first request is rewritten without the guide to the commands.
        "is_taught": session.is_taught and not (is_question and sequence == 1),
        "said": (*session.said, said),
        "leave_out": tuple(each for each in session.leave_out if each not in record.attached),
        "touched": session.touched.union(record.attached),
    }


def _refresh(session: Session, record: entries.RefreshAsked) -> Changes:
    said = session.said[:-1] if record.unsays else session.said
    if record.leave_out is None:
        return {"said": said}
    # What was attached goes no more, if it is left out by its name.
    left = (replace(e, attached=tuple(p for p in e.attached if p not in record.leave_out)) for e in said)
    return {"leave_out": record.leave_out, "said": tuple(each for each in left if each.text or each.attached)}


def _take(session: Session, record: entries.AnswerTaken) -> Changes:
    return {
        "was_done": session.was_done and session.is_asking,
        "checked": None,
        "checkpoints": replace(session.checkpoints, before="", commanded_at="", began="", parts=()),
        "taken": record,
        "last_digest": record.digest,
        "digests": session.digests.with_one(record.digest),
        "lacks_guide": (session.lacks_guide or record.sequence) * record.lacks_guide,
        "returned": 0,
        "undos": 0,
        "undo_note": "",
        # One that could not be finished must not be finished on a later turn's files.
        "undoing": None,
        "agreed": frozenset(),
        "protected_settled": None,
        **dict.fromkeys(("results", "ends", "written"), NONE),
        **dict.fromkeys(("notes", "protected_found"), ()),
    }


def _end_undo(session: Session, record: entries.UndoEnded) -> Changes:
    begun, spans = session.undoing, session.spans
    return {
        "undoing": None,
        "spans": spans if begun is None else spans.with_one((begun.at, record.at)),
        "undos": session.undos + (not record.is_void),
        "undo_note": record.told,
        "is_unchecked": True,
    }


def _reopen(session: Session, _: entries.SessionReopened) -> Changes:
    # After a close, or an answer in words, the model sent no DONE; only the request is new.
    is_done = not (session.is_closed or session.is_asking)
    notes = (*session.notes, *[_reopened(session)] * is_done)
    return {"sequence": session.sequence + 1, "is_closed": False, "was_done": is_done, "notes": notes}


def _start(session: Session, record: entries.OperationStarted) -> Changes:
    if session.taken is None and (
        record.kind is not Kind.CHECK or (session.last_digest and session.is_taught)
    ):
        raise ValueError("an operation without an answer")
    kept = session.checkpoints
    if kept.before and not kept.commanded_at and record.event is None:
        kept = replace(kept, commanded_at=record.at)
    return {"unfinished": record, "checkpoints": kept}


def _end_operation(session: Session, record: entries.OperationEnded) -> Changes:
    event, started = record.event, session.unfinished
    found: Changes = {"unfinished": None, "asked": None, "answered": None}
    found["results"] = session.results.with_one(event)
    found["ends"] = session.ends.with_one(record)
    changed = [change.path for change in event.changes if change is not EVERYWHERE]
    unparsed = session.unparsed.difference(changed) if session.unparsed else session.unparsed
    told: tuple[str, ...] = ()
    match event:
        case events.MessageShown(text=said) | events.Finished(summary=said) if said:
            found["replies"] = session.replies.with_one((session.sequence, said))
        case events.FileFetched():
            told = (event.content,)
        case events.CommandRan():
            told = event.stdout or "", event.stderr or ""
            found |= {"tier": event.sandbox, "spans": _spans(session, event, record.at)}
        case events.FileMoved() if event.path in session.unparsed:
            unparsed |= {event.to}
        case events.FileCreated() | events.FileEdited() if event.fault:
            unparsed |= {event.path}
        case events.Refused():
            found["refused"] = session.refused + results.is_refused_by_check(event)
        case _:
            pass
    if told:
        found["returned"] = session.returned + sum(map(json_length, told))
    # A command counts only after a check has run.
    if changed or (session.checked_by and EVERYWHERE in event.changes):
        found |= {"is_unchecked": True, "unparsed": unparsed}
    if started and changed:
        found["written"] = session.written.with_one(started)
        if started.kept is not None:
            found["late"] = session.late.with_one((session.sequence, started.kept))
    return found


def _end_check(session: Session, record: entries.CheckEnded) -> Changes:
    found: Changes = {"unfinished": None, "spans": _spans(session, record.event, record.at)}
    if session.taken is None:
        # Before the first answer: what fails is not the model's to mend.
        if record.is_news and session.phase is _AWAITING:
            found["phase"] = _DUE
        found["check_before"] = record
        if events.succeeded(record.event):
            found |= {"checked_by": record.command, "checked_on": "", "is_unchecked": False}
        return found
    if isinstance(record.event, events.Denied) and record.event.rules == events.SKIPPED:
        return {**found, "checked": record.event}  # skipped: what it said before holds
    is_failing = not events.succeeded(record.event)
    found |= {"checked": record.event, "last_checked": record.event, "is_failing": is_failing}
    return {**found, "checked_by": record.command, "checked_on": "", "is_unchecked": False}


def _spans(session: Session, event: events.Event, at: str) -> AppendList[tuple[str, str]]:
    """Return when commands ran, including one that has just ended; the end of a killed one is unknown."""
    if session.unfinished and isinstance(event, events.CommandRan):
        return session.spans.with_one((session.unfinished.at, at))
    return session.spans


def _answer(session: Session, record: entries.ApprovalAnswered) -> Changes:
    asked = session.asked
    if asked is None or asked.index != record.index:
        raise ValueError("an answer to what was not asked")
    grants, decision = asked.question.grants, record.answer.decision
    granted = session.granted.union(grants) if decision == "always" else session.granted
    is_agreed = decision != "no" and asked.question.kind is Kind.RUN_COMMAND
    agreed = session.agreed.union(grants) if is_agreed else session.agreed
    denied = session.denied.difference(grants)
    if decision == "no" and any(map(approval.is_about_secrets, asked.question.rules)):
        denied = denied.union(grants)
    return {"answered": record, "granted": granted, "agreed": agreed, "denied": denied}


def _settle(session: Session, record: entries.ProtectedSettled) -> Changes:
    is_unchecked = session.is_unchecked or bool(record.put_back)
    return {"asked": None, "answered": None, "protected_settled": record, "is_unchecked": is_unchecked}


def _keep(session: Session, record: entries.CheckpointTaken) -> Changes:
    kept, name, begins = session.checkpoints, record.name, record.name if record.before else ""
    if session.late and session.late[0][0] == record.sequence:
        late = session.late if begins else AppendList(session.late[1:])
        return {"late": late, "checkpoints": replace(kept, latest=name)}
    # The request about its turn is already out; before the first answer there is no turn.
    is_told = session.phase is _AWAITING and session.sequence > 1 and session.is_taught
    if begins and (is_told or session.phase is _COMPLETE):
        raise ValueError("a checkpoint before a turn that has not begun")
    ends = kept.before and not begins
    checkpoints = replace(
        kept,
        before=begins,
        turn=record.sequence,
        commanded_at="",
        began=kept.began or begins,
        parts=(*kept.parts, (kept.before, name)) if ends else kept.parts,
        latest=name,
        told=name if is_told else kept.told or name,
    )
    # The check comes last in a turn, so that the first one after it shows what it ran on.
    # So it does before the first answer, where nothing but the check was run.
    is_ahead = bool(ends and session.checked_by) and session.last_checked is None
    is_first = not (begins or session.checked_on) and (session.checked is not None or is_ahead)
    checked_on = name if is_first and not session.is_failing else session.checked_on
    # Where those of earlier edits could not be made they never are: they would come out of order.
    return {"late": NONE, "checkpoints": checkpoints, "checked_on": checked_on}


def _end_turn(session: Session, record: entries.TurnEnded) -> Changes:
    done = any(isinstance(event, events.Finished) for event in session.results)
    # The DONE referred to the files as they were before.
    decision = session.protected_settled
    done = done and not (decision and (decision.put_back or decision.left))
    is_answered = session.is_asking and session.is_only_words
    worded = session.sequence if is_answered else session.worded
    ended: Changes = {
        "taken": None,
        "notes": record.notes,
        "touched": session.touched.union(*map(_paths, session.results)),
        "cut": record.cut,
        "checkpoints": replace(session.checkpoints, shown=session.checkpoints.told),
        "known": (known := known_after(session.known, session.written) if session.written else session.known),
        "known_before": known,
        "held": (held := _held_after(session) if session.written else session.held),
        "held_before": held,
        "worded": worded,
        "turns": session.turns.with_one((session.sequence, _deeds(session, record))),
        "is_taught": session.is_taught or not (session.is_asking or session.is_only_words),
    }
    # No request has included yet what was said during the turn: the DONE did not take it into account.
    is_unheard = any(said.sequence > session.sequence for said in session.said)
    goes_on = session.was_done or replace(session, worded=worded).is_asking
    if done and is_unheard:
        ended["notes"] = (*record.notes, _reopened(session))
    elif done or session.is_run or (is_answered and goes_on and not is_unheard):
        return {**ended, "phase": _COMPLETE}
    return {**ended, "sequence": session.sequence + 1}


def _deeds(session: Session, record: entries.TurnEnded) -> str:
    """Return what a turn changed, and what failed in it."""
    failed = [
        f"`{one_line(event.command, _FAILED_CHARACTERS)}` (exit code {event.exit_code})"
        if isinstance(event, events.CommandRan)
        else one_line(f"{event.kind} {event.subject}: {event.reason}", _FAILED_CHARACTERS)
        for event in (*session.results, *filter(None, (session.checked,)))
        if isinstance(event, events.CommandRan | events.Refused | events.Denied)
        and not (event.kind is Kind.DONE or events.succeeded(event))
    ]
    changed = f"changed {some(record.changed, _NAMED)}" if record.changed else "changed nothing"
    return f"{changed}; failed: {some(failed, _NAMED)}" if failed else changed


def _held_after(session: Session) -> Mapping[str, entries.ShownPart]:
    found = dict(session.held)
    for change in (change for start in session.written for change in start.changes):
        part = found.get(change.path)
        if part and change.after and change.before == (part.own or part.digest):
            found[change.path] = replace(part, own=change.after)
    return found


def known_after(known: Mapping[str, str], written: Iterable[entries.OperationStarted]) -> Mapping[str, str]:
    """Return what the chat knows of files after its own changes, in their order."""
    found = dict(known)
    for start in written:
        made = () if start.event is None else file_changes((start.event,))
        kinds = {change.path: change.after for change in made}
        were = [found.get(change.path) for change in start.changes]
        for change in start.changes:
            kind = kinds.get(change.path)
            is_known = change.path in found and not start.is_unseen
            if kind == "moved" and change.after not in were:
                found.pop(change.path, None)
            elif kind != "part" or is_known:
                found[change.path] = change.after or ""
    return found


def _reopened(session: Session) -> str:
    return _REOPENED + _OWED[not all(map(events.succeeded, session.results))]


def _paths(event: events.Event) -> tuple[str, ...]:
    match event:
        case events.FileFetched():
            return (event.path,)
        case events.FileRequested():
            return event.paths
        case _:
            return tuple(each.path for each in file_changes((event,)) if not each.removes)


# By record: the phases in which it may come, and the phase after each; what it changes besides. The circle is
# REQUEST_DUE, AWAITING_ANSWER, EXECUTING, and back. The first one of a journal is none of them.
_RECORDS: Mapping[type[entries.Record], tuple[Mapping[Phase, Phase], Callable[[Session, Any], Changes]]] = {
    entries.InboxFound: (_SAME, lambda _, record: {"earlier": record.files}),
    entries.RequestWritten: ({_DUE: _AWAITING}, _written),
    # During a turn its own request is due anyway.
    entries.PersonSaid: ({was: then for was, then in _REWRITTEN.items() if was is not _COMPLETE}, _say),
    entries.RefreshAsked: ({_AWAITING: _DUE}, _refresh),
    # The waiting request tells of the old check.
    entries.CheckNamed: (_REWRITTEN, lambda _, record: {"check": record.command}),
    entries.CandidateBegan: (_WAITS, lambda was, record: {"candidates": (*was.candidates, record)}),
    entries.CandidateEnded: (_WAITS, lambda was, record: {"tried": {**was.tried, record.number: record}}),
    entries.ChatsNamed: (_SAME, lambda _, record: {"chats": record if record.count else None}),
    entries.AnswerTaken: ({_AWAITING: _EXECUTING}, _take),
    # The check runs once before the first answer, and first of all before the first request.
    entries.OperationStarted: ({**_WORK, **_WAITS, _DUE: _DUE}, _start),
    entries.OperationEnded: (_WORK, _end_operation),
    entries.CheckEnded: ({**_WORK, **_WAITS, _DUE: _DUE}, _end_check),
    # The question may be asked again: the file that the operation would change has changed.
    entries.ApprovalAsked: (dict.fromkeys(_WORK, _APPROVAL), lambda _, new: {"asked": new, "answered": None}),
    entries.ApprovalAnswered: ({_APPROVAL: _EXECUTING}, _answer),
    entries.GrantsRevoked: (_SAME, lambda was, record: {"granted": was.granted.difference(record.grants)}),
    entries.CheckpointTaken: (_SAME, _keep),
    entries.ProtectedFound: (_WORK, lambda _, record: {"protected_found": record.changes}),
    entries.ProtectedSettled: (_WORK, _settle),
    entries.UndoBegan: ({**_WAITS, _COMPLETE: _COMPLETE}, lambda _, record: {"undoing": record}),
    # REQUEST_DUE: words or a refresh came while an undo was being finished.
    entries.UndoEnded: ({_DUE: _DUE, _AWAITING: _DUE, _COMPLETE: _COMPLETE}, _end_undo),
    # With Finished and nothing said meanwhile: COMPLETE.
    entries.TurnEnded: (dict.fromkeys(_WORK, _DUE), _end_turn),
    entries.SessionReopened: ({_COMPLETE: _DUE}, _reopen),
    entries.SessionClosed: ({_DUE: _COMPLETE, _AWAITING: _COMPLETE}, lambda *_: {"is_closed": True}),
    entries.SessionRenamed: (_SAME, lambda _, record: {"name": record.name}),
    **dict.fromkeys(
        (entries.AnswerSetAside, entries.CommitMade, entries.HookChanged), (_SAME, lambda *_: {})
    ),
}
