"""Repair the body of a block by the rules of `body_rules`, and read the markers of an edit.

Specification 003 says that a body is taken as written. A body that has `until` is taken letter by
letter: that is how to say that it is meant.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import Struct

from codingagent.editing import body_rules, edit_markers, file_kinds, file_lines
from codingagent.editing.body_rules import BodyCase, BodyRule
from codingagent.editing.characters import ReplacedLines
from codingagent.errors import OperationError
from codingagent.model import chat_damage, patterns, plain_text
from codingagent.model.chat_damage import ROWS, BodyEvidence, Channel, Damage, Rule

_MEANT = 'if it is intended, send it with until="TOKEN" and close it with [/{name} TOKEN]'
_THE_BODY = patterns.lazy_pattern(r"\b([Tt]he) body\b")
_QUOTES = {"&quot;": '"', "&#34;": '"', "&#39;": "'", "&#x27;": "'", "&apos;": "'"}
# A parameter of an address that has lost its name: `&lt=3` is read as an entity too.
_NAMELESS = patterns.lazy_pattern(r"://\S{1,500}?&(?:amp|lt|gt);=")
T = TypeVar("T")


class Body(Struct, frozen=True):
    """A body as it was meant, and what was undone in it."""

    text: str
    notes: tuple[str, ...] = ()


def mend_file(body: str, path: str, arrival: BodyEvidence, old: str | None = None) -> Body:
    """Return the text of a whole file, over `old`; refuse it if what it was can't be known."""
    lines = file_lines.FileLines(line.removesuffix("\r") for line in file_lines.split(old or ""))
    return mend_lines(body, ReplacedLines(path, lines, 0, len(lines)), arrival, "CREATE_FILE")


def mend_lines(  # what is told of a body, and to whom
    body: str,
    ground: ReplacedLines,
    arrival: BodyEvidence,
    name: str = "EDIT_FILE",
    called: str = r"\1 body",
    rules: Sequence[Rule[BodyRule]] = body_rules.RULES,
) -> Body:
    """Return the lines that replace others; a refusal is about the block `name`, its body `called` so."""
    lines = file_lines.split(body)
    case = BodyCase(lines, ground, arrival)
    try:
        case.apply(rules)
    except OperationError as fault:
        meant = "" if 'until="TOKEN"' in fault.advice else f"; {_MEANT.format(name=name)}"
        fact, advice = (_THE_BODY.sub(called, each) for each in (fault.fact, fault.advice + meant))
        raise OperationError(fact, fault.detail, advice=advice) from None
    notes = tuple(_THE_BODY.sub(called, note) for note in case.notes)
    if case.lines is lines:
        return Body(body, notes)
    text = plain_text.joined(case.lines)
    return Body(text if body.endswith("\n") else text.removesuffix("\n"), notes)


def mend_command(body: str, arrival: BodyEvidence) -> Body:
    """Return the shell lines of a command; refuse them if they are damaged: only what was meant is run."""
    how = arrival, "RUN_COMMAND", r"\1 command", body_rules.COMMAND_RULES
    return mend_lines(body, ReplacedLines("command.sh"), *how)


def check_letters(body: str, path: str, way: Channel, name: str) -> None:
    """Refuse a body with `until` that shows the same damage as the tags of its answer.

    Such a body is meant letter by letter, but these letters can no longer be known. In entities
    even markers of edits are damage: no file but markup holds them so.
    """
    if any(row.damage in way and row.trace.search(body) for row in ROWS) or (
        Damage.ANGLES in way and chat_damage.ENTITY.search(body)
    ):
        raise OperationError(
            "The chat damaged the tags of this answer, and the body has the same damage: nothing was done",
            advice="; send this block again in a code block",
        )
    if not file_kinds.is_markup(path) and chat_damage.has_encoded_marker(body):
        raise OperationError(
            f"The {name} body has SEARCH/REPLACE markers in HTML entities, which looks like damage by"
            " the chat: nothing was done",
            advice="; send this block again in a code block",
        )


def mend_replacements(body: str, read: Callable[[str], T]) -> tuple[T, tuple[str, ...]]:
    """Read the body of SEARCH/REPLACE blocks, its markers damaged or not; return what it says, and notes.

    Markers in entities show what became of all of the body. It is decoded as a whole then, once, and
    refused where not all of it came so. `read` raises OperationError for what can't be read.
    """
    try:
        return read(body), ()
    except OperationError:
        bare, notes = body_rules.without_fence(file_lines.split(body)), tuple[str, ...]()
        if bare is None and _with_markers(body) == body:
            raise
    if bare is not None:
        body, notes = plain_text.joined(bare), (body_rules.FENCE_NOTE,)
    if chat_damage.has_encoded_marker(body):
        # All of it went through one serializer of HTML: nothing in it was left out.
        rest = chat_damage.ENTITY.sub("", body)
        is_partly = any(name in body and quote in rest for name, quote in _QUOTES.items())
        if is_partly or any(c in rest for c in "<>&") or _NAMELESS.search(body):
            raise OperationError(
                "The markers of this edit came as HTML entities, and the lines between them only in part:"
                " nothing was done",
                advice="; send this block again in a code block",
            )
        body = chat_damage.without_entities(body)
        notes += (f"{Damage.ENTITIES.value} were undone in the body, as in its markers",)
    if (whole := _with_markers(body)) != body:
        notes += ("damaged SEARCH/REPLACE markers were read as such",)
    return read(whole), notes


def _with_markers(body: str) -> str:
    return "\n".join(edit_markers.marker_of(line) or line for line in body.split("\n"))
