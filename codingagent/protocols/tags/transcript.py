"""Find the answer to the request that waits in a whole conversation that was pasted.

How it works. Requests of ours are found by their headings and their last line, answers by their
`[REPLY …]` line. Of the answers to the awaited request the last one is kept, up to its `[END]` or to where
the next turn begins; all else is blanked, so that lines keep their numbers. Nothing within a request ever
counts, whatever its file contents look like: where a request's end is in doubt, the text stays as it is,
and a text with a request in it is never executed.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from codingagent.errors import UsageError
from codingagent.model import commands
from codingagent.model.patterns import lazy_pattern
from codingagent.prompt import guide
from codingagent.protocols.tags import continuation, reply, scanner
from codingagent.protocols.tags.repair import PERSON

# What a chat puts before a line of an answer: a quote mark, emphasis, an escape.
_BEFORE = r"^[ \t>*_`\\]{0,12}"
_REPLY = lazy_pattern(rf"{_BEFORE}\[[*_`\\]*REPLY\b[^\n]*", re.MULTILINE)
_END = lazy_pattern(rf"{_BEFORE}\[[*_`\\]*END[*_`\\]*\][ \t*_`]*$", re.MULTILINE)
_VALUE = lazy_pattern(r"\b(session|sequence)\s*=\s*(?:&quot;|[\\\"'“”„«»])*([0-9A-Za-z]+)")

_HEADER = lazy_pattern(
    r"^=== HEADER ===[ \t]*\n\s*Session:[ \t]*(\S+)[ \t]*\n\s*Sequence:[ \t]*(\d{1,9})[ \t]*$", re.MULTILINE
)
_ANY_HEADING = lazy_pattern(r"={3}\W{1,9}(?:HEADER|PROTOCOL)\W{1,9}={3}")
_CONTENTS = lazy_pattern(
    r"^--- .* \((?:(\d+) lines|lines (\d+)-(\d+) of \d+)\b.*\) ---$|^=== PROMPT ===[ \t]*$", re.MULTILINE
)
_TAG = lazy_pattern(rf"^[ \t>*_`\\]*\[(?:{'|'.join(commands.HAS_BODY)})\b", re.MULTILINE)
# What an export in JSON begins with, and has: it has no line of ours, for each of its strings is on one line.
_EXPORT = lazy_pattern(
    r"\s*(?:(?:`{3,}|~{3,})[^\n`]*\n\s*)?"
    r'(?:data: ?)?(?:\{(?!\s*"(?:protocolVersion|operations)")|\[\s*[\[{])'
)
_WRITER = lazy_pattern(
    r'"(?:role|sender|from)"\s*:\s*"(?:assistant|model|user|human|system|gpt|ai|bot)"|\[REPLY\b'
)
_LINE_OF_OURS = lazy_pattern(r"^[ \t]*\[/?[A-Z]+(?:_[A-Z]+)?\b", re.MULTILINE)
# A conversation has a handful of answers to one request; looking at each costs a pass over the text.
_ANSWERS_LIMIT = 12
# More than that is not put before the word of a tag.
_BEFORE_LIMIT = 40


# A `[REPLY …]` line outside of all requests: where it begins, and the request that it names.
_ReplyLine = tuple[int, reply.Header]


class _Request(NamedTuple):
    """A request of ours: whose it is, and from where to where it reaches."""

    session: str
    sequence: int
    start: int
    end: int


def last_header(text: str) -> reply.Header | None:
    """Return the request that the last answer in a text names; None if none names one."""
    requests = _requests(text)
    said = () if requests is None else tuple(_said(text, requests))
    return said[-1][1] if said else None


def check_export(text: str) -> None:
    """Refuse, with a UsageError, what a chat or an API writes as JSON: a conversation, a response."""
    if _EXPORT.match(text) and _WRITER.search(text) and not _LINE_OF_OURS.search(text):
        raise UsageError("it is a chat's export in JSON: copy the answer itself, from [REPLY …] to [END]")


def answer_in(text: str, session_id: str, sequence: int) -> tuple[str, str]:
    """Return a pasted text in which only the answer to the waiting request is left, and a note on that.

    A text that is no more than one answer is returned as it is, without a note. Its lines end in "\n".
    """
    requests = _requests(text)
    if requests is None:
        return text, ""
    said = tuple(_said(text, requests))
    awaited = (session_id, sequence)
    ours = [start for start, header in said if header == reply.Header(*awaited)]
    if not ours and requests and (requests[-1].session, requests[-1].sequence) == awaited:
        # Below the request nothing says what it answers: then it can only be an answer to that.
        below = requests[-1].end
        is_named = any(start > below for start, _ in said)
        ours = [below] if not is_named and _TAG.search(text, below) else []
    if not ours or len(ours) > _ANSWERS_LIMIT or _is_one_answer(text, said, requests):
        return text, ""
    turns = sorted([*(start for start, _ in said), *(each.start for each in requests)])
    start, end = _last_answer(text, ours, turns)
    earlier = scanner.scan_lines(text[max((at for at in ours if at < start), default=start) : start]).blocks
    later = scanner.scan_lines(text[start:end]).blocks
    if earlier and later and not earlier[-1].closed and continuation.is_rest(earlier[-1], later[0]):
        return text, ""
    has_others = any(turn < start or turn >= end for turn in turns)
    if not has_others and not _TAG.search(text, 0, start) and not _TAG.search(text, end):
        return text, ""
    first, last = text.count("\n", 0, start) + 1, text.count("\n", 0, end) + 1
    note = (
        f"a conversation was pasted: only the last answer to request {sequence} in it was taken"
        f" (lines {first} to {last})"
    )
    before, after = ("\n" * part.count("\n") for part in (text[:start], text[end:]))
    return before + text[start:end] + after, note


def _is_one_answer(text: str, said: tuple[_ReplyLine, ...], requests: tuple[_Request, ...]) -> bool:
    """Return whether a text is plainly one answer, though its files may hold requests."""
    if len(said) != 1 or _TAG.search(text, 0, said[0][0]):
        return False
    is_ended = text.endswith(("[END]", "[END]\n", "[END]\n```\n", "[END]\n````\n"))
    if not is_ended and PERSON.search(text, said[0][0]):
        return False
    return not requests or not scanner.scan_lines(text).has_outbox


def _requests(text: str) -> tuple[_Request, ...] | None:
    """Return the requests in a text, in order; None if the end of one is not certain."""
    found: list[_Request] = []
    at = 0 if "HEADER" in text or "PROTOCOL" in text else len(text)
    while (heading := _ANY_HEADING.search(text, at)) is not None:
        line = text.rfind("\n", 0, heading.start()) + 1
        header = _HEADER.match(text, line)
        if header is None:
            return None
        session, sequence = header[1], int(header[2])
        prompt = _prompt(text, header.end())
        if prompt < 0:
            return None
        # Its last line, letter by letter; of several the last one.
        lines = [guide.reminder(session, sequence, is_asking=asks).strip() for asks in (False, True)]
        start, length = max((text.rfind(f"\n{said}", prompt), len(said)) for said in lines)
        if start < 0:
            return None
        last = start + length + 1
        found.append(_Request(session, sequence, line, last))
        at = last
    return tuple(found)


def _prompt(text: str, at: int) -> int:
    """Return where PROMPT begins, past file contents: those that look like headings are counted."""
    while (found := _CONTENTS.search(text, at)) is not None:
        if found.group().startswith("==="):
            return found.end()
        count = int(found[1] or 0) if found[1] else int(found[3]) - int(found[2]) + 1
        at = found.end() + 1
        for _ in range(count):
            at = text.find("\n", at) + 1
            if not at:
                return -1
        if not text.startswith("--- end ", at):
            return -1
    return -1


def _said(text: str, requests: tuple[_Request, ...]) -> Iterator[_ReplyLine]:
    at = 0
    # The word is looked for first: an answer has ten megabytes of lines that begin otherwise.
    while (at := text.find("REPLY", at)) >= 0:
        line = text.rfind("\n", max(at - _BEFORE_LIMIT, 0), at) + 1
        begins = bool(line) or at <= _BEFORE_LIMIT
        at += len("REPLY")
        found = _REPLY.match(text, line) if begins else None
        if found is None or found.end() < at:
            continue
        at = found.end()
        index = bisect_right(requests, found.start(), key=lambda request: request.start) - 1
        if index < 0 or found.start() >= requests[index].end:
            yield found.start(), reply.header_of(dict(_VALUE.findall(found.group())))


def _last_answer(text: str, starts: list[int], turns: list[int]) -> tuple[int, int]:
    """Return from where to where the last of several answers reaches that says anything."""
    found: list[tuple[int, int]] = []
    scan = scanner.scan_lines("")
    for start in starts:
        # A line within a block may be that block's body, if the block is about these very tags.
        if found and _is_body(scan, start - found[-1][0], names_awaited=True):
            continue
        scan = scanner.scan_lines(text[start:])
        found.append((start, _end_of(text, start, scan, turns)))
    bare = (_END.sub("", _REPLY.sub("", text[start:end], count=1)) for start, end in found)
    telling = [each for each, rest in zip(found, bare, strict=True) if rest.strip()]
    return (telling or found)[-1]


def _is_body(scan: scanner.Scan, offset: int, *, names_awaited: bool = False) -> bool:
    """Return whether a line is in a block's body.

    In a block that took its end from a later turn it does not. A line that begins the awaited answer is a
    body's only where that is certain: the block says its own end, or holds other blocks, each closed.
    """
    at = bisect_right(scan.blocks, offset, key=lambda block: block.start) - 1
    if at < 0 or offset >= scan.blocks[at].end or not scan.blocks[at].closed:
        return False
    block = scan.blocks[at]
    if "until" in dict(block.attributes):
        return True
    return not names_awaited if block.inner is None else block.inner.closed


def _end_of(text: str, start: int, scan: scanner.Scan, turns: list[int]) -> int:
    """Return where an answer ends: after its [END], or where the next turn begins."""

    def first(places: Iterable[int]) -> int:
        return next((at for at in places if not _is_body(scan, at - start)), len(text))

    turn = first(turns[bisect_right(turns, start) :])
    end = min(turn, first(found.end() for found in _END.finditer(text, start)))
    if end not in (turn, len(text)):
        return end
    # A label is only a word of the chat's: it counts where nothing else tells the end.
    return min(end, first(found.start() for found in PERSON.finditer(text, start, end)))
