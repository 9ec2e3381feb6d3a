"""Plan the operations that change files: what each would write, and why it may not."""

import contextlib
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from codingagent.agent import placeholders
from codingagent.agent.context import Context, OperationRequest, Plan
from codingagent.checkpoints.repository import gives_git_programs
from codingagent.editing import answer_checks, apply, body_rules, diff, elisions, notebooks, syntax_check
from codingagent.errors import OperationError
from codingagent.model import encoding, events, operations, paths, plain_text, results
from codingagent.model.journal_entries import ContentChange
from codingagent.model.notices import FileChanged
from codingagent.model.observations import Seen, digest_of
from codingagent.model.operations import CreateFile, DeleteFile, EditFile, FileOperation, MoveFile
from codingagent.policy.rules import Allow, Ask, Deny, ask_for_change, judge_change

_NOT_CHANGED = "it is as the chat was shown it, and the user changed it since: left as it is"
_GONE_ALREADY = "there is no such file: nothing to do"
_FOREIGN = Ask(
    ("format.foreign",),
    ("it came in another format than was asked for, and may have been meant otherwise",),
    ("changes in another format than asked for",),
)
_UNSEEN = "this file was changed since the chat saw all of it"
_READ_FIRST = ": READ_FILE before you replace more of it"
_UNDOES = "'{}' was changed since the chat saw it last, and this would undo that change"
_CORRECT = ": correct it, unless what follows in your answer does"


class _Change(Struct, frozen=True):
    """A change of one file that is known to be possible: its bytes before and after, and its event."""

    path: str
    seen: Seen | None
    data: bytes | None
    """None: there is no file any more."""
    before: str | None
    event: events.Event

    def as_diff(self) -> str:
        old = b"" if self.seen is None else self.seen.data
        return diff.text_of(self.path, old, self.data)


# --- the operations --------------------------------------------------------------------------------
def plan(context: Context, order: OperationRequest, operation: FileOperation) -> Plan | events.Event:
    for each in operation.changes:
        context.workspace.check_leaves(each.path)  # its result would show lines of it
    match operation:
        case CreateFile():
            return _create(context, order, operation)
        case EditFile():
            return _edit(context, order, operation)
        case DeleteFile(path=path):
            before = context.workspace.digest(path, follow_last=False)
            if before is None and order.foreign != "no":
                return events.FileDeleted(path, notes=(_GONE_ALREADY,))
            context.workspace.check_deletable(path)
            _check_removed(context, operation)
            change = _Change(path, None, None, before, events.FileDeleted(path))
            return _write(context, order, change, _data_at(context, path))
        case MoveFile():
            return _move(context, order, operation)


def _create(context: Context, order: OperationRequest, operation: CreateFile) -> Plan | events.Event:
    workspace, path = context.workspace, operation.path
    exists = workspace.check_writable(path)
    # Of a file too large to read, the beginning is enough: only its line ends matter here.
    seen = workspace.read(path, whole=False) if exists else None
    old = None if seen is None else workspace.text(path, seen.data)
    if seen is not None and not operation.overwrite:
        if order.foreign == "no" or _bytes_of(context, order, operation, old)[0] != seen.data:
            how = "; set overwrite to true, or name another path"
            raise OperationError(f"File '{path}' already exists", advice=how)
        return events.FileCreated(path, len(seen.data), replaced=True, notes=(results.THERE_ALREADY,))
    if not exists:
        paths.check_new_name(path, workspace.exists)
    before_text = None if old is None else old.text
    if order.later is not None:
        answer_checks.check_no_edits(operation, before_text)
    operation, notes = _as_meant(operation, before_text)
    data, text, changed = _bytes_of(context, order, operation, old)
    before = workspace.digest(path) if exists else None
    if seen is not None and old is None and isinstance(operation.content, str):
        changed += ("it is text in UTF-8 now, and was none that is read here (UTF-16 has a mark)",)
    notes += changed + _check_reading(order, operation, before_text, text)
    broken, note = _fault_of_new(context, order, operation, text, is_new=not exists)
    event = events.FileCreated(path, len(data), exists, broken, notes=notes + note)
    return _write(context, order, _Change(path, seen, data, before, event))


def _edit(context: Context, order: OperationRequest, operation: EditFile) -> Plan | events.Event:
    path, change = operation.path, operation.change
    seen = context.workspace.read(path, to_write=True)
    text = context.workspace.text(path, seen.data)
    if text is None:
        fact = f"File '{path}' is not text ({len(seen.data)} bytes)"
        raise OperationError(fact, advice="; replace it whole")
    is_counted = bool(operation.ranges)
    counts = is_counted or isinstance(change, operations.Diff)
    earlier = [hunk for each in order.earlier for hunk in each.hunks] if counts else []
    # An error, and the lines around the edit, quote it.
    context.secrecy.hide(text.text, path)
    olds = [each.old for each in change.edits] if isinstance(change, operations.Substitutions) else []
    shown = notebooks.to_edit(path, text.text, olds, is_counted=is_counted)
    try:
        edited = answer_checks.apply_edit(operation, shown, earlier, order.counted)
        is_same = shown == text.text
        new = edited.text if is_same else notebooks.written(text.text, edited.text)
        data = text.encode(new)
    except OperationError as fault:
        raise fault.but(f"'{path}': {fault.fact}") from fault
    placeholders.check_cuts(context.secrecy.vault, shown, operation)
    notes = edited.notes + _check_reading(order, operation, shown, edited.text)
    if new == text.text:
        notes += ("the new lines are the same as the old ones: the file is as it was",)
    broken, note = _fault_of_new(context, order, operation, new, is_new=False)
    excerpt = apply.excerpt(edited.text, edited.hunks)
    excerpt = context.secrecy.quote(excerpt, path, order.names)
    match change:
        case operations.Substitutions(edits=parts) | operations.Diff(hunks=parts):
            count = len(parts)
        case _:
            count = len(operation.parts)
    event = events.FileEdited(path, edited.hunks, excerpt, count, broken, notes=notes + note)
    return _write(context, order, _Change(path, seen, data, digest_of(seen.data), event))


def text_counted(context: Context, path: str) -> str | None:
    """Return the text of a file by which a chat counts its lines; None: it is not known.

    It is what the chat knows of it, though commands and this answer have changed it since, else what it was
    when the answer came. What the person changed is asked about anyway.
    """
    chat, workspace = context.chat, context.workspace
    if chat is None or context.texts is None:
        return None
    with contextlib.suppress(OperationError):
        seen = workspace.read(path)
        known, now = chat.known.get(path, ""), digest_of(seen.data)
        befores = (change.before for start in chat.written for change in start.changes if change.path == path)
        is_as_known = known in (now, next(befores, "")) or chat.is_ours(seen.state[3])
        if known and is_as_known and (text := context.texts.read(known)) is not None:
            return context.secrecy.vault.put_back(text)[0]
        decoded = None if chat.results else workspace.text(path, seen.data)
        return None if decoded is None else notebooks.shown(path, decoded.text)
    return None


def _check_removed(context: Context, operation: DeleteFile) -> None:
    """Refuse to delete a file that has other lines than a diff removes; blanks may differ."""
    if operation.lines is None:
        return
    path, workspace = operation.path, context.workspace
    text = workspace.text(path, workspace.read(path).data)
    if ("" if text is None else text.text).split() != " ".join(operation.lines).split():
        fact = f"'{paths.shown(path)}' has other lines than the diff removes"
        how = f'; if it is to go all the same, send [DELETE_FILE path="{paths.shown(path)}"]'
        raise OperationError(fact, advice=how)


def _move(context: Context, order: OperationRequest, operation: MoveFile) -> Plan | events.Event:
    workspace, path, to = context.workspace, operation.path, operation.to
    if operation.is_after_edit and not order.earlier:
        fact = f"'{path}' was not moved to '{to}', because its changes were not made"
        raise OperationError(fact, advice="; send both again")
    state, replaces = workspace.check_movable(path, to, overwrite=operation.overwrite)
    if not replaces:
        paths.check_new_name(to, lambda each: each != path and workspace.exists(each))
    moved = workspace.digest(path, follow_last=False)
    before = workspace.digest(to, follow_last=False) if replaces else None
    event = events.FileMoved(path, to, state[2], replaces)
    seen = workspace.read(to, whole=False) if replaces else None
    replaced = _Change(to, seen, None, before, event)
    if _stale_digest(context, replaced) is not None:
        raise OperationError(_UNDOES.format(to), advice=": READ_FILE it first")

    def act() -> events.Event:
        workspace.move(path, to, state, overwrite=operation.overwrite)
        context.secrecy.vault.moved(path, to)
        return event

    def shown() -> str:
        return f"'{path}' is moved to '{to}'\n{replaced.as_diff() if replaces else ''}"

    text = placeholders.text_of(path, _data_at(context, path))
    old = placeholders.text_of(to, None if seen is None else seen.data)
    files = placeholders.Texts(path, text, None), placeholders.Texts(to, old, text or "")
    asked, notes = placeholders.leaks(context, order.names, *files)
    event = replace(event, notes=notes)
    parts = (to, moved or "", before or "", *(reason for each in asked for reason in each.reasons))
    asked = (_FOREIGN, *asked) if order.foreign == "asked" else asked
    plan = Plan(path, parts, shown, act, asked, event=event)
    return _judged(context, order, plan, {path: (moved, None), to: (before, moved)}, state[2])


# --- what a change needs ---------------------------------------------------------------------------
def _write(
    context: Context, order: OperationRequest, change: _Change, deleted: bytes | None = None
) -> Plan | events.Event:
    """Plan a change, unless it would overwrite a change by the person that the chat has not seen."""
    path, data, event = change.path, change.data, change.event
    new = placeholders.text_of(path, data)
    assert isinstance(order.operation, FileOperation), "it changes a file"
    placeholders.check_values(context.secrecy.vault, order.operation, order.names, new)
    known = _stale_digest(context, change)
    if order.foreign != "no" and change.seen is not None and data is not None:
        # It was packed along, as it is, or as the chat was shown it.
        is_same = data == change.seen.data
        if is_same or (known is not None and digest_of(data) == known):
            note = results.THERE_ALREADY if is_same else _NOT_CHANGED
            return events.FileCreated(path, len(change.seen.data), replaced=True, notes=(note,))
    if known is not None:
        if (refused := _refusal(context, order, change, known)) is not None:
            return refused
        event = replace(event, notes=(*event.notes, plain_text.Note(_UNSEEN, _READ_FIRST)))
    after = None if data is None else digest_of(data)
    old = deleted if change.seen is None else change.seen.data
    # A link may have a harmless name.
    real = placeholders.real(context, path)
    place = real if context.secrecy.vault.is_secret_file(real) else path
    texts = placeholders.Texts(place, placeholders.text_of(path, old), new)
    leaks, notes = placeholders.leaks(context, order.names, texts)
    notes, facts = plain_text.parted((*event.notes, *notes))
    event = replace(event, notes=notes, facts=facts)

    def act() -> events.Event:
        if data is None:
            context.workspace.delete(path)
            return event
        context.workspace.write(path, data, change.seen)
        if old is not None and isinstance(event, events.FileCreated):
            context.secrecy.hide_bytes(old, path)  # its values are known from here on
        if order.names:
            context.secrecy.vault.know(placeholders.text_of(place, data) or "", place)
        if context.person.sees_changes:
            context.person.show(FileChanged(path, old, data))
        return event

    plan = Plan(
        path,
        (change.before or "", after or "", *(why for each in leaks for why in each.reasons)),
        change.as_diff,
        act,
        (*_doubts(context, order, change), *leaks),
        event=event,
        is_unseen=known is not None,
        edited=None if change.seen is None or data is None else (change.seen.data, data, change.seen.mode),
    )
    return _judged(context, order, plan, {path: (change.before, after)}, len(data or b""))


def _judged(
    context: Context,
    order: OperationRequest,
    plan: Plan,
    digests: Mapping[str, tuple[str | None, str | None]],
    size_bytes: int,
) -> Plan | events.Event:
    """Return a plan with its changes and what needs approval, or the denial; `digests`: before and after."""
    assert plan.event is not None, "it changes files"
    asked, changes = list(plan.asked), list[ContentChange]()
    asks = context.policy.filesystem.approval_required
    for effect in plan.event.changes:
        # A path may lead through links to a protected file.
        real = context.workspace.resolved(effect.path, follow_last=effect.follows)
        verdict = judge_change(context.policy, effect.after, real, size_bytes)
        if isinstance(verdict, Deny):
            return order.denied(effect.path, verdict)
        if asks and verdict == Allow() and gives_git_programs(real, context.workspace.root):
            verdict = ask_for_change(real, "git runs what a repository here names")
        before, after = digests[effect.path]
        if asks and before not in (None, after) and context.checkpointer.is_uncovered(real):
            shown = paths.shown(real)
            reason = (
                f"undo does not cover '{shown}': there is no checkpoint of it, or too much of what git"
                " ignores, or is large, is kept already"
            )
            asked.append(Ask(("undo.uncovered",), (reason,), (f"replacing '{shown}' without undo",)))
        if isinstance(verdict, Ask):
            asked.append(verdict)
        changes.append(ContentChange(effect.path, before, after, "" if real == effect.path else real))
    return replace(plan, asked=tuple(asked), changes=tuple(changes))


def _doubts(context: Context, order: OperationRequest, change: _Change) -> Iterator[Ask]:
    """Yield what needs approval whatever the policy says about the path."""
    path, seen, data, chat = paths.shown(change.path), change.seen, change.data, context.chat
    is_replaced = seen is not None and isinstance(change.event, events.FileCreated)
    if is_replaced and chat is not None and change.path in chat.shown_in_part - chat.known.keys():
        reason = f"the model saw only a part of '{path}', and replaces all of it"
        yield Ask(("context.part",), (reason,), (f"'{path}' may be replaced unseen",))
    if order.foreign == "no" or (seen is not None and data == seen.data):
        return
    if is_replaced and chat is not None and change.path not in chat.shown_in_part | chat.known.keys():
        reason = f"the chat was never shown '{path}', and replaces all of it"
        yield Ask(("format.unseen",), (reason,), (f"'{path}' may be replaced unseen",))
    if isinstance(order.operation, CreateFile) and isinstance(order.operation.content, bytes):
        reason = f"'{path}' is no text, and has {len(order.operation.content):,} bytes"
        yield Ask(("format.binary",), (reason,), ("files of an answer that are no text",))
    if order.foreign == "asked":
        yield _FOREIGN
    old, new = 0 if seen is None else len(seen.data), len(data or b"")
    if data is not None and new * 2 < old:
        reason = f"the file would shrink from {old} to {new} bytes"
        yield Ask(("format.shrinks",), (reason,), (f"'{path}' may shrink to less than half",))


def _data_at(context: Context, path: str) -> bytes | None:
    """Return the bytes of a file that goes away here, if they may have secrets; of a link none goes."""
    workspace = context.workspace
    is_link = placeholders.real(context, path) != workspace.resolved(path, follow_last=False)
    if is_link or not context.secrecy.vault.hides:
        return None
    return workspace.read(path, whole=False).data


# --- what the person changed -----------------------------------------------------------------------
def _stale_digest(context: Context, change: _Change) -> str | None:
    """Return the digest of a file as the chat knows it, if the person has changed it since."""
    chat = context.chat
    if chat is None or change.seen is None or change.data == change.seen.data:
        return None
    # Most files are unchanged: search the journal only for the others.
    if chat.known.get(change.path) in (None, change.before):
        return None
    known = chat.digest_known(change.path)
    return None if known == change.before or chat.is_ours(change.seen.state[3]) else known


def _refusal(context: Context, order: OperationRequest, change: _Change, known: str) -> events.Refused | None:
    """Return why a change would take back the person's; None if it is elsewhere in the file."""
    texts, path, hide = context.texts, change.path, context.secrecy.hide
    assert texts is not None, "a chat knows the file"
    old = "" if known == "" else texts.read(known)
    decoded = None if change.seen is None else context.workspace.text(path, change.seen.data)
    present = None if decoded is None else decoded.text
    # As requests show it: a text that was kept is without its secrets.
    if present is not None:
        present = hide(notebooks.shown(path, present).replace("\r\n", "\n"), path)
    old = None if old is None else hide(old, path)
    operation = order.operation
    if isinstance(operation, EditFile):
        if not (ranges := operation.ranges):
            return None  # what it replaces is there, as the chat saw it
        lines = slice(min(r.start_line for r in ranges) - 1, max(r.end_line for r in ranges))
        both = [each.split("\n")[lines] for each in (old, present) if each is not None]
        if len(both) == 2 and both[0] == both[1]:
            return None
    detail = ""
    if context.may_read(path) and old is not None and present is not None:
        detail = diff.text_of(path, old.encode(), present.encode(errors="replace"))
    advice = (
        f". {'That change and the whole file are' if detail else 'The whole file is'} shown in this request:"
        " keep the user's change, or drop it on purpose, and send"
        f" {'these lines' if isinstance(operation, EditFile) else 'it'} again"
    )
    assert change.before is not None, "the file is there"
    fact = _UNDOES.format(path)
    return events.Refused(order.kind, fact, detail, path, digest=change.before, advice=advice)


# --- texts -----------------------------------------------------------------------------------------
def _check_reading(
    order: OperationRequest, operation: CreateFile | EditFile, old: str | None, new: str
) -> tuple[str, ...]:
    """Refuse a change that makes a file unparsable; return notes."""
    later, is_json = order.later, bool(order.id)
    if later is not None and old is not None:
        answer_checks.check_left_out(operation, old, new, is_json=is_json)
    notes = () if new.isascii() else answer_checks.turned(operation.path, old or "", new)
    if later is None:
        return notes
    return notes + answer_checks.check_reading(operation, old, new, later(), is_json=is_json)


def _fault_of_new(
    context: Context, order: OperationRequest, operation: CreateFile | EditFile, text: str, *, is_new: bool
) -> tuple[str, tuple[str, ...]]:
    """Return why a program that the session made can't be parsed, and a note; empty if it ever could."""
    is_made = is_new or (context.chat is not None and operation.path in context.chat.unparsed)
    if not is_made or order.later is None or operation.unchecked:
        return "", ()
    broken = syntax_check.fault_in(operation.path, text)
    return broken, (plain_text.Note(f"it can't be parsed, {broken}", _CORRECT),) if broken else ()


def _as_meant(operation: CreateFile, old: str | None) -> tuple[CreateFile, tuple[str, ...]]:
    """Return a whole file without certain damage, and notes about repairs; refuse one with a placeholder."""
    content, path, notes = operation.content, operation.path, tuple[str, ...]()
    if isinstance(content, bytes):
        return operation, ()
    if operation.arrival is not None:
        body = body_rules.mend_file(content, path, operation.arrival, old)
        content, notes = body.text, body.notes
    elision = "" if old is None or operation.unchecked else elisions.elision_in(content, old, path)
    if elision:
        fact = f"'{plain_text.one_line(elision, 60)}' would replace lines of '{path}'. Nothing was changed"
        raise OperationError(fact, advice="; send all of its lines, or use EDIT_FILE")
    if notebooks.is_shown(path, content):
        content = notebooks.replaced(path, content, old)
    return replace(operation, content=content), notes


def _bytes_of(
    context: Context, order: OperationRequest, operation: CreateFile, old: encoding.FileText | None
) -> tuple[bytes, str, tuple[str, ...]]:
    """Return a file's bytes and text, and notes if its encoding changes, or its line ends were chosen."""
    if isinstance(operation.content, bytes):
        found = encoding.decode_file(operation.content)
        return operation.content, "" if found is None else found.text, ()
    text, path, notes = operation.content, operation.path, tuple[str, ...]()
    is_crlf = operation.line_end == "crlf"
    if operation.line_end is None and old is not None and "\n" in old.text:
        is_crlf = old.text.count("\r\n") == old.text.count("\n")
    elif operation.line_end is None and order.later is not None and not order.id:  # a chat's, in tags
        end, source = context.workspace.line_end(path)
        if is_crlf := end == "crlf":
            notes = (f"its lines end in \\r\\n, as {source}",)
        elif source and not end:
            notes = (f'its lines end in \\n, and {source} have \\r\\n; eol="crlf" writes that',)
    if is_crlf:
        text = text.replace("\n", "\r\n")
    try:
        data, note = encoding.encode_whole(text, old)
    except OperationError as fault:
        raise fault.but(f"'{path}': {fault.fact}") from fault
    return data, text, (*notes, note) if note else notes
