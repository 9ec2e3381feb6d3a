"""Read an answer as the agent takes it: operations and problems in order, and notes on the rest.

Over 500 lines: what an answer says, whatever it lacks: blocks, an end, or a single command.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from codingagent.editing import body_rules, file_kinds, syntax_check
from codingagent.errors import OperationError
from codingagent.model import chat_damage, commands, paths, plain_text, results, session_state
from codingagent.model.chat_damage import BodyEvidence
from codingagent.model.operations import (
    AT_ONCE,
    CreateFile,
    DeleteFile,
    EditFile,
    FetchFile,
    Finish,
    Kind,
    LineRange,
    ListFolder,
    MoveFile,
    Operation,
    ReadFile,
    RunCommand,
    ShowMessage,
)
from codingagent.model.patterns import lazy_pattern
from codingagent.protocols.tags import continuation, decoder, repair, scanner
from codingagent.protocols.tags.block_repair import RepairedAnswer
from codingagent.protocols.tags.continuation import SecondHalf

NO_BLOCK = (
    "The answer has no operations, so nothing was done",
    ". Write operations at the start of a line, for example:",
)
CUT = "the answer has no [END], so it may be cut off"
# One block, and none that would end the task where it is copied.
NO_BLOCK_EXAMPLE = commands.BY_TAG["READ_FILE"].example
_UNUSED_LIMIT = 20
# A program wrote so many edits of one file. Each by itself would cost several looks at all of it.
_EDITS_IN_A_ROW = 100
_AS_ONE = "{} EDIT_FILE in a row for this file were applied as one: all of them, or none"

# Our own words, which a model that goes on by itself writes after its commands.
_RESULTS = lazy_pattern(
    r"^[ \t>*_`\-+0-9.]*(?:\\?\[(?:OK|FAILED)\\?\][*_` ]*(?:"
    + "|".join(name.replace("_", r"\\?_") for name in commands.BY_TAG)
    + r")[*_`]*:|=== (?:CONTEXT|PROMPT) ===[ \t]*$|#+ Previous Command Results[ \t]*$)",
    re.MULTILINE,
)
_OTHER_FORMAT = lazy_pattern(
    r"^[ \t]*(?:`{3,}|~{3,}|<|&(?:lt|#)|\\[<-]|-{3,}[ \t]*\S|diff --git |\*\*\* |@@|Index: "
    r"|(?:#|\*\*).*\b(?:delete|remove|rename|move)d?\b)|\b(?:delete|remove|rename|move)d?[ \t]+files?\b",
    re.MULTILINE | re.IGNORECASE,
)
# A fence with nothing in it but blocks, as the guide asks for.
_EMPTY_FENCE = lazy_pattern(
    r"^[ \t]*(`{3,}|~{3,})[^\n`]*\n(?:[ \t]*(?:\[(?:REPLY|END)\b[^\n]*)?\n)*[ \t]*\1[`~]*[ \t]*$",
    re.MULTILINE,
)
# A tag that no reading found: behind a line number, joined to its body. Prose names no attribute, and the
# closing tag of a command without a body is nothing.
_ANY_TAG = "|".join(commands.HAS_BODY).replace("_", r"\\?_")
_TAG_OF_BODY = "|".join(tag for tag, has in commands.HAS_BODY.items() if has).replace("_", r"\\?_")
_ATTEMPT = lazy_pattern(
    r"^[^\w\n\[]{0,9}(?:\d{1,6}[^\w\n\[]{0,3})?"
    rf"\[[^\w\n/]{{0,3}}(?:/[^\w\n]{{0,3}}(?:{_TAG_OF_BODY})[^\w\n]{{0,3}}\]"
    rf"|(?:{_ANY_TAG})[^\w\n]{{0,3}}[ \t]+\w+[ \t]*=)"
    # The end of a block whose lines a page has joined.
    rf"|(?<=[^\s\\])\[/(?:{_TAG_OF_BODY})\][ \t]*$",
    re.MULTILINE,
)
_BELOW = lazy_pattern(r"\n?(\s*)([^\n]*)")
_INVENTED = (
    "Not accepted: before it the answer shows results that this program did not write",
    ". Look at the real ones, then send DONE again (line {} of the answer)",
)
_LEFT = "Not accepted, because this was not executed: {}", "; send it, and DONE as the last block"
_DONE_OPEN = ("Not accepted: it has no closing tag", ": if all else succeeded, send it again with [/DONE]")


BLOCK_LINE = "\0"
"""Replaces a block's first line in the text beside it; its other lines are empty."""

ForeignConsent = Literal["no", "asked", "accepted"]
"""Whether it came in another format than ours: then it needs a yes, or got one beforehand."""


class Step(Struct, frozen=True):
    """An operation, its 1-based line, and notes on how it was read."""

    operation: Operation
    line: int
    notes: tuple[str, ...] = ()
    id: str = ""
    """Its name in the answer itself; empty: none."""
    foreign: ForeignConsent = "no"
    names: tuple[str, ...] = ()
    """The names of secrets whose values it holds now."""

    @property
    def kind(self) -> Kind:
        return self.operation.kind


class Problem(Struct, frozen=True):
    """A part of an answer that is not an operation: the fault, and what to write instead."""

    kind: Kind
    fact: str
    line: int
    detail: str = ""
    notes: tuple[str, ...] = ()
    id: str = ""
    subject: str = ""
    """The path or the command, as far as it is known."""
    advice: str = ""
    """As in OperationError."""

    @property
    def reason(self) -> str:
        return self.fact + self.advice


class Header(Struct, frozen=True):
    """The request that an answer names; either part may be missing."""

    session: str | None
    sequence: int | None


class Reply(Struct, frozen=True):
    """The text of one inbox file, read."""

    items: tuple[Step | Problem, ...]
    header: Header | None
    has_outbox: bool
    """A request of ours is in it, whose examples must not be executed."""
    notes: tuple[str, ...]
    is_bare: bool = False
    """No block of ours was found in it."""
    cut: str = ""
    """The text of its last block, if the answer was cut short in it; or only its opening tag."""
    is_joined: bool = False
    """It went on with a block that had been cut short."""
    files: tuple[str, ...] = ()
    """The names that there were when paths in another format were made out; they must stay the same."""
    beside: str = ""
    """Its text with `BLOCK_LINE` in the place of each block, if that looks like edits in another format."""


def read(text: str) -> Reply:
    """Read an answer. Never raises: what can't be read is a problem among the items.

    The items are in the answer's order. Blocks after DONE or [END] are only named, and DONE does not count.
    """
    mended = repair.read(text)
    found = mended.scan
    header = None if found.header is None else header_of(found.header)
    if (count := len(found.blocks)) > AT_ONCE:
        fact = f"The answer has {count:,} operations; at most {AT_ONCE:,} are executed, so nothing was done"
        many = Problem(Kind.ANSWER, fact, 1, advice=": send several answers")
        return Reply((many,), header, found.has_outbox, ())
    items: list[Step | Problem] = []
    unused: list[str] = []
    done, cut = False, ""
    invented = _invented(mended)
    is_whole = all(block.closed for block in found.blocks)
    last_act = max((block.start for block in found.blocks if block.name != "DONE"), default=0)
    for block in found.blocks:
        if done or block.behind_end:
            unused.append(f"{block.name} at line {block.line}")
            continue
        item = _read_block(block, mended, is_whole=is_whole)
        if not cut and block.start >= last_act:
            is_last = block is found.blocks[-1] and not found.ended
            cut = continuation.cut_of(mended, block, is_last=is_last)
        if cut:
            if block.name != "DONE":
                item = _refused(Kind(block.name), continuation.refusal(cut, block), block.line)
        elif invented is not None and invented[0] < block.start and finishes(item):
            item = Problem(Kind.DONE, _INVENTED[0], block.line, advice=_INVENTED[1].format(invented[1]))
        items.append(item)
        done = finishes(item)
    replaced = list(_replaced(items, mended))
    missed = list(_missed(mended)) if found.blocks else []
    late = (problem.fact for problem in missed if items and problem.line > items[-1].line)
    left = [*found.unread, *replaced, *late, *(name for name in unused if not name.startswith("DONE "))]
    if left and items and finishes(items[-1]):
        fact = _LEFT[0].format(plain_text.some(left, _UNUSED_LIMIT))
        items[-1] = Problem(Kind.DONE, fact, items[-1].line, advice=_LEFT[1])
        unused = []
    if not found.blocks:
        items.append(Problem(Kind.ANSWER, NO_BLOCK[0], 1, detail=NO_BLOCK_EXAMPLE, advice=NO_BLOCK[1]))
    items = sorted([*items, *missed], key=lambda item: item.line)
    notes = [*mended.notes, *found.notes, *replaced]
    if unused:
        last = "DONE" if done else "[END]"
        notes.append(f"not executed, because it comes after {last}: {plain_text.some(unused, _UNUSED_LIMIT)}")
    if invented is not None:
        notes.append(
            f"line {invented[1]} of the answer imitates results; only this program writes them, so that"
            " text was ignored"
        )
    if found.header is not None and not found.ended and not done and not cut:
        notes.append(plain_text.Note(f"{CUT}: complete blocks were executed", "; send only the missing part"))
    is_bare = not found.blocks
    if not (is_bare or found.ended or done):
        cut = cut or continuation.opening_of(mended.text, found.blocks[-1])
    beside = "" if is_bare else _beside(mended)
    return Reply(tuple(items), header, found.has_outbox, tuple(notes), is_bare, cut, beside=beside)


# Whether a file is an answer is known once it is read, and then it is read as one.
read_again = lru_cache(maxsize=1)(read)


def _beside(mended: RepairedAnswer) -> str:
    """Return the text around the blocks, line by line, if it holds what other formats begin with."""
    text = mended.text
    around = "\n".join(text[start:end] for start, end in mended.scan.around)
    if not _OTHER_FORMAT.search(_EMPTY_FENCE.sub("", around)):
        return ""
    parts: list[str] = []
    at = 0
    for start, end in scanner.gaps(mended.scan.blocks, len(text)):
        if start > at:
            parts.append(BLOCK_LINE + "\n" * text.count("\n", at, start))
        parts.append(text[start:end])
        at = end
    return "".join(parts)


def with_joined_edits(
    items: Iterable[Step | Problem], file_of: Callable[[str], str]
) -> Iterator[Step | Problem]:
    """Yield items, a hundred or more edits of one file as one, in the place of the first of them.

    Between them are only edits of others and what neither changes files nor looks at them before the next
    request. Edits of one file, which `file_of` a path tells, are never put in another order.
    """
    run: list[Step | Problem] = []
    for item in items:
        run.append(item)
        if isinstance(item, Step) and not isinstance(item.operation, EditFile | ReadFile | ShowMessage):
            yield from _joined(run, file_of)
            run.clear()
    yield from _joined(run, file_of)


def _joined(run: Sequence[Step | Problem], file_of: Callable[[str], str]) -> Iterator[Step | Problem]:
    if len(run) < _EDITS_IN_A_ROW:
        yield from run
        return
    of_file: dict[str, list[Step]] = {}
    row_of: dict[int, list[Step]] = {}
    for at, item in enumerate(run):
        if not (isinstance(item, Step) and isinstance(item.operation, EditFile)):
            continue
        row = of_file.get(name := file_of(item.operation.path))
        if row is None or _target_of(row[0]) is None or _target_of(row[0]) != _target_of(item):
            row = of_file[name] = []
        row.append(item)
        row_of[at] = row
    for at, item in enumerate(run):
        row = row_of.get(at, [])
        if len(row) < _EDITS_IN_A_ROW:
            yield item
        elif item is row[0]:
            yield _as_one(row)


def _as_one(row: Sequence[Step]) -> Step:
    edits = [each.operation for each in row if isinstance(each.operation, EditFile)]
    parts = tuple(part for edit in edits for part in edit.parts)
    names = dict.fromkeys(name for each in row for name in each.names)
    notes = dict.fromkeys(note for each in row for note in each.notes)
    edit = replace(edits[0], change=parts)
    return replace(row[0], operation=edit, names=(*names,), notes=(*notes, _AS_ONE.format(len(row))))


def _target_of(step: Step) -> tuple[EditFile, BodyEvidence | None, ForeignConsent] | None:
    """Return what edits by lines share that may be joined; None: it is none of them."""
    edit = step.operation
    if isinstance(edit, EditFile) and edit.parts and not step.id:
        return replace(edit, change=()), edit.arrival, step.foreign
    return None


def finishes(item: Step | Problem) -> bool:
    return isinstance(item, Step) and isinstance(item.operation, Finish)


def _invented(mended: RepairedAnswer) -> tuple[int, int] | None:
    """Return where an answer writes results itself, outside of all blocks: the offset, and the line."""
    for start, end in mended.scan.around:
        if (found := _RESULTS.search(mended.text, start, end)) is not None:
            return found.start(), mended.text.count("\n", 0, found.start()) + 1
    return None


def _replaced(items: Iterable[Step | Problem], mended: RepairedAnswer) -> Iterator[str]:
    """Yield what another block of the same answer replaces: perhaps the person was to choose."""
    has_options = any(repair.OPTION.search(mended.text, *part) for part in mended.scan.around)
    written: dict[str, tuple[int, str]] = {}
    for item in items:
        match item.operation if isinstance(item, Step) else None:
            case CreateFile(path=path, content=str() as text):
                name = paths.shown(path)
            case EditFile(path=path, change=LineRange(first, last, text)):
                name = f"{paths.shown(path)}, lines {first}-{last},"
            case RunCommand() | DeleteFile() | MoveFile() if not has_options:
                written.clear()  # it may have used the first one
                continue
            case _:
                continue
        line, before = written.get(name, (0, text))
        if before != text and not syntax_check.fault_in(path, before):
            yield f"line {line}: of two versions of {name} the last was used"
        written[name] = item.line, text


def _missed(mended: RepairedAnswer) -> Iterator[Problem]:
    """Yield a problem for what was meant as a block and is none: an unread tag, an empty box of code."""
    text, around = mended.text, mended.scan.around
    said: list[tuple[int, str]] = []
    for start, end in around:
        # Whatever nobody sees, and brackets of another width.
        part = chat_damage.with_ascii_brackets(chat_damage.without_zero_width(text[start:end]))
        for tag in islice(_ATTEMPT.finditer(part), _UNUSED_LIMIT):
            line = text.count("\n", 0, start) + part.count("\n", 0, tag.start()) + 1
            said.append((line, f"{paths.shown(tag[0].lstrip()[:40])} was read as prose"))
    labels = [found for part in around for found in body_rules.LABEL.finditer(text, *part)]
    empty = "a code block of the chat is empty here"
    said += ((text.count("\n", 0, at) + 1, empty) for at in _empty_boxes(text, labels))
    for line, fact in said[:_UNUSED_LIMIT]:
        advice = "; send the block that belongs here, each tag at the start of a line"
        yield Problem(Kind.ANSWER, f"line {line}: {fact}", line, advice=advice)


def _empty_boxes(text: str, labels: Iterable[re.Match[str]]) -> list[int]:
    """Return where a label of a code box has no code below it: the chat shows it folded."""
    empty, has_code = list[tuple[int, bool]](), False
    for label in labels:
        above = text[max(label.start() - 200, 0) : label.start()].rstrip().rpartition("\n")[2]
        below = _BELOW.match(text, label.end())
        if below is None or body_rules.LABEL.match(below[2]) or above.lstrip().startswith("[/"):
            continue  # another label follows, or it stands below its box
        is_ours = below[2].startswith(("[", "`"))
        has_code |= is_ours
        is_sure = not below[2] or continuation.is_sentence(below[2])
        if not is_ours and (below[1] or is_sure):
            empty.append((label.start(), is_sure))
    # Other code may stand below a label where none of the boxes has a block of ours.
    return [at for at, is_sure in empty if is_sure or has_code]


def objection(header: Header | None, session: session_state.Session, digest: str) -> str:
    """Return why an answer is not this session's next one, or nothing."""
    if header is not None and header.session not in (None, session.session_id):
        return f"it answers session {paths.shown(header.session)}, not {session.session_id}"
    sequence = None if header is None else header.sequence
    if sequence is not None and sequence < session.sequence:
        return f"it answers request {sequence}, but request {session.sequence} is waiting"
    if digest in (session.last_digest, *session.digests) and sequence != session.sequence:
        which = "the last" if digest == session.last_digest else "an earlier"
        return f"it is exactly {which} answer, which was executed already"
    return ""


def _read_block(block: scanner.Block, mended: RepairedAnswer, *, is_whole: bool) -> Step | Problem:
    if notes := mended.notes_of.get(block.line):
        block = block._replace(notes=(*notes, *block.notes))
    kind, line, closing = Kind(block.name), block.line, block.closing
    at = f" (line {line} of the answer)"
    if (doubt := mended.doubts.get(line)) or (kind is Kind.DONE and not block.closed):
        fact, advice = doubt or _DONE_OPEN
        return Problem(kind, fact, line, advice=advice + at)
    if not block.closed:
        fact = (
            f"{continuation.named(block)} at line {line} has no closing tag {closing}, so nothing of it"
            " was used"
        )
        advice = "; send only this block again, complete"
        beside = next((i for i, line in enumerate(block.body.split("\n")) if closing in line), None)
        if beside is not None:
            advice += f" (line {line + 1 + beside} has text next to the tag: it must be alone)"
        return Problem(kind, fact, line, advice=advice)
    if (inner := block.inner) is not None:
        path = dict(block.attributes).get("path")
        is_prose = kind in (Kind.MESSAGE, Kind.DONE) if path is None else file_kinds.is_prose(path)
        # In documentation whose end is certain, tags are examples.
        if not (is_whole and is_prose and inner.closed):
            fact = (
                f"{paths.shown(inner.text[:80])} opens at line {inner.line} of the answer, inside the block"
                f" of line {line}, so a {closing} may be missing before it: nothing of the block was used,"
                " nor of what is in it"
            )
            advice = (
                ". Send all of that again, each block with its closing tag; if the line is intended as text,"
                f' open the block with until="TOKEN" and close it with [/{block.name} TOKEN]'
            )
            return Problem(kind, fact, line, advice=advice)
    try:
        operation, told = decoder.decode(block, mended.evidence_of(block))
    except OperationError as fault:
        path = paths.shown(dict(block.attributes).get("path", "")[:300])
        return replace(_refused(kind, fault.but(advice=at), line), notes=block.notes, subject=path)
    return Step(operation, line, block.notes + told)


def _refused(kind: Kind, fault: OperationError, line: int) -> Problem:
    return Problem(kind, fault.fact, line, fault.detail, advice=fault.advice)


def header_of(values: Mapping[str, str]) -> Header:
    """Return the request that the values in a `[REPLY …]` line name."""
    sequence = values.get("sequence", "")
    number = int(sequence) if re.fullmatch(r"[0-9]{1,9}", sequence) else None
    return Header(values.get("session"), number)


def without_what_follows(reply: Reply, half: SecondHalf, cut: str) -> Reply:
    """Return an answer without a block whose first half does not fit, and without what may need it."""
    head, line, begins = half
    before = (i for i in reply.items if i.line < line and i.kind is not Kind.ANSWER)
    behind = [f"{item.kind} at line {item.line}" for item in reply.items if item.line > line]
    does, name = "opens it again" if begins else "ends it", continuation.named(head)
    reason = (
        f"{results.CUT_OFF} {name} before, and this answer {does} at line {line} without going on from"
        " where it stopped, so nothing of it was used"
    )
    again = f"; send {name} again from its start"
    if begins:
        again += ', with overwrite="true" if it starts in another way now'
    if behind:
        reason += f", and what follows it was not executed: {plain_text.some(behind, _UNUSED_LIMIT)}"
        again += ", and then those"
    items = (*before, Problem(Kind(head.name), reason, line, advice=again))
    notes = tuple(note for note in reply.notes if not note.startswith(f"line {line}: "))
    return replace(reply, items=items, notes=notes, is_bare=False, cut=cut, beside="")


def with_note(reply: Reply, note: str) -> Reply:
    return replace(reply, notes=(note, *reply.notes)) if note else reply


# --- an answer without any command -----------------------------------------------------------------
_OUR_LINES = lazy_pattern(r"^[ \t]*\[(?:REPLY\b[^\]\n]*|END)\][ \t]*$\n?", re.MULTILINE)
# Chats may escape or embolden them.
_ANSWER_LINES = lazy_pattern(
    r"^[ \t>*_`]*\\?\[/?(?:REPLY|END|MESSAGE|DONE|READ\\?_FILE)\b[^\n]*\][*_` \t]*$\n?", re.MULTILINE
)
_FENCED = lazy_pattern(r"(`{3,}|~{3,})\w*\n((?:(?!^\1).)*)^\1[ \t]*", re.DOTALL | re.MULTILINE)
# Their words are shown with the others.
_WORDS = (Kind.ANSWER, Kind.MESSAGE, Kind.DONE)
_NAMED, _SUBJECT = 5, 60
_NO_MESSAGE = (
    "The answer has no operations message, so nothing was done",
    ". Answer with one JSON object, for example:",
)
_JSON_EXAMPLE = '{"protocolVersion": "1.0", "operations": [{"type": "readFile", "path": "src/main.py"}]}'


def items_of_words(text: str, *, is_json: bool) -> tuple[Step | Problem, ...]:
    """Return the words of an answer as a message to the person, and the missing command as a problem."""
    words = _OUR_LINES.sub("", text).strip("\n")
    fact, advice = _NO_MESSAGE if is_json else NO_BLOCK
    example = _JSON_EXAMPLE if is_json else NO_BLOCK_EXAMPLE
    if not words.strip():
        return (Problem(Kind.ANSWER, fact, 1, example, advice=advice),)
    problem = Problem(Kind.ANSWER, fact, 1, example, advice=f", and the user was shown your words{advice}")
    return Step(ShowMessage(words), 1), problem


def answer_items(words: str, found: Iterable[Step | Problem]) -> tuple[Step | Problem, ...]:
    """Return the answer to a question: its words and what only reads; the rest is refused by name."""
    kept: list[Step | Problem] = [Step(ShowMessage(words), 1)] if words.strip() else []
    refused: list[str] = []
    for item in found:
        operation = item.operation if isinstance(item, Step) else None
        if isinstance(operation, ReadFile | FetchFile | ListFolder) or (
            operation is None and item.kind is Kind.READ_FILE
        ):
            kept.append(item)
        elif item.kind not in _WORDS:
            subject = getattr(operation, "path", "") or getattr(operation, "command", "")
            refused.append(" ".join(filter(None, (item.kind, plain_text.one_line(subject, _SUBJECT)))))
    if refused:
        fact = f"Not executed, because this was only a question: {plain_text.some(refused, _NAMED)}"
        kept.append(Problem(Kind.ANSWER, fact, 1))
    return tuple(kept) or (Problem(Kind.ANSWER, "The answer contains no words", 1),)


def words_of(text: str) -> str:
    """Return the words of an answer to a question, without our own lines and a fence around all of it."""
    words = _ANSWER_LINES.sub("", text).strip("\n")
    fence = _FENCED.fullmatch(words)
    return (words if fence is None else fence[2]).strip("\n")
