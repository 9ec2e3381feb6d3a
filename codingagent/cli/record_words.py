"""Word the records of a journal for the person, on every screen: what is for the model stays out."""

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from codingagent.checkpoints.history import named
from codingagent.cli import command_table, layout
from codingagent.cli.layout import Line, Look
from codingagent.model import approval, events, patterns, results, session_state
from codingagent.model import journal_entries as entries
from codingagent.model.check_outcome import NAMED, compared, passed_in, told_before
from codingagent.model.operations import Kind
from codingagent.model.plain_text import estimated, on_screen, one_line, plural, some, unmasked
from codingagent.storage.mailbox import Mailbox

Hung = tuple[Line, int]
"""A line, and the indent of those into which it is wrapped; 0: never wrapped, so that it can be copied."""

COMMANDS = (Kind.RUN_COMMAND, Kind.CHECK)
# Places of an edit that are named.
_PLACES = 3
# In a pipe, a longer command stands below the question about it.
_LONGEST = 100
# What Markdown escapes, chats show without the backslash.
_ESCAPED = patterns.lazy_pattern(r"\\([_*#\[\]`~])")


def lines_of(  # noqa: C901, PLR0912, PLR0915  # one case for each record
    record: entries.Record,
    session: session_state.Session,
    mailbox: Mailbox | None,
    look: Look,
    beside: Line = (),
    below: Iterable[Hung] = (),
) -> Iterator[Hung]:
    """Yield the lines of a record, with what a screen adds to an operation, question or request."""
    match record:
        case entries.RequestWritten() | entries.RefreshAsked() if session.is_of_tools:
            pass  # nothing is sent
        case entries.OperationEnded():
            yield from _outcome(record.event, look, beside, below)
        case entries.CheckEnded() if session.taken is None:
            yield _plain(told_before(record.event, record.sees))
            yield from (_note(note, look) for note in record.event.facts or record.event.notes)
        case entries.CheckEnded():
            yield from _outcome(record.event, look, beside, below, Kind.CHECK)
            if old := compared(session).old:
                yield _note(f"failed before any change, too: {some(old, NAMED)}", look)
        case entries.OperationStarted() if record.kind not in COMMANDS:
            yield [(f"  {record.kind} begins: {record.subject}", "dim")], 4
        case entries.OperationStarted():
            whose = " (your check)" * (record.kind is Kind.CHECK)
            yield [("  ", ""), ("$", "bold"), (f" {one_line(record.subject)}", ""), (whose, "dim")], 4
        case entries.ApprovalAsked():
            yield from _question(record, list(below), look)
        case entries.AnswerTaken():
            count = record.operations
            what = f"{count} {plural(count, 'operation')}, kept" if count else "kept"
            yield [(f"answer {record.sequence}: {what} as {record.name}", "")], 2
        case entries.AnswerSetAside():
            moved = "" if "--accept" in record.remedy else " (moved to inbox/rejected/)"
            how = f". {record.remedy[:1].upper()}{record.remedy[1:]}" if record.remedy else ""
            why = f" {record.reason}{moved}{command_table.runnable(how)}"
            yield [(record.name, ""), (" rejected:", "warn"), (why, "")], 0
        case entries.RequestWritten():
            path = ""
            if mailbox is not None:
                find = mailbox.short_path if record.sequence > 1 else mailbox.outbox_path
                path = str(find(session.session_id, record.sequence))
            again = session.is_rewritten
            yield request_line(record.sequence, path, record.egress, look, again=again)
        case entries.TurnEnded():
            yield from _turn(record, session, look)
        case entries.PersonSaid():
            yield from _said(record)
        case entries.UndoEnded():
            for note in record.notes:
                yield [(note[:1].upper() + note[1:], "")], 2
        case entries.SessionStarted():
            terms = {
                "asks for ": record.wants * (record.wants != "edits"),
                "policy ": record.policy,
                "sandbox ": record.sandbox,
                "with ": "network" * record.network,
                "answers in ": record.protocol * (record.protocol == "json"),
                "check ": f"`{record.check}`" * bool(record.check),
            }
            said = ", ".join(what + term for what, term in terms.items() if term)
            first, *others = record.task.strip("\n").split("\n")
            yield _plain(f"session started{f' ({said})' if said else ''}: {first}")
            for line in others:
                yield [(f"  {line}", "dim")], 4
            yield [(f"  workspace {record.workspace}", "dim")], 0
        case entries.RunStarted():
            yield _plain(f"run started (policy {record.policy})")
            yield [(f"  workspace {record.workspace}", "dim")], 0
        case entries.InboxFound():
            names = ", ".join(file.name for file in record.files)
            how = f"to use one: codingagent resume {session.session_id} --accept FILE"
            was_there = f"ignored, because it was in the inbox before: {names}"
            yield _plain(command_table.runnable(f"{was_there}; {how}"))
        case entries.GrantsRevoked():
            yield _plain(f"no longer granted: {', '.join(record.grants)}")
        case entries.CheckNamed():
            yield _plain(f"the check is now: {record.command or 'none'}")
        case entries.CandidateBegan():
            what = f"an answer to request {record.sequence} is tried in a copy"
            yield _plain(f"candidate {record.number}: {what}")
        case entries.CandidateEnded():
            own = f"; for its chat: `codingagent copy --candidate {record.number}`" * record.waits
            yield _plain(command_table.runnable(f"candidate {record.number}: {record.told}{own}"))
        case entries.ChatsNamed():
            then = "; by itself, if one alone is green" * record.takes_green
            yield _plain(f"answers that are tried in copies, before one is taken: {record.count}{then}")
        case entries.ApprovalAnswered():
            name = session.asked.name if session.asked else "the question"
            yield _plain(f"{name}: {record.answer.said}")
        case entries.CheckpointTaken():
            if names := ", ".join(record.uncovered):
                yield _plain(f"changed, and no checkpoint holds it: {names}")
        case entries.ProtectedFound():
            names = ", ".join(change.path for change in record.changes)
            yield _plain(f"protected files changed without approval: {names}")
        case entries.ProtectedSettled():
            ways = {"kept": record.kept, "put back": record.put_back}
            ways["could not be put back"] = record.left
            told = [f"{way}: {named(which)}" for way, which in ways.items() if which]
            yield _plain(f"protected files {'; '.join(told)}")
        case entries.UndoBegan():
            yield _plain(f"undo begins{', forced' if record.force else ''}")
        case entries.RefreshAsked(unsays=True):
            yield _plain("the last words were withdrawn")
        case entries.RefreshAsked(leave_out=tuple(globs)):
            yield _plain(f"left out of the choice: {', '.join(globs) or 'nothing'}")
        case entries.RefreshAsked():
            yield _plain("refresh requested")
        case entries.SessionReopened() | entries.SessionClosed():
            yield _plain(record.class_name.replace("_", " "))
        case entries.SessionRenamed():
            yield _plain(f"session renamed: {record.name or 'no name'}")
        case entries.CommitMade():
            yield _plain(f"committed on {record.branch}: {record.commit:.10}")
        case entries.HookChanged():
            yield _plain(f"a hook changed: {named(record.files)}")
        case _:
            assert_never(record)


def _plain(text: str) -> Hung:
    return [(text, "dim")], 2


def laid_out(lines: Iterable[Hung], look: Look) -> Iterator[Line]:
    """Return lines as they fit; text from answers and commands has no control characters."""
    for line, indent in lines:
        clean = [(on_screen(text).replace("\n", " "), style) for text, style in line]
        yield from layout.hang(clean, look, indent) if indent else [clean]


def outcome_of(event: events.Event) -> str:
    """Return what came of an operation: without what the model is to do about it."""
    fact = results.words_of(event)
    match event:
        case events.Denied():
            return fact.replace(": the user s", ": you s", 1)
        case events.Refused(kind=Kind.DONE):
            if results.is_refused_by_check(event):  # the line above has what it said
                fact = ": ".join(fact.split(": ", 2)[:2]) + "; the next request tells the model"
            said = fact.removeprefix("Not accepted").replace("the user's", "your")
            return f"not accepted{'' if said[:1] in ',:' else ': '}{said}"
        case events.Refused() if fact.startswith(results.CUT_OFF):
            return f"{fact}. The next request asks for the rest; or paste the whole answer again"
        case _:
            return fact


def _told(event: events.Event, kind: Kind | None) -> tuple[str, str]:
    """Return what came of an operation, for a line of a turn, and what is less important of it."""
    match event:
        case events.FileCreated():
            is_same = results.THERE_ALREADY in event.notes
            return f"{event.path}, {'unchanged' if is_same else 'replaced' if event.replaced else 'new'}", ""
        case events.FileEdited():
            new = [results.range_of(each.new_start, each.new_count) for each in event.hunks]
            new = new if all(each.new_count for each in event.hunks) else []
            return ", ".join((event.path, *(new if len(new) <= _PLACES else ()))), ""
        case events.FileDeleted():
            return f"{event.path}, deleted", ""
        case events.FileMoved():
            return f"{event.path}, moved to {event.to}", ""
        case events.CommandRan():
            is_check = "check: " * (kind is Kind.CHECK)
            words = passed_in(event) if kind is Kind.CHECK else ""
            took = layout.duration(event.duration_s)
            end = "" if events.succeeded(event) else f"{results.end_of(event)}, "
            return f"{is_check}{words or one_line(event.command)}", f"  {end}{took}"
        case events.Refused(kind=Kind.DONE):
            return f"DONE {outcome_of(event)}", ""
        case events.Refused() if event.subject and event.fact.startswith(f"'{event.subject}'"):
            return event.fact.replace("'", "", 2), ""
        case _:
            fact = outcome_of(event)
            return fact if event.kind in fact or events.succeeded(event) else f"{event.kind}: {fact}", ""


def _outcome(
    event: events.Event, look: Look, beside: Line, below: Iterable[Hung], kind: Kind | None = None
) -> Iterator[Hung]:
    if isinstance(event, events.MessageShown):
        # Each line is marked: none looks like a line of this program.
        lines = _ESCAPED.sub(r"\1", event.text).split("\n")
        if not look.is_terminal:
            yield [(f"the model says: {lines.pop(0)}", "")], 2
        yield from _marked(lines, look, "name")
    elif not isinstance(event, events.Finished) or event.notes:
        what, aside = _told(event, kind)
        mark = look.mark(events.succeeded(event))
        yield [("  ", ""), mark, (f" {what}", ""), (aside, "dim"), *beside], 4
    yield from below
    for note in event.facts or event.notes:
        yield _note(note, look)


def _note(text: str, look: Look) -> Hung:
    indent = margin(look)
    return [(" " * indent, ""), ("note:", "warn"), (f" {text}", "")], indent


def margin(look: Look) -> int:
    """Return the indent of a diff or an output below its operation."""
    return 6 if look.is_terminal else 9


def asked_in(question: approval.Question) -> list[str]:
    """Return the lines of what is approved: a command, or the diff of files."""
    show = unmasked if question.kind in COMMANDS else on_screen
    return show(question.shown).split("\n")


def _question(record: entries.ApprovalAsked, shown: Sequence[Hung], look: Look) -> Iterator[Hung]:
    question = record.question
    text = unmasked(question.subject)
    # All of what is approved is shown: here, or below, where no piece of it begins as our own lines do.
    room = layout.cells(text) < (look.width or _LONGEST) - len("? Run ``?")
    is_here = room and (question.shown or question.subject) == question.subject
    subject = f"`{text}`" if is_here else "this"
    match question.kind:
        case Kind.READ_FILE:
            what = f"Send the secret values in {subject} to the chat? On no, it gets placeholders."
        case Kind.RUN_COMMAND | Kind.CHECK:
            what = f"Run {subject}?"
        case Kind.FILES_CHANGED:
            what = "Keep these changes?"
        case _:
            what = f"Approve {question.kind} {one_line(text)}?"
    name = "" if look.is_terminal else f"{record.name}: "
    yield [("? ", "bold yellow"), (f"{name}{what}", "")], 4
    if not (is_here and question.kind in (*COMMANDS, Kind.READ_FILE)):
        yield from shown
    for reason in question.reasons if question.kind is not Kind.READ_FILE else ():
        yield [("  ", ""), ("why:", "warn"), (f" {reason}", "")], 4
    for grant in question.grants if question.kind is not Kind.READ_FILE else ():
        yield [("  ", ""), ('"always" covers:', "warn"), (f" {grant}", "")], 4


def sent_size(egress: entries.Egress | None) -> tuple[int, int]:
    """Return the characters and tokens of what is to be sent: the short request, if there is one."""
    if egress is None:
        return 0, 0
    short = egress.short_characters, egress.short_tokens
    return short if all(short) else (egress.characters, egress.tokens)


def request_line(number: int, path: str, egress: entries.Egress | None, look: Look, *, again: bool) -> Hung:
    """Return the line for a request that is to be sent; it is not wrapped, so that it can be copied."""
    size, tokens = sent_size(egress)
    way = " was rewritten; send this one" * again
    about = f", {estimated(tokens)}" * (look.is_terminal and tokens > 0)
    told = f" ({layout.size(size, tokens)})" * (not look.is_terminal and tokens > 0)
    colon = ": " if path else ""
    what = (f"Request {number}", "bold")
    return [what, (f"{way}{about}{colon}", ""), (path, "name"), (told, "")], 0


def _turn(record: entries.TurnEnded, session: session_state.Session, look: Look) -> Iterator[Hung]:
    failed = [event for event in session.results if not events.succeeded(event)]
    good, changed = len(session.results) - len(failed), len(record.changed)
    more = " or more" * (changed == entries.CHANGED_LIMIT)
    told = [f"{good} ok"] if good or not failed else []
    told += [f"{len(failed)} failed"] if failed else []
    told += [f"{changed}{more} {plural(changed, 'file')} changed"] if changed else []
    yield [(f"Turn {record.sequence}: {', '.join(told)}", "dim")], 2
    for note in filter(None, record.facts or record.notes):
        yield [("  ", ""), ("note:", "warn"), (f" {command_table.runnable(note)}", "")], 4
    if not session.is_complete or session.is_run or session.is_only_words:
        return
    last = session.results[-1]
    first, *others = (last.summary if isinstance(last, events.Finished) else "").split("\n")
    yield [(f"Done: {first}" if first else "Done.", "bold green")], 6
    yield from _marked(others, look, "bold green")
    if failed := [each for each in failed if not isinstance(each, events.Denied)]:
        what = "; ".join(f"{each.kind}: {outcome_of(each)}" for each in failed)
        yield [(f"your check decides; what failed in the answer: {what}", "warn")], 4


def outputs(records: Iterable[entries.Record], turn: int | None) -> str:
    """Return what the commands of a turn printed, each below itself; of 0: before the first answer.

    None: of the latest turn that ran one. What was over a command's limit was not kept.
    """
    found, sequence = dict[int, list[str]](), 0
    for record in records:
        sequence = record.sequence if isinstance(record, entries.AnswerTaken) else sequence
        if isinstance(event := getattr(record, "event", None), events.CommandRan):
            printed = event.output.rstrip("\n") or "(it printed nothing)"
            found.setdefault(sequence, []).append(on_screen(f"$ {event.command}\n{printed}"))
    turn = max(found, default=0) if turn is None else turn
    return "\n".join(found.get(turn, [f"turn {turn} ran no command"]))


def _said(record: entries.PersonSaid) -> Iterator[Hung]:
    what = {"words": "you asked: ", "edits": "you want done: "}.get(record.wants or "", "you said: ")
    what = what if record.text else "you attached "
    first, *others = (record.text or ", ".join(record.attached)).split("\n")
    yield [(what, "bold"), (first, "")], 2
    if record.text and record.attached:
        others.append(f"attached: {', '.join(record.attached)}")
    for line in others:
        yield [(f"  {line}", "")], 4


def _marked(lines: Iterable[str], look: Look, style: str) -> Iterator[Hung]:
    """Yield a model's lines, each with a mark, also where one is wrapped."""
    sign = "  " if not look.is_terminal else "│ " if look.has_marks else "| "
    room = Look(max(look.width - len(sign), 1)) if look.is_terminal else look
    for line in lines:
        for piece in layout.hang([(on_screen(line), style)], room, 0):
            yield [(sign, "dim"), *piece], 0
